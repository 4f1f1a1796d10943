// The plane of momentum and queue age: a recorded run beside the linear system of the common mode.
// The arithmetic is that of minilab/spectra/common_mode.py and phases.py; a test compares them on random values.

const PARTS = 8, START = 1e-3;

// Numbers from -START to START, the same as Python's: every product here is a whole number that a double holds.
function numbers(many) {
  let state = 1;
  return Array.from({ length: many }, () => {
    state = (1664525 * state + 1013904223) % 2 ** 32;
    return START * ((2 * state) / 2 ** 32 - 1);
  });
}

// u after 0, 1, ... `steps` steps of u' = kappa (v - <v>_T), v' = gamma (u - v).
export function commonMode(leak, age, drive, steps) {
  const part = 1 / PARTS, length = age * PARTS, start = numbers(length + 2);
  let u = start[0], v = start[1], newest = 0;
  const queue = [v, ...start.slice(2)], found = [u];
  let total = queue.reduce((sum, value) => sum + value, 0);
  for (let number = 1; number <= steps * PARTS; number += 1) {
    const oldest = queue[(newest + 1) % (length + 1)], nextOldest = queue[(newest + 2) % (length + 1)];
    const mean = (total - (v + oldest) / 2) / length, up = drive * (v - mean), vp = leak * (u - v);
    const ahead = u + part * up, key = v + part * vp;
    const next = (total - oldest + key - (key + nextOldest) / 2) / length;
    u += (part * (up + drive * (key - next))) / 2;
    v += (part * (vp + leak * (ahead - key))) / 2;
    newest = (newest + 1) % (length + 1);
    total += v - queue[newest];
    queue[newest] = v;
    if (number % PARTS === 0) found.push(u);
  }
  return found;
}

// Slope, per step, of log |u| over the second half.
export function growthRate(values) {
  const half = Math.floor(values.length / 2), lengths = values.slice(half).map((value) => Math.log(Math.abs(value) || 5e-324));
  const middle = (lengths.length - 1) / 2;
  let above = 0, below = 0;
  lengths.forEach((value, i) => { above += (i - middle) * value; below += (i - middle) ** 2; });
  return above / below;
}

