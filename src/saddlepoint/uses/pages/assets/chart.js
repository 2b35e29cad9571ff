// A chart of lines in SVG, with logarithmic or linear axes, a legend that hides lines, and values under the pointer or
// the arrow keys. Colours are set by the styles of the page, for light, dark and print; dashes distinguish lines without
// colours.
const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 8;
const DASHES = ["", "8 4", "2 3", "10 3 2 3"];

function svg(parent, name, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== "") node.textContent = text;
  parent.append(node);
  return node;
}

function element(parent, name, attributes = {}, text = "") {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== "") node.textContent = text;
  if (parent) parent.append(node);
  return node;
}

// The number with three digits, with a power of ten where that is shorter.
function formatNumber(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) return value.toExponential(size >= 1e15 ? 1 : 2).replace("e+", "e");
  return String(Number(value.toPrecision(size >= 100 ? Math.max(3, Math.ceil(Math.log10(size + 1))) : 3)));
}

// An axis: at maps data to pixels, back maps pixels to data, ticks are pairs of a pixel and a label.
function axis(values, log, from, to) {
  const fit = values.filter((v) => Number.isFinite(v) && (!log || v > 0)).map((v) => (log ? Math.log10(v) : v));
  let low = fit.length ? Math.min(...fit) : 0;
  let high = fit.length ? Math.max(...fit) : 1;
  if (high - low < 1e-12) [low, high] = [low - 0.5, high + 0.5];
  const ticks = [];
  if (log) {
    [low, high] = [Math.floor(low + 1e-9), Math.ceil(high - 1e-9)];
    if (high === low) high += 1;
    const stride = Math.ceil((high - low) / 8);
    for (let power = low; power <= high; power += stride) ticks.push([power, power >= 0 && power < 4 ? String(10 ** power) : `1e${power}`]);
  } else {
    const raw = (high - low) / 6;
    const unit = 10 ** Math.floor(Math.log10(raw));
    const stride = [1, 2, 5, 10].map((k) => k * unit).find((s) => s >= raw);
    [low, high] = [Math.floor(low / stride + 1e-9) * stride, Math.ceil(high / stride - 1e-9) * stride];
    for (let k = 0; low + k * stride <= high + 1e-9 * stride; k += 1) ticks.push([low + k * stride, formatNumber(low + k * stride)]);
  }
  const scale = (to - from) / (high - low);
  return {
    at: (v) => from + ((log ? Math.log10(v) : v) - low) * scale,
    back: (pixel) => (log ? 10 ** (low + (pixel - from) / scale) : low + (pixel - from) / scale),
    ticks: ticks.map(([v, text]) => [from + (v - low) * scale, text]),
  };
}

