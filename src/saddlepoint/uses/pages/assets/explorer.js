// The script of the explorer. The formulas are in THEORY, translated from Python; this file shows their values.
const CONTROLS = new Map(DATA.controls.map((one) => [one.key, one]));
const SLIDERS = DATA.controls.filter((one) => one.high > 0);
const ROWS = DATA.rows;
const STEPS = 20; // steps of a slider for a factor of ten
const POINTS = 160; // points of a line, less one
const at = (id) => document.getElementById(id);

// -- state: the numbers given, of which one is |A|, in one of two units; what is counted; which lines are drawn -------

function initial() {
  const given = Object.fromEntries(SLIDERS.map((one) => [one.key, one.value]));
  return { given, unit: "norm", view: "calls", shown: new Set(DATA.shown), sort: null };
}

let state = initial();

// The numbers of the problem. |A| keeps the value in the unit in which it was given; the other unit is computed.
function settled({ given, unit }) {
  const { kx, ky } = given;
  const norm = unit === "norm" ? given.norm : THEORY.norm_of(given.c, kx, ky);
  const c = unit === "norm" ? THEORY.coupling_of(given.norm, kx, ky) : given.c;
  return { ...given, norm, c };
}

function computed({ kx, ky, c, tol, g, h, A }) {
  const [method, why] = THEORY.recommend(kx, ky, c, g, h, A);
  const numbers = { kx, ky, c, tol, g, h, A };
  return {
    method, why,
    regime: THEORY.regime(kx, ky, c),
    N: THEORY.chain_N(kx, ky, c),
    forced: THEORY.forced_rounds(kx, ky, c, tol),
    rows: ROWS.map((row) => promise(row, numbers)),
  };
}

function promise(row, { kx, ky, c, tol, g, h, A }) {
  const order = THEORY[row.order](kx, ky, c);
  if (row.forced) {
    const rounds = THEORY.forced_rounds(kx, ky, c, tol);
    return { id: row.id, order, gradients: rounds, products: rounds, cost: THEORY.least_cost(rounds, g, h, A) };
  }
  const calls = (fewer) => THEORY.promised(fewer ? THEORY[fewer](kx, ky, c) : order, tol);
  const [of_g, of_h, products] = [calls(row.grad_g), calls(row.grad_h), calls(row.products)];
  const cost = row.method === null ? null : THEORY.total_cost(of_g, of_h, products, g, h, A);
  return { id: row.id, order, gradients: Math.max(of_g, of_h), products, cost };
}

// -- numbers in and out ----------------------------------------------------------------------------------------------

// The exact number in the shortest form that Python and a shell can read.
function written(value) {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential().replace("e+", "e") : String(value);
}

const shortly = (value) => written(Number(value.toPrecision(4)));

// The number and "", or null and a sentence that says what is wrong with the text.
function understood(text, control) {
  const range = `a number from ${written(control.least)} to ${written(control.most)}`;
  const value = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text.trim()) ? Number(text) : NaN;
  if (Number.isNaN(value)) {
    const heard = text.trim() === "" ? "The field is empty" : `“${text.trim().slice(0, 30)}” is not a number`;
    return [null, `${heard}; expected ${range}, such as ${written(control.value || 1)}.`];
  }
  if (value >= control.least && value <= control.most) return [value, ""];
  return [null, `${written(value)} is too ${value < control.least ? "small" : "large"}; expected ${range}.`];
}

const decades = (control) => Math.log10(control.high / control.low);

function toPosition(control, value) {
  const share = Math.log10(Math.max(value, Number.MIN_VALUE) / control.low) / decades(control);
  return Math.round(Math.min(1, Math.max(0, share)) * Math.abs(decades(control)) * STEPS);
}

function fromPosition(control, position) {
  const value = control.low * 10 ** ((Math.sign(decades(control)) * position) / STEPS);
  return Number(value.toPrecision(3));
}

function give(key, value) {
  take(state, key, value);
  for (const one of key === "c" || key === "norm" ? ["c", "norm"] : [key]) complain(one, "");
  changed();
}

function take(into, key, value) {
  if (key === "c" || key === "norm") {
    delete into.given[into.unit];
    into.unit = key;
  }
  into.given[key] = value;
}

// -- the link: numbers always, the rest where it differs from the beginning -------------------------------------------

function toHash() {
  const parts = Object.entries(state.given).map(([key, value]) => `${key}=${written(value)}`);
  if (state.view !== "calls") parts.push(`view=${state.view}`);
  const shown = ROWS.filter((row) => state.shown.has(row.id)).map((row) => row.id);
  if (shown.length !== DATA.shown.length || !DATA.shown.every((id) => state.shown.has(id))) parts.push(`show=${shown.join(",")}`);
  return parts.join("&");
}