// The positive root of x (x + gamma) = kappa gamma (1 - (1 - exp(-x T)) / (x T)); 0 where there is none.
export function runawayRate(leak, age, drive) {
  if (age * drive <= 2) return 0;
  const surplus = (rate) => drive * leak * (1 + Math.expm1(-rate * age) / (rate * age)) - rate * (rate + leak);
  let low = 0, high = Math.sqrt(drive * leak);
  for (let turn = 0; turn < 100; turn += 1) {
    const middle = (low + high) / 2;
    if (surplus(middle) > 0) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

// ---- The page ----------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
const MOCO = "var(--moco, #dd5f14)", MODEL = "var(--queue-age, #7d6b3c)";
const WIDTH = 300, HEIGHT = 170, LEFT = 40, RIGHT = 10, TOP = 10, BOTTOM = 32;
const last = (values) => values[values.length - 1];
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
// What a cell of the plane can hold: the name, the words, the value, and how it is written.
const QUANTITIES = [
  ["knn", "kNN accuracy", (cell) => last(cell.knn), (value) => value.toFixed(3)],
  ["spread", "spread of the features", (cell) => last(cell.spread), (value) => value.toFixed(2)],
  ["cosine", "cosine of two images", (cell) => last(cell.cosine), (value) => value.toFixed(2)],
  ["loss", "loss − log(K + 1)", (cell) => last(cell.loss) - cell.chance, signed],
];

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function shape(name, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
}

let count = 0;
const label = (words, control) => {
  control.id = `plane-${(count += 1)}`;
  return make("label", { for: control.id }, make("span", {}, words), control);
};

// A panel with axes; x and y are [least, greatest], the ticks [place, name].
function panel(title, alt, x, y, xTicks, yTicks, xLabel) {
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": alt });
  const across = (value) => LEFT + ((value - x[0]) / (x[1] - x[0] || 1)) * (WIDTH - LEFT - RIGHT);
  const up = (value) => HEIGHT - BOTTOM - ((value - y[0]) / (y[1] - y[0])) * (HEIGHT - TOP - BOTTOM);
  svg.append(shape("path", { d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}`, fill: "none", stroke: "currentColor", "stroke-width": 0.8 }));
  for (const [place, name] of yTicks)
    svg.append(shape("text", { x: LEFT - 6, y: up(place) + 3.5, "text-anchor": "end" }, name), shape("path", { d: `M${LEFT - 3} ${up(place)}h3`, stroke: "currentColor" }));
  for (const [place, name] of xTicks)
    svg.append(shape("text", { x: across(place), y: HEIGHT - BOTTOM + 14, "text-anchor": "middle" }, name), shape("path", { d: `M${across(place)} ${HEIGHT - BOTTOM}v3`, stroke: "currentColor" }));
  svg.append(shape("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, xLabel));
  const line = (points, colour, dash = "", width = 1.8) => svg.append(shape("path", {
    d: points.map(([a, b], i) => `${i ? "L" : "M"}${across(a).toFixed(2)} ${up(b).toFixed(2)}`).join(""),
    fill: "none", stroke: colour, "stroke-width": width, "stroke-dasharray": dash,
  }));
  const mark = (a, b, turn) => svg.append(turn === 0
    ? shape("circle", { cx: across(a), cy: up(b), r: 3.4, fill: MOCO })
    : shape("rect", { x: across(a) - 3, y: up(b) - 3, width: 6, height: 6, fill: MOCO, transform: `rotate(${turn === 1 ? 0 : 45} ${across(a)} ${up(b)})` }));
  return { figure: make("figure", {}, make("figcaption", {}, title), svg), line, mark };
}

function recorded(cell) {
  const epochs = cell.knn.map((_, i) => i + 1), ticks = epochs.map((epoch) => [epoch, `${epoch}`]), ends = [1, epochs.length];
  const low = Math.min(0, ...cell.cosine), third = (values) => [0, 0.5, 1].map((share) => values[0] + share * (values[1] - values[0]));
  const shares = panel("kNN (discs), spread (squares), cosine of two images (diamonds)", "kNN, spread and cosine by epoch. The table below has the values.",
    ends, [low, 1], ticks, [[0, "0"], [0.5, "0.5"], [1, "1"]], "epoch");
  [cell.knn, cell.spread, cell.cosine].forEach((values, turn) => {
    shares.line(values.map((value, i) => [i + 1, value]), MOCO, ["", "6 3", "2 3"][turn]);
    values.forEach((value, i) => shares.mark(i + 1, value, turn));
  });
  const all = [...cell.loss, cell.chance], range = [Math.floor(2 * Math.min(...all)) / 2, Math.ceil(2 * Math.max(...all) + 0.1) / 2];
  const loss = panel("Loss, and log(K + 1) of a guess (dotted)", "The loss by epoch, beside the loss of a guess. The table below has the values.",
    ends, range, ticks, third(range).map((value) => [value, value.toFixed(1)]), "epoch");
  loss.line([[1, cell.chance], [epochs.length, cell.chance]], "currentColor", "1 3");
  loss.line(cell.loss.map((value, i) => [i + 1, value]), MOCO);
  cell.loss.forEach((value, i) => loss.mark(i + 1, value, 0));
  return [shares.figure, loss.figure];
}

// |u| on a log scale that stops at 10: an embedding has length 1, so beyond that the linear system has no say.
function model(values, rate) {
  const floor = -5, ceiling = 1, height = values.map((u) => Math.max(Math.log10(Math.abs(u) || 1e-300), floor));
  const gone = height.findIndex((value) => value > ceiling), end = gone < 0 ? values.length : gone + 1;
  const area = panel("The linear system: |u| (solid), predicted slope (dashed)", "Size of the common mode by step, on a logarithmic scale.",
    [0, values.length - 1], [floor, ceiling], [0, 200, 400, 600].filter((step) => step < values.length).map((step) => [step, `${step}`]),
    [[-4, "10⁻⁴"], [-2, "10⁻²"], [0, "1"]], "step");
  area.line([[0, 0], [values.length - 1, 0]], "currentColor", "1 3", 1);
  area.line(height.slice(0, end).map((value, step) => [step, Math.min(value, ceiling)]), MODEL);
  if (rate > 0) {
    const from = end - 1, at = Math.min(height[from], ceiling), slope = rate / Math.LN10, back = Math.max(0, from - (at - floor) / slope);
    area.line([[back, at - slope * (from - back)], [from, at]], "currentColor", "5 3", 1.2);
  }
  return area.figure;
}

function table(head, rows, name) {
  return make("table", { class: name }, make("thead", {}, make("tr", {}, ...head.map((cell) => make("th", { scope: "col" }, cell)))),
    make("tbody", {}, ...rows.map(([first, ...cells]) => make("tr", {}, make("th", { scope: "row" }, first), ...cells.map((cell) => make("td", {}, cell))))));
}

const per = (rate) => (rate === 0 ? "0" : rate.toPrecision(3));

function told(values, rate, age, drive) {
  const passed = values.findIndex((u) => Math.abs(u) > 1);
  const said = rate > 0
    ? `Predicted growth: ${per(rate)} a step, a factor e every ${per(1 / rate)} steps.`
    : `Predicted growth: 0. The queue is ${age} step${age === 1 ? "" : "s"} old, and up to 2 / κ = ${per(2 / drive)} steps it is safe.`;
  return [said, `Slope of the curve's second half: ${growthRate(values).toFixed(4)} a step.`,
    passed < 0 ? `It stays below 1 for all ${values.length - 1} steps of the run.` : `It passes 1, the length of an embedding, after ${passed} of the run's ${values.length - 1} steps.`];
}

function render({ model: given, el }) {
  const [cells, leaks, ages, steps, drives] = ["cells", "leaks", "ages", "steps", "drives"].map((name) => given.get(name));
  const [leak, age] = given.get("first"), state = { row: leaks.indexOf(leak), column: ages.indexOf(age), norm: false, drive: given.get("drive"), shown: 0 };
  const cellAt = (row, column) => cells.find((cell) => cell.leak === leaks[row] && cell.age === ages[column] && cell.norm === state.norm);
  const named = (row, column) => `γ = ${leaks[row]} (m = ${Number((1 - leaks[row]).toFixed(6))}), T = ${ages[column]}`;
  const buttons = leaks.map(() => ages.map(() => make("button", { type: "button" })));
  const title = make("p", { class: "plane-title", "aria-live": "polite" });
  const run = make("div"), system = make("div"), values = make("div");

  const fill = () => {
    const [, words, value, write] = QUANTITIES[state.shown], all = cells.map(value), low = Math.min(...all), high = Math.max(...all);
    buttons.forEach((line, row) => line.forEach((button, column) => {
      const cell = cellAt(row, column), here = row === state.row && column === state.column;
      button.textContent = cell ? write(value(cell)) : "–";
      button.className = cell ? "" : "plane-missing";
      const share = cell ? Math.round(5 + (40 * (value(cell) - low)) / (high - low || 1)) : 0;
      button.style.background = cell ? `color-mix(in srgb, ${MOCO} ${share}%, transparent)` : "none";
      button.setAttribute("aria-label", `${named(row, column)}: ${cell ? `${words} ${write(value(cell))}` : "not recorded"}`);
      button.setAttribute("aria-pressed", `${here}`);
      button.tabIndex = here ? 0 : -1;
    }));
  };
  const draw = () => {
    const { row, column, norm, drive } = state, cell = cellAt(row, column), gamma = leaks[row], time = ages[column];
    fill();
    title.textContent = `${named(row, column)} steps, ${norm ? "with" : "without"} a final batch norm.${cell ? "" : " Not recorded."}`;
    run.replaceChildren(make("p", { class: "plane-head" }, "The recorded run"), ...(cell ? recorded(cell) : [make("p", { class: "plane-none" }, "This run is not recorded.")]));
    const u = commonMode(gamma, time, drive, steps), rate = runawayRate(gamma, time, drive);
    system.replaceChildren(make("p", { class: "plane-head" }, `The linear system, κ = ${drive}`), model(u, rate), ...told(u, rate, time, drive).map((line) => make("p", {}, line)),
      ...(norm ? [make("p", { class: "plane-norm" }, "A final batch norm takes the shared direction out of every batch. The system has no such norm.")] : []));
    values.replaceChildren(...(cell ? [table(["epoch", "kNN", "spread", "cosine", "loss", "guess"], cell.knn.map((knn, i) =>
      [`${i + 1}`, knn.toFixed(3), cell.spread[i].toFixed(3), cell.cosine[i].toFixed(3), cell.loss[i].toFixed(2), cell.chance.toFixed(2)]), "plane-values")] : []));
  };
  const choose = (row, column, focus) => {
    state.row = Math.max(0, Math.min(leaks.length - 1, row));
    state.column = Math.max(0, Math.min(ages.length - 1, column));
    draw();
    if (focus) buttons[state.row][state.column].focus();
  };
  const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -99], End: [0, 99] };
  buttons.forEach((line, row) => line.forEach((button, column) => {
    button.addEventListener("click", () => choose(row, column, false));
    button.addEventListener("keydown", (event) => {
      const move = MOVES[event.key];
      if (!move) return;
      event.preventDefault();
      choose(row + move[0], column + move[1], true);
    });
  }));
  const cellsTable = table(["γ (m)", ...ages.map((time) => `T = ${time}`)], leaks.map((value, row) => [`${value} (${Number((1 - value).toFixed(6))})`, ...buttons[row]]), "plane-grid");
  cellsTable.prepend(make("caption", {}, "γ = 1 − m, and T = K / N: how many steps old the queue is"));

  const norm = make("select", {}, make("option", { value: "without" }, "without"), make("option", { value: "with" }, "with"));
  norm.addEventListener("change", () => { state.norm = norm.value === "with"; draw(); });
  const shown = make("select", {}, ...QUANTITIES.map(([, words], i) => make("option", { value: i }, words)));
  shown.addEventListener("change", () => { state.shown = Number(shown.value); fill(); });
  const slider = make("input", { type: "range", min: 0, max: drives.length - 1, step: 1 }), said = make("output");
  const tell = () => { said.textContent = `${state.drive}`; slider.setAttribute("aria-valuetext", `${state.drive}`); };
  slider.value = drives.indexOf(state.drive);
  slider.addEventListener("input", () => { state.drive = drives[Number(slider.value)]; tell(); draw(); });
  tell();
  const driven = label("Drive κ:", slider);
  driven.append(said);
  said.setAttribute("for", slider.id);
  el.classList.add("plane");
  el.replaceChildren(make("div", { role: "group", "aria-label": "Momentum and queue age" },
    make("div", { class: "plane-top" }, cellsTable, make("div", { class: "plane-controls" },
      label("In the cells, at the end:", shown), label("Final batch norm:", norm), driven,
      make("p", {}, "Choose a cell: click, or move with the arrow keys. The stronger the colour, the larger the number; – is not recorded."))),
    title, make("div", { class: "plane-sides" }, run, system), values));
  draw();
}

export default { render };
