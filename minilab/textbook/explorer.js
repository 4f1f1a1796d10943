// The explorer: two recorded runs side by side, epoch by epoch. Drawn as SVG, with no library.
// Its data are plain values that Python checked; they reach the page as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = { simclr: "var(--simclr, #2368b8)", moco: "var(--moco, #dd5f14)" };
const SIDES = [{ name: "A", dash: "" }, { name: "B", dash: "5 3" }];
const WIDTH = 300, HEIGHT = 190, LEFT = 40, BOTTOM = 32, TOP = 12, RIGHT = 10;

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

const short = (value) =>
  value === 0 ? "0" : Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);

// A panel with axes. `x` and `y` are [least, greatest]; `ticks` may name places on the x axis.
function panel(title, xLabel, x, y, ticks) {
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  const across = (value) => LEFT + ((value - x[0]) / (x[1] - x[0] || 1)) * (WIDTH - LEFT - RIGHT);
  const up = (value) => HEIGHT - BOTTOM - ((value - y[0]) / (y[1] - y[0] || 1)) * (HEIGHT - TOP - BOTTOM);
  const frame = `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}`;
  svg.append(shape("path", { d: frame, fill: "none", stroke: "currentColor", "stroke-width": 0.8 }));
  for (const share of [0, 0.5, 1]) {
    const value = y[0] + share * (y[1] - y[0]);
    svg.append(shape("text", { x: LEFT - 5, y: up(value) + 3.5, "text-anchor": "end" }, short(value)));
    svg.append(shape("path", { d: `M${LEFT - 3} ${up(value)}h3`, stroke: "currentColor" }));
  }
  for (const [place, name] of ticks) {
    svg.append(shape("text", { x: across(place), y: HEIGHT - BOTTOM + 14, "text-anchor": "middle" }, name));
    svg.append(shape("path", { d: `M${across(place)} ${HEIGHT - BOTTOM}v3`, stroke: "currentColor" }));
  }
  svg.append(shape("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 3, "text-anchor": "middle" }, xLabel));
  return { figure: make("figure", {}, make("figcaption", {}, title), svg), svg, across, up };
}

function curve(area, points, run, side, marked) {
  if (!points.length) return;
  const path = points.map(([x, y], i) => `${i ? "L" : "M"}${area.across(x)} ${area.up(y)}`).join("");
  area.svg.append(shape("path", {
    d: path, fill: "none", stroke: COLOURS[run.method], "stroke-width": 1.8, "stroke-dasharray": SIDES[side].dash,
  }));
  const at = marked === undefined ? points : points.filter(([x]) => x === marked);
  for (const [x, y] of at) area.svg.append(mark(area.across(x), area.up(y), side, COLOURS[run.method]));
}

// A's marks are discs and B's are squares: colour is never the only sign.
function mark(x, y, side, colour) {
  return side === 0
    ? shape("circle", { cx: x, cy: y, r: 3.6, fill: colour })
    : shape("rect", { x: x - 3.3, y: y - 3.3, width: 6.6, height: 6.6, fill: colour });
}

function epochTicks(epochs) {
  const step = Math.max(1, Math.ceil(epochs / 5));
  return Array.from({ length: epochs }, (_, i) => i + 1).filter((n) => n === 1 || n % step === 0).map((n) => [n, `${n}`]);
}

function byEpoch(title, name, runs, epoch, from0, reference) {
  const values = runs.flatMap((run) => run.history.flatMap((entry) => [entry[name], ...(reference ? [entry[reference]] : [])]));
  const epochs = Math.max(...runs.map((run) => run.history.length));
  const low = from0 ? 0 : Math.min(...values), high = Math.max(...values);
  const area = panel(title, "epoch", [1, epochs], [low, high + 0.05 * (high - low || 1)], epochTicks(epochs));
  runs.forEach((run, side) => {
    if (reference) {
      const y = area.up(run.history[0][reference]);
      area.svg.append(shape("path", { d: `M${LEFT} ${y}H${WIDTH - RIGHT}`, stroke: COLOURS[run.method], "stroke-dasharray": "1 3" }));
    }
    curve(area, run.history.map((entry, i) => [i + 1, entry[name]]), run, side, Math.min(epoch, run.history.length));
  });
  area.svg.setAttribute("aria-label", `${title}, for A and B by epoch. The table below has the values.`);
  return area.figure;
}

function byAge(runs, epoch) {
  const at = runs.map((run) => ({ run, curve: run.curves[Math.min(epoch, run.curves.length) - 1], entry: entryAt(run, epoch) }));
  if (!at.some(({ curve: c }) => c.age && c.age.length)) return null;
  const ages = [1, 4, 16, 64, 256], log = (age) => Math.log2(age) / 2;
  const area = panel("Do old keys still agree?", "age of a key in steps", [0, 4], [-1, 1], ages.map((age) => [log(age), `${age}`]));
  at.forEach(({ run, curve: c, entry }, side) => {
    if (!c.age) return;
    const y = area.up(entry.embedding_cosine);
    area.svg.append(shape("path", { d: `M${LEFT} ${y}H${WIDTH - RIGHT}`, stroke: COLOURS[run.method], "stroke-dasharray": "1 3" }));
    curve(area, c.age.map((age, i) => [log(age), c.consistency[i]]), run, side);
  });
  area.svg.setAttribute("aria-label", "Cosine between the key of an image then and now, by the age of the key.");
  area.figure.append(make("p", {}, "Cosine of an image's key then and now. Dotted: of two different images."));
  return area.figure;
}

function map(run, side, epoch, labels, classes, chosen) {
  const size = 220, middle = size / 2;
  const svg = shape("svg", { viewBox: `-5 -5 ${size + 10} ${size + 10}`, role: "img" });
  const bytes = atob(run.curves[Math.min(epoch, run.curves.length) - 1].points);
  const signed = (i) => (bytes.charCodeAt(i) << 24) >> 24;
  const order = labels.map((_, i) => i).sort((a, b) => (labels[a] === chosen) - (labels[b] === chosen));
  for (const i of order) {
    const here = chosen < 0 || labels[i] === chosen;
    const hue = (labels[i] * 360) / classes.length;
    svg.append(shape("circle", {
      cx: middle + (signed(2 * i) / 127) * middle, cy: middle - (signed(2 * i + 1) / 127) * middle,
      r: here ? 3 : 2, fill: here ? `hsl(${hue} 65% 50%)` : "none", stroke: here ? "none" : "currentColor",
      "stroke-width": 0.5, opacity: here ? 0.85 : 0.35,
    }));
  }
  const what = chosen < 0 ? "all classes" : classes[chosen];
  svg.setAttribute("aria-label", `Map of ${labels.length} test images in ${SIDES[side].name}, ${what}.`);
  return make("figure", {}, make("figcaption", {}, `${SIDES[side].name}: the features, flattened`), svg);
}

const entryAt = (run, epoch) => run.history[Math.min(epoch, run.history.length) - 1];
const ROWS = [
  ["kNN accuracy", "knn", 3], ["loss (nats)", "loss", 2], ["loss of a guess", "loss_reference", 2],
  ["spread of the loss within the epoch", "loss_std", 3], ["spread of the features", "spread", 2],
  ["effective rank", "effective_rank", 1], ["cosine of an image's query and key", "key_cosine", 3],
  ["lag of the key encoder's weights", "lag", 4],
];

function table(runs, epoch, names) {
  const head = make("tr", {}, make("td"), ...names.map((name, i) => make("th", { scope: "col" }, `${SIDES[i].name}: ${name}`)));
  const body = ROWS.filter(([, key]) => runs.some((run) => key in entryAt(run, epoch))).map(([label, key, digits]) =>
    make("tr", {}, make("th", { scope: "row" }, label),
      ...runs.map((run) => make("td", {}, key in entryAt(run, epoch) ? entryAt(run, epoch)[key].toFixed(digits) : "none"))));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
}

let count = 0;

function chooser(text, options, value, change) {
  const id = `explorer-${(count += 1)}`;
  const select = make("select", { id }, ...options.map(([key, name]) => make("option", { value: key }, name)));
  select.value = value;
  select.addEventListener("change", () => change(select.value));
  return make("label", { for: id }, `${text} `, select);
}

function render({ model, el }) {
  const runs = model.get("runs"), labels = model.get("labels"), classes = model.get("classes");
  const settings = [...new Set(runs.map((run) => run.setting))], seeds = [...new Set(runs.map((run) => run.seed))];
  const longest = Math.max(...runs.map((run) => run.history.length));
  const state = { sides: [...model.get("first")], seed: seeds[0], epoch: longest, chosen: -1 };
  const find = (setting) => runs.find((run) => run.setting === setting && run.seed === state.seed)
    || runs.find((run) => run.setting === setting);

  const slider = make("input", { type: "range", min: 1, max: longest, step: 1, id: `explorer-${(count += 1)}` });
  slider.value = longest;
  const said = make("output", { for: slider.id });
  const panels = make("div", { class: "explorer-panels" }), values = make("div", { class: "explorer-values" });
  const draw = () => {
    const pair = state.sides.map(find);
    said.textContent = `${state.epoch} of ${longest}`;
    slider.setAttribute("aria-valuetext", `epoch ${state.epoch} of ${longest}`);
    const parts = [
      byEpoch("kNN accuracy", "knn", pair, state.epoch, true),
      byEpoch("Loss, and of a guess (dotted)", "loss", pair, state.epoch, false, "loss_reference"),
      byAge(pair, state.epoch),
      byEpoch("Spread of the features", "spread", pair, state.epoch, true),
      byEpoch("Effective rank", "effective_rank", pair, state.epoch, true),
      ...pair.map((run, side) => map(run, side, state.epoch, labels, classes, state.chosen)),
    ];
    panels.replaceChildren(...parts.filter(Boolean));
    const names = pair.map((run) => (run.seed === state.seed ? run.setting : `${run.setting} (seed ${run.seed})`));
    values.replaceChildren(table(pair, state.epoch, names));
  };
  const set = (key, index) => (value) => {
    if (index === undefined) state[key] = Number(value);
    else state[key][index] = value;
    draw();
  };
  slider.addEventListener("input", () => set("epoch")(slider.value));
  const named = settings.map((setting) => [setting, setting]);
  const controls = make("div", { class: "explorer-controls" },
    ...SIDES.map((side, i) => chooser(`${side.name}, ${i ? "dashed" : "solid"}:`, named, state.sides[i], set("sides", i))),
    chooser("Seed:", seeds.map((seed) => [seed, `${seed}`]), state.seed, set("seed")),
    make("label", { for: slider.id }, "Epoch: ", slider, " ", said),
    chooser("On the maps:", [[-1, "all classes"], ...classes.map((name, i) => [i, name])], -1, set("chosen")));
  const title = model.get("title");
  el.classList.add("explorer");
  el.replaceChildren(make("div", { role: "group", "aria-label": `Explorer: ${title}` },
    make("p", { class: "explorer-title" }, title), controls, panels, values));
  draw();
}

export default { render };