// Take the parts of the link that can be read, and show a message about the others.
function fromHash(text) {
  const next = initial();
  const wrong = [];
  for (const [key, value] of new URLSearchParams(text)) {
    if (CONTROLS.has(key)) {
      const [number, complaint] = understood(value, CONTROLS.get(key));
      if (complaint) wrong.push(`${key}: ${complaint}`);
      else take(next, key, number);
    } else if (key === "view" && ["calls", "cost"].includes(value)) next.view = value;
    else if (key === "show") next.shown = new Set(value.split(",").filter((id) => ROWS.some((row) => row.id === id)));
    else wrong.push(`The link says ${key}=${value.slice(0, 30)}, which is not a setting of this page.`);
  }
  begin(next);
  say("hash-wrong", wrong.join(" "));
}

// Start from a new state: the order of the table stays, and all error messages are removed.
function begin(next) {
  state = { ...next, sort: state.sort };
  for (const key of CONTROLS.keys()) complain(key, "");
  say("hash-wrong", "");
}

let waiting = 0;
function linkSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(() => history.replaceState(null, "", `#${toHash()}`), 200); // browsers limit how often this may be called
}

// -- the page --------------------------------------------------------------------------------------------------------

function changed() {
  render();
  linkSoon();
}

function say(id, text) {
  if (at(id).textContent !== text) at(id).textContent = text; // a screen reader reads out every assignment
}

function render() {
  const numbers = settled(state);
  const found = computed(numbers);
  showControls(numbers);
  showAnswer(numbers, found);
  showFigure(numbers, found);
  showCode(numbers, found);
  showTable(found);
}

function showControls(numbers) {
  for (const control of DATA.controls) {
    const field = at(`${control.key}-field`);
    const derived = control.key in state.given ? numbers[control.key] : Number(numbers[control.key].toPrecision(6));
    if (field !== document.activeElement && field.getAttribute("aria-invalid") !== "true") field.value = written(derived);
  }
  for (const control of SLIDERS) {
    const slider = at(`${control.key}-slider`);
    slider.value = toPosition(control, numbers[control.key]);
    slider.setAttribute("aria-valuetext", written(Number(numbers[control.key].toPrecision(6))));
  }
  for (const radio of document.querySelectorAll('input[name="view"]')) radio.checked = radio.value === state.view;
  for (const row of ROWS) at(`show-${row.id}`).checked = state.shown.has(row.id);
}

function complain(key, complaint) {
  say(`${key}-wrong`, complaint);
  at(`${key}-field`).setAttribute("aria-invalid", String(complaint !== ""));
}

function showAnswer({ kx, ky, norm, c, tol, g, h, A }, found) {
  const price = `∇g : ∇h : A = ${written(g)} : ${written(h)} : ${written(A)}`;
  say("setting", `kx = ${written(kx)}, ky = ${written(ky)}, |A|/L = ${shortly(norm)}, c = ${shortly(c)}, tol = ${written(tol)}, costs ${price}`);
  say("method", found.method);
  const [before, after] = `because ${found.why}`.split(DATA.ratio.text);
  say("why", before);
  if (after !== undefined) {
    at("why").insertAdjacentHTML("beforeend", DATA.ratio.formula);
    at("why").append(after);
  }
  say("regime", found.regime);
  say("regime-says", DATA.regimes[found.regime]);
  say("forced", `${formatNumber(found.forced)} ${found.forced === 1 ? "round" : "rounds"}`);
  say("forced-says", `forced on every method by the hardest problem, N = ${formatNumber(found.N)}`);
  const [fewest, cheapest] = [least(found, "products"), least(found, "cost")];
  say("smallest", `${formatNumber(fewest.value)} calls`);
  say("smallest-says", `by ${fewest.names}; in cost ${formatNumber(cheapest.value)}, by ${cheapest.names}`);
}

// The smallest number of a column over the methods that take any problem, and the names of its methods.
function least(found, key) {
  const rivals = ROWS.map((row, k) => [row, found.rows[k][key]]).filter(([row]) => row.best && !row.quadratic);
  const value = Math.min(...rivals.map(([, one]) => one));
  const names = rivals.filter(([, one]) => one === value).map(([row]) => row.method);
  return { value, names: names.length > 2 ? `${names[0]} and ${names.length - 1} more` : names.join(" and ") };
}

