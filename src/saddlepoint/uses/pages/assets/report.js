// The script of the report: a chart for each problem, sortable tables, the theme button, copying, downloads and printing.

function drawConvergence(box) {
  const { runs, tols } = DATA.groups[box.dataset.group];
  const logarithmic = box.querySelector(".log input");
  const chosen = (kind) => box.querySelector(`input[name^="${kind}-"]:checked`).value;
  let asked = false; // whether the reader has chosen the scale

  const draw = () => {
    const of = chosen("of"), across = chosen("across");
    if (!asked) logarithmic.checked = farApart(runs, across);
    const spec = convergence(runs, tols, of, across, logarithmic.checked);
    const without = runs.filter((run, k) => !hasLine(spec, k));
    const figure = box.querySelector(".screen");
    figure.hidden = without.length === runs.length;
    if (!figure.hidden) drawChart(figure, spec);
    box.querySelector(".none").textContent = without.length
      ? `These runs have no positive number and so no line: ${without.map((run) => run.name).join(", ")}.` : "";
  };
  for (const input of box.querySelectorAll('input[type="radio"]')) input.addEventListener("change", draw);
  logarithmic.addEventListener("change", () => { asked = true; draw(); });
  draw();

  const paper = box.querySelector(".paper"); // one chart for each unit, because nobody can choose one on paper
  for (const across of [...box.querySelectorAll('input[name^="across-"]')].map((input) => input.value)) {
    const spec = convergence(runs, tols, box.querySelector('input[name^="of-"][checked]').value, across, farApart(runs, across));
    if (!runs.some((run, k) => hasLine(spec, k))) continue;
    const figure = element(paper, "figure");
    figure.watcher = { observe() {} }; // paper has the width that the chart is drawn for
    drawChart(figure, spec);
  }
}

function hasLine(spec, k) {
  return spec.series[k].points.some(([a, b]) => usable(a, spec.x.log) && usable(b, spec.y.log));
}

const UNITS = {
  rounds: "rounds", gradients: "gradients", products: "products", passes: "passes over A", seconds: "seconds",
};
const QUANTITIES = { distance: "certified |x − x*| + |y − y*|", gap: "certified duality gap" };

function convergence(runs, tols, of, across, log) {
  const series = runs.map((run, j) => ({
    name: run.name, points: run[across].map((a, k) => [a, run[of][k]]), dash: DASHES[(j + Math.floor(j / COLOURS)) % DASHES.length],
  }));
  const places = series.flatMap((one) => one.points.map((p) => p[0])).filter((a) => usable(a, log));
  for (const tol of places.length ? tols[of] : []) {
    series.push({
      name: `tolerance ${formatNumber(tol)}`, points: [[least(places), tol], [most(places), tol]], colour: 7, dash: "1 5", width: 1.5,
    });
  }
  const title = `${QUANTITIES[of][0].toUpperCase()}${QUANTITIES[of].slice(1)} against ${UNITS[across]}`;
  return {
    title, series, about: `Lines of ${runs.length} runs.`, hint: "Point at the chart, or use the arrow keys on it, to read values.",
    x: { label: UNITS[across], log }, y: { label: QUANTITIES[of], log: true },
  };
}

// Whether the runs end too far from each other for one linear scale.
function farApart(runs, across) {
  const ends = runs.map((run) => most(run[across])).filter((end) => end > 0);
  return ends.length > 0 && most(ends) > 30 * least(ends);
}

function least(values) {
  return values.reduce((a, b) => Math.min(a, b), Infinity);
}

function most(values) {
  return values.reduce((a, b) => Math.max(a, b), -Infinity);
}

// -- tables ----------------------------------------------------------------------------------------------------------

const WORDS = new Intl.Collator("en", { numeric: true });
const NUMBER = /^[-+−]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?/i;

// The value by which a cell is sorted: a number, a text, or null where there is nothing to compare.
function sortValue(cell) {
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  const text = cell.textContent.trim();
  const number = NUMBER.exec(text);
  if (number) return Number(number[0].replace("−", "-"));
  return text === "" || /^[–—·]/.test(text) || cell.classList.contains("number") ? null : text;
}

// Numbers come before words; what is missing comes last whichever way the table is sorted.
function compared(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a !== typeof b) return sign * (typeof a === "number" ? -1 : 1);
  return sign * (typeof a === "number" ? a - b : WORDS.compare(a, b));
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, k) => {
    const button = element(null, "button", { type: "button", title: "Sort by this column" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows].map((row) => [sortValue(row.cells[k]), row]);
      rows.sort(([a], [b]) => compared(a, b, up ? 1 : -1));
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}

// -- buttons ---------------------------------------------------------------------------------------------------------

async function copy(button) {
  const source = button.closest(".controls").previousElementSibling;
  const said = button.parentElement.querySelector(".said");
  try {
    await navigator.clipboard.writeText(source.textContent);
    said.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(source);
    said.textContent = "selected; press the copy key of your system";
  }
}

function save(name, csv) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
  link.download = `${name.replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 100)}.csv`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Open the section of a run that a link leads to.
function openTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target?.tagName === "DETAILS") target.open = true;
}

// Open all sections except histories while the page is printed, and restore them afterwards.
function openForPaper(printing) {
  for (const one of document.querySelectorAll("details:not(.history)")) {
    if (printing) {
      one.dataset.was ??= String(one.open);
      one.open = true;
    } else if (one.dataset.was) {
      one.open = one.dataset.was === "true";
      delete one.dataset.was;
    }
  }
}

themeButton(document.getElementById("theme"));
document.querySelectorAll(".convergence").forEach(drawConvergence);
document.querySelectorAll("table.sortable").forEach(makeSortable);
document.querySelectorAll("button.copy").forEach((button) => button.addEventListener("click", () => copy(button)));
const RUNS = DATA.groups.flatMap((group) => group.runs);
document.querySelectorAll("details.run").forEach((section, k) => {
  section.querySelector("button.save")?.addEventListener("click", () => save(RUNS[k].name, RUNS[k].csv));
});
addEventListener("hashchange", openTarget);
openTarget();
matchMedia("print").addEventListener("change", (event) => openForPaper(event.matches));
addEventListener("beforeprint", () => openForPaper(true));
addEventListener("afterprint", () => openForPaper(false));