// spec: {title, about, x: {label, log}, y: {label, log}, series: [{name, points: [[x, y], ...], colour?, dash?, width?,
// dots?, floor?}], marks: [{x, label}], bands: [{from, to, label}], names?, legend?, hint?, pick?}. The area
// below a floor is shaded; bands divide the horizontal axis; names are written beside the ends of the lines where there is
// room; pick is called with the place of a click. The chart is drawn into the figure again at each call and when its width
// changes; hidden lines stay hidden. Returns the axes.
function drawChart(figure, spec) {
  const hidden = figure.hiddenLines ?? (figure.hiddenLines = new Set());
  const width = chartWidth(figure), height = Math.round(Math.min(430, Math.max(300, 0.62 * width)));
  const named = spec.names && width >= 560;
  const left = 66, right = named ? 132 : 14, top = 12, bottom = 48;
  redrawWithWidth(figure, spec);
  figure.replaceChildren();
  element(figure, "figcaption", {}, spec.title);
  const picture = svg(figure, "svg", {
    class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: "0",
    "aria-label": `${spec.title}. ${spec.about ?? ""} Arrow keys read out values.`,
  });
  const series = spec.series.map((one, k) => ({
    ...one,
    colour: `var(--c${(one.colour ?? k) % COLOURS})`,
    dash: one.dash ?? DASHES[Math.floor((one.colour ?? k) / COLOURS) % DASHES.length],
    points: one.points.filter(([a, b]) => usable(a, spec.x.log) && usable(b, spec.y.log)),
  }));
  const shown = series.filter((one) => !hidden.has(one.name));
  const all = (shown.length ? shown : series).flatMap((one) => one.points);
  const across = axis([...all.map((p) => p[0]), ...(spec.marks ?? []).map((m) => m.x)], spec.x.log, left, width - right);
  const up = axis(all.map((p) => p[1]), spec.y.log, height - bottom, top);

  const nameBands = drawBands(picture, spec.bands ?? [], across, { left, right: width - right, top, bottom: height - bottom });
  for (const [pixel, text] of across.ticks) {
    svg(picture, "line", { class: "grid", x1: pixel, x2: pixel, y1: top, y2: height - bottom });
    svg(picture, "text", { class: "tick", x: pixel, y: height - bottom + 17, "text-anchor": "middle" }, text);
  }
  for (const [pixel, text] of up.ticks) {
    svg(picture, "line", { class: "grid", y1: pixel, y2: pixel, x1: left, x2: width - right });
    svg(picture, "text", { class: "tick", x: left - 7, y: pixel + 4, "text-anchor": "end" }, text);
  }
  svg(picture, "rect", { class: "frame", x: left, y: top, width: width - left - right, height: height - top - bottom });
  svg(picture, "text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, spec.x.label);
  svg(picture, "text", { x: 15, y: (top + height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 15 ${(top + height - bottom) / 2})` }, spec.y.label);
  for (const mark of spec.marks ?? []) {
    const pixel = across.at(mark.x);
    const inner = pixel > width - right - 7.5 * mark.label.length;
    svg(picture, "line", { class: "cursor mark", x1: pixel, x2: pixel, y1: top, y2: height - bottom });
    svg(picture, "text", { class: "tick mark", x: pixel + (inner ? -5 : 5), y: top + 14, "text-anchor": inner ? "end" : "start" }, mark.label);
  }
  for (const one of shown) {
    const path = one.points.map(([a, b], k) => `${k ? "L" : "M"}${across.at(a).toFixed(2)} ${up.at(b).toFixed(2)}`).join("");
    if (one.floor && path) {
      const [from, to] = [one.points[0], one.points.at(-1)].map((point) => across.at(point[0]).toFixed(2));
      svg(picture, "path", { class: "floor", d: `${path}L${to} ${height - bottom}L${from} ${height - bottom}Z` });
    }
    const line = svg(picture, "path", { class: "curve", d: path, "stroke-width": one.width ?? 2, "stroke-dasharray": one.dash, "data-name": one.name });
    line.style.stroke = one.colour;
    if (one.dots || one.points.length === 1) {
      for (const [a, b] of one.points) {
        const dot = svg(picture, "circle", { cx: across.at(a), cy: up.at(b), r: 3.5 });
        dot.style.fill = one.colour;
      }
    }
  }
  nameBands();
  if (named) drawNames(picture, shown, up, width - right, [top, height - bottom]);
  if (spec.legend !== false) legend(figure, spec, series, hidden);
  readout(figure, picture, spec, shown, across, { left, right: width - right, top, bottom: height - bottom, width });
  return { across, up };
}

function chartWidth(figure) {
  return Math.round(Math.min(900, Math.max(330, figure.clientWidth || 640)));
}

function redrawWithWidth(figure, spec) {
  figure.drawn = { spec, width: chartWidth(figure) };
  figure.watcher ??= new ResizeObserver(() => {
    const { spec: last, width } = figure.drawn;
    if (figure.clientWidth && Math.abs(chartWidth(figure) - width) > 20) drawChart(figure, last); // a scroll bar changes the width by less
  });
  figure.watcher.observe(figure);
}

// Draw the bands, and return a function that writes their names over the lines: upright where a band is narrow.
function drawBands(picture, bands, across, box) {
  const places = bands.map((band, k) => {
    const [from, to] = [band.from, band.to].map((value) => Math.min(box.right, Math.max(box.left, across.at(value))));
    const [width, height] = [Math.max(0, to - from), box.bottom - box.top];
    if (width > 0) svg(picture, "rect", { class: `band band${k % 2}`, x: from, y: box.top, width, height });
    return [band.label, width, from + width / 2, box.bottom - 8];
  });
  return () => {
    for (const [label, width, x, y] of places.filter((one) => one[1] > 12)) {
      const upright = width < 7.5 * label.length;
      const place = upright ? { x: x + 4, y, transform: `rotate(-90 ${x + 4} ${y})` } : { x, y, "text-anchor": "middle" };
      svg(picture, "text", { class: "tick band-name", ...place }, label);
    }
  };
}

// Names of lines beside their ends, in the same order, moved apart where they would overlap.
function drawNames(picture, shown, up, right, [top, bottom]) {
  const gap = 15;
  const ends = shown.filter((one) => one.points.length).map((one) => ({ one, end: up.at(one.points.at(-1)[1]) }));
  ends.sort((a, b) => a.end - b.end);
  let free = top;
  for (const name of ends) free = (name.at = Math.max(name.end, free)) + gap;
  free = bottom;
  for (const name of ends.toReversed()) free = (name.at = Math.min(name.at, free)) - gap;
  for (const { one, end, at } of ends) {
    const stroke = svg(picture, "path", { class: "curve", d: `M${right + 1} ${end}L${right + 12} ${at}`, "stroke-width": 1 });
    stroke.style.stroke = one.colour;
    const text = svg(picture, "text", { class: "tick", x: right + 15, y: at + 4 }, one.name);
    text.style.fill = one.colour;
  }
}

function usable(value, log) {
  return Number.isFinite(value) && (!log || value > 0);
}

function legend(figure, spec, series, hidden) {
  const box = element(figure, "div", { class: "legend", role: "group", "aria-label": "Lines shown" });
  for (const one of series) {
    const button = element(box, "button", { type: "button", "aria-pressed": String(!hidden.has(one.name)) });
    const swatch = svg(button, "svg", { width: 26, height: 8, "aria-hidden": "true" });
    const line = svg(swatch, "line", { x1: 0, x2: 26, y1: 4, y2: 4, "stroke-width": one.width ?? 2, "stroke-dasharray": one.dash });
    line.style.stroke = one.colour;
    button.append(one.name);
    button.addEventListener("click", () => {
      if (!hidden.delete(one.name)) hidden.add(one.name);
      drawChart(figure, spec);
      [...figure.querySelectorAll(".legend button")].find((other) => other.textContent === one.name).focus();
    });
  }
}

// The values of all lines at one place, by pointer or by arrow keys.
function readout(figure, picture, spec, shown, across, box) {
  const line = svg(picture, "line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" });
  const text = element(figure, "div", { class: "readout", "aria-live": "polite" }, spec.hint ?? "");
  let pixel = (box.left + box.right) / 2;
  const show = () => {
    pixel = Math.min(box.right, Math.max(box.left, pixel));
    for (const [name, value] of [["x1", pixel], ["x2", pixel], ["visibility", "visible"]]) line.setAttribute(name, value);
    const at = across.back(pixel);
    const values = shown.map((one) => [one.name, valueAt(one.points, at, spec)]).filter(([, v]) => v !== null);
    text.textContent = `${spec.x.label} ${formatNumber(at)}: ${values.map(([name, v]) => `${name} ${formatNumber(v)}`).join(", ") || "nothing here"}`;
  };
  picture.addEventListener("pointermove", (event) => {
    const where = picture.getBoundingClientRect();
    pixel = ((event.clientX - where.left) / where.width) * box.width;
    show();
  });
  if (spec.pick) {
    picture.addEventListener("click", (event) => {
      const where = picture.getBoundingClientRect();
      const at = ((event.clientX - where.left) / where.width) * box.width;
      if (at >= box.left && at <= box.right) spec.pick(across.back(at));
    });
  }
  picture.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    event.preventDefault();
    pixel += (move * (box.right - box.left)) / 40;
    show();
  });
}

// The value of a line at a place, between two points along the line as drawn; null outside of the line.
function valueAt(points, at, spec) {
  const over = (v) => (spec.x.log ? Math.log(v) : v);
  for (let k = 1; k < points.length; k += 1) {
    const [[a, u], [b, v]] = [points[k - 1], points[k]];
    if (at < Math.min(a, b) || at > Math.max(a, b)) continue;
    const share = a === b ? 0 : (over(at) - over(a)) / (over(b) - over(a));
    return spec.y.log ? u ** (1 - share) * v ** share : u + share * (v - u);
  }
  return null;
}

// A button that changes the theme; the theme "system" is the reader's own setting.
function themeButton(parent) {
  const names = ["system", "light", "dark"];
  const button = element(parent, "button", { type: "button", class: "theme" });
  let k = 0;
  const apply = () => {
    if (names[k] === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = names[k];
    button.textContent = `Colours: ${names[k]}`;
  };
  button.addEventListener("click", () => { k = (k + 1) % names.length; apply(); });
  apply();
}