function showFigure(numbers) {
  const { kx, ky, norm } = numbers;
  const cost = state.view === "cost";
  say("view-says", cost ? "in the units of the sliders: gradients × (∇g + ∇h) + products × 2 A" : "of the busiest oracle, order × log(1/tol)");
  const decade = (value, round) => 10 ** round(Math.log10(value));
  const present = Math.min(1e12, norm);
  let [from, to] = [decade(THEORY.norm_of(0.3, kx, ky), Math.floor), 10];
  if (present > 0) [from, to] = [Math.max(1e-14, Math.min(from, decade(present, Math.floor))), Math.max(to, decade(present, Math.ceil))];
  const places = Array.from({ length: POINTS + 1 }, (_, k) => from * (to / from) ** (k / POINTS));
  const series = coloured().filter(({ row }) => state.shown.has(row.id)).map(({ row, colour, dash }) => ({
    name: row.name, colour, dash, floor: row.forced, width: row.forced ? 2.5 : 2,
    points: places.map((one) => {
      const here = promise(row, { ...numbers, c: THEORY.coupling_of(one, kx, ky) });
      return [one, cost ? here.cost : here.products];
    }),
  }));
  const [weak, strong] = [THEORY.weak_until(kx, ky), THEORY.strong_from(kx, ky)].map((c) => THEORY.norm_of(c, kx, ky));
  drawChart(at("figure"), {
    title: `${cost ? "Cost" : "Calls"} to shrink the distance by ${written(numbers.tol)}, against |A|`,
    about: `${series.length} lines; the present |A|/L is ${shortly(norm)}.`,
    x: { label: "|A|/L", log: true },
    y: { label: cost ? "cost" : "calls of the busiest oracle", log: true },
    series, names: true, legend: false,
    hint: "Point at a place, or use the arrow keys, to read the lines there; a click sets |A|.",
    marks: [{ x: Math.max(present, from), label: `|A| = ${norm > 0 ? `${shortly(norm)} L` : 0}` }],
    bands: [
      { from, to: weak, label: "weak" },
      { from: weak, to: strong, label: "intermediate" },
      { from: Math.max(weak, strong), to, label: "strong" },
    ],
    pick: (place) => give("norm", Number(place.toPrecision(3))),
  });
}

// The colour and dashes of every line. Lines that are shown at first come first; the lower bound is black.
function coloured() {
  const first = ROWS.filter((row) => DATA.shown.includes(row.id) && !row.forced);
  const rest = ROWS.filter((row) => !DATA.shown.includes(row.id));
  const palette = COLOURS - 1;
  return [...first, ...rest, ...ROWS.filter((row) => row.forced)].map((row, k) => ({
    row,
    colour: row.forced ? COLOURS - 1 : k % palette,
    dash: row.forced ? "" : DASHES[Math.floor(k / palette) % DASHES.length],
  }));
}

function showCode({ kx, ky, c, tol, g, h, A }, found) {
  const costs = g === 1 && h === 1 && A === 1 ? "" : `, costs={"grad_g": ${written(g)}, "grad_h": ${written(h)}, "A": ${written(A)}, "At": ${written(A)}}`;
  say("by-name", `result = sp.solve(sp.Saddle(g, h, A), method="${found.method}", tol=${written(tol)})`);
  say("by-auto", `result = sp.solve(sp.Saddle(g, h, A), tol=${written(tol)}${costs})`);
  say("by-command", `saddlepoint predict --kx ${written(kx)} --ky ${written(ky)} --coupling ${written(c)} --tol ${written(tol)}`);
}

// -- the table -------------------------------------------------------------------------------------------------------

const COLUMNS = [...at("table").querySelectorAll("th.number")].map((head) => head.dataset.key);
const lines = new Map();

function makeTable() {
  const body = at("table").tBodies[0];
  for (const row of ROWS) {
    const line = element(body, "tr", { "data-id": row.id, class: row.forced ? "lower" : "" });
    const head = element(line, "th", { scope: "row" });
    element(head, "b", {}, row.method ?? row.name.split(",")[0]);
    if (row.source !== "since") element(head, "span", { class: "badge" }, row.source);
    if (row.theorem) element(head, "span", { class: "badge" }, row.theorem);
    if (row.quadratic) element(head, "span", { class: "badge" }, "quadratic");
    element(head, "span", { class: "badge accent", hidden: "" }, "recommended");
    element(head, "span", { class: "title faint" }, ` ${row.title}`);
    element(head, "span", { class: "narrow" }).innerHTML = row.formula;
    element(line, "td", { class: "formula" }).innerHTML = row.formula;
    lines.set(row.id, { line, badge: head.querySelector(".accent"), cells: COLUMNS.map((key) => element(line, "td", { class: `number ${key}` })) });
  }
  for (const head of at("table").querySelectorAll("th[data-key]")) {
    head.querySelector("button").addEventListener("click", () => {
      const down = state.sort?.key === head.dataset.key && !state.sort.down;
      state.sort = { key: head.dataset.key, down };
      render();
    });
  }
}

function showTable(found) {
  const smallest = Object.fromEntries(["products", "cost"].map((key) => [key, least(found, key).value]));
  ROWS.forEach((row, k) => {
    const { line, badge, cells } = lines.get(row.id);
    const here = row.best && row.method === found.method;
    line.classList.toggle("recommended", here);
    badge.hidden = !here;
    COLUMNS.forEach((key, j) => {
      cells[j].textContent = formatNumber(found.rows[k][key]);
      cells[j].classList.toggle("least", row.best && !row.quadratic && found.rows[k][key] === smallest[key]);
    });
  });
  for (const head of at("table").querySelectorAll("th[data-key]")) {
    if (state.sort?.key !== head.dataset.key) head.removeAttribute("aria-sort");
    else head.setAttribute("aria-sort", state.sort.down ? "descending" : "ascending");
  }
  const sorted = inOrder(found).map((id) => lines.get(id).line);
  const body = at("table").tBodies[0];
  if (sorted.some((line, k) => body.rows[k] !== line)) body.append(...sorted);
}

function inOrder(found) {
  if (!state.sort) return ROWS.map((row) => row.id);
  const { key, down } = state.sort;
  const worth = (row, k) => (key === "name" ? row.name : found.rows[k][key]);
  const keyed = ROWS.map((row, k) => [row.id, worth(row, k)]);
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en") : a - b);
  keyed.sort(([, a], [, b]) => (a === null || b === null ? (a === null) - (b === null) : (down ? -1 : 1) * compare(a, b)));
  return keyed.map(([id]) => id);
}

// -- beginning -------------------------------------------------------------------------------------------------------

function makeChips() {
  for (const { row, colour, dash } of coloured()) {
    const first = DATA.shown.includes(row.id);
    const label = element(at(first ? "chips" : "more-chips"), "label");
    const box = element(label, "input", { type: "checkbox", id: `show-${row.id}` });
    const chip = element(label, "span");
    const swatch = svg(chip, "svg", { width: 26, height: 8, "aria-hidden": "true" });
    svg(swatch, "line", { x1: 0, x2: 26, y1: 4, y2: 4, "stroke-width": 2, "stroke-dasharray": dash }).style.stroke = `var(--c${colour})`;
    chip.append(row.name);
    box.addEventListener("change", () => {
      if (box.checked) state.shown.add(row.id);
      else state.shown.delete(row.id);
      changed();
    });
  }
  document.querySelector(".chips summary").textContent = `${ROWS.length - DATA.shown.length} more`;
}

async function copyText(text, source, answer) {
  try {
    await navigator.clipboard.writeText(text);
    answer("Copied");
  } catch {
    if (source) getSelection().selectAllChildren(source);
    answer(source ? "Selected" : "It is in the address bar");
  }
}

function start() {
  themeButton(at("theme"));
  makeChips();
  makeTable();
  for (const control of DATA.controls) {
    const field = at(`${control.key}-field`);
    field.addEventListener("input", () => {
      const [value, complaint] = understood(field.value, control);
      if (value === null) complain(control.key, complaint);
      else give(control.key, value);
    });
    field.addEventListener("blur", () => showControls(settled(state)));
  }
  for (const control of SLIDERS) {
    const slider = at(`${control.key}-slider`);
    slider.max = Math.round(Math.abs(decades(control)) * STEPS);
    slider.addEventListener("input", () => give(control.key, fromPosition(control, slider.valueAsNumber)));
  }
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  for (const radio of document.querySelectorAll('input[name="view"]')) {
    radio.addEventListener("change", () => { state.view = radio.value; changed(); });
  }
  at("reset").addEventListener("click", () => { begin(initial()); changed(); });
  const said = document.querySelector(".said");
  at("link").addEventListener("click", () => copyText(`${location.href.split("#")[0]}#${toHash()}`, null, (text) => { said.textContent = text; }));
  for (const button of document.querySelectorAll(".code button")) {
    const code = button.parentElement.querySelector("code");
    button.setAttribute("aria-label", `Copy: ${code.parentElement.getAttribute("aria-label")}`);
    button.addEventListener("click", () => copyText(code.textContent, code, (text) => {
      button.textContent = text;
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    }));
  }
  addEventListener("hashchange", () => { clearTimeout(waiting); fromHash(location.hash.slice(1)); render(); });
  fromHash(location.hash.slice(1));
  render();
}

start();
