// The budget planner: minilab/memory.py's arithmetic, on the page. A test compares the two on random budgets.

const OVERHEAD = 1e9, USABLE = 0.9, ENOUGH = 256;
const halved = (side, stride) => Math.ceil(side / stride);

function convolutions(network, size) {
  const [kernel, stride] = network.stem;
  let side = halved(size, stride), channels = network.widths[0];
  const found = [[3, channels, kernel, side, 0]];
  side = halved(side, network.pool ? 2 : 1);
  network.blocks.forEach((count, stage) => {
    const width = network.widths[stage], out = width * network.expansion;
    for (let block = 0; block < count; block += 1) {
      const step = stage > 0 && block === 0 ? 2 : 1, after = halved(side, step);
      if (network.expansion === 1) found.push([channels, width, 3, after, 0], [width, width, 3, after, 0]);
      else found.push([channels, width, 1, side, 0], [width, width, 3, after, 0], [width, out, 1, after, 0]);
      if (step !== 1 || channels !== out) found.push([channels, out, 1, after, 1]);
      side = after;
      channels = out;
    }
  });
  return found;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const weights = (network) => sum(convolutions(network, 32).map(([i, o, k]) => i * o * k ** 2 + 2 * o));

function kept(network, size) {
  const own = 3 * size ** 2 + sum(convolutions(network, size).map(([, out, , side, last]) => (2 - last) * out * side ** 2));
  return own + (network.pool ? 3 * network.widths[0] * halved(halved(size, network.stem[1]), 2) ** 2 : 0);
}

export function deviceBytes(budget, networks, method, batch = budget.batch) {
  const network = networks[budget.network], images = Math.ceil(batch / budget.devices);
  const features = network.widths[network.widths.length - 1] * network.expansion;
  const all = 4 * (weights(network) + features * (features + 1) + (features + 1) * budget.dim);
  const view = kept(network, budget.size) * (budget.half ? 2 : 4);
  return method === "simclr"
    ? { weights: 3 * all, activations: 2 * images * view, logits: 8 * 2 * images * 2 * batch, queue: 0, overhead: OVERHEAD }
    : { weights: 4 * all, activations: images * view, logits: 8 * images * (budget.queue + 1),
        queue: 4 * budget.queue * budget.dim, overhead: OVERHEAD };
}

export function largestBatch(budget, networks, method) {
  const room = USABLE * budget.gigabytes * 1e9;
  let low = 0, high = 2 ** 20;
  while (low < high) {
    const middle = Math.floor((low + high + 1) / 2);
    if (sum(Object.values(deviceBytes(budget, networks, method, middle * budget.devices))) <= room) low = middle;
    else high = middle - 1;
  }
  return low * budget.devices;
}

const n = (value) => value.toLocaleString("en-US");

export function recommend(budget, networks) {
  const room = USABLE * budget.gigabytes * 1e9, need = (method) => sum(Object.values(deviceBytes(budget, networks, method)));
  const simclr = need("simclr"), moco = need("moco"), most = largestBatch(budget, networks, "simclr");
  const age = Math.ceil(budget.queue / budget.batch);
  if (simclr <= room && budget.batch >= ENOUGH)
    return ["simclr", [
      `SimCLR fits at ${n(budget.batch)} images a step: ${n(2 * budget.batch - 2)} fresh negatives for each anchor.`,
      "It is the simpler system: one encoder, no queue, nothing stale.",
      `MoCo would free ${((simclr - moco) / 1e9).toFixed(1)} GB a device, if memory is wanted for other things.`,
    ]];
  if (moco <= room)
    return ["moco", [
      simclr <= room
        ? `SimCLR fits at ${n(budget.batch)} images a step, but has only ${n(2 * budget.batch - 2)} negatives.`
        : `SimCLR does not fit at ${n(budget.batch)} images a step; ${n(most)} is the most.`,
      `MoCo fits, with ${n(budget.queue)} negatives that are up to ${n(age)} steps old.`,
      `Choose m so that 1 / (1 - m) is well above ${n(age)}.`,
    ]];
  return ["neither", [
    `Neither fits at ${n(budget.batch)} images a step.`,
    `The most that fits: ${n(most)} for SimCLR, ${n(largestBatch(budget, networks, "moco"))} for MoCo.`,
    "Use a smaller batch, half precision, smaller images, or chunks (GradCache).",
  ]];
}

// ---- The page ----------------------------------------------------------------------------------

const NAMES = { simclr: "SimCLR", moco: "MoCo" };
const KINDS = [
  ["weights", "weights, gradients, optimiser"], ["activations", "activations"], ["logits", "logits"],
  ["queue", "queue"], ["overhead", "the GPU's own, roughly"],
];
// name, words, least, greatest
const NUMBERS = [
  ["size", "Image side, pixels:", 8, 1024], ["devices", "Accelerators:", 1, 4096],
  ["gigabytes", "Memory of each, GB:", 1, 10000], ["batch", "Images a step, N:", 2, 2 ** 20],
  ["queue", "Keys in the queue, K:", 1, 2 ** 24], ["dim", "Numbers in a key, d:", 1, 65536],
];

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

let count = 0;

function labelled(words, control) {
  control.id = `planner-${(count += 1)}`;
  return make("label", { for: control.id }, `${words} `, control);
}

const gigabytes = (bytes) => (bytes / 1e9 >= 0.01 ? (bytes / 1e9).toFixed(2) : bytes === 0 ? "0" : "< 0.01");

function table(parts, budget, networks) {
  const row = (head, cells) => make("tr", {}, make("th", { scope: "row" }, head), ...cells.map((cell) => make("td", {}, cell)));
  const methods = Object.keys(NAMES), totals = methods.map((method) => sum(Object.values(parts[method])));
  const fits = totals.map((total) => (total <= USABLE * budget.gigabytes * 1e9 ? "fits" : "does not fit"));
  return make("table", {},
    make("thead", {}, make("tr", {}, make("td", {}, "GB on each device"), ...methods.map((m) => make("th", { scope: "col" }, NAMES[m])))),
    make("tbody", {},
      ...KINDS.map(([kind, words]) => row(words, methods.map((method) => gigabytes(parts[method][kind])))),
      row("in all", totals.map(gigabytes)),
      row(`in 90 % of ${n(budget.gigabytes)} GB`, fits),
      row("most images a step that fit", methods.map((method) => n(largestBatch(budget, networks, method))))));
}

// One bar a method, against the memory of a device; the table has the same numbers.
function bars(parts, budget) {
  const room = budget.gigabytes * 1e9, totals = Object.keys(NAMES).map((method) => sum(Object.values(parts[method])));
  const longest = Math.max(room, ...totals);
  return make("div", { class: "planner-bars", "aria-hidden": "true" }, ...Object.keys(NAMES).map((method, i) => {
    const bar = make("div", { class: "planner-bar" });
    bar.style.width = `${(100 * totals[i]) / longest}%`;
    bar.style.background = `var(--${method}, ${method === "moco" ? "#dd5f14" : "#2368b8"})`;
    const limit = make("div", { class: "planner-limit" });
    limit.style.left = `${(100 * room) / longest}%`;
    return make("div", { class: "planner-line" }, make("span", {}, NAMES[method]), make("div", { class: "planner-track" }, bar, limit));
  }));
}

function render({ model, el }) {
  const networks = model.get("networks"), budget = { ...model.get("budget") };
  const out = make("div", { class: "planner-out", "aria-live": "polite" });
  const draw = () => {
    const wrong = NUMBERS.filter(([key, , least, most]) => !(budget[key] >= least && budget[key] <= most
      && (key === "gigabytes" || Number.isInteger(budget[key]))));
    if (wrong.length) {
      out.replaceChildren(...wrong.map(([, words, least, most]) =>
        make("p", { class: "planner-wrong" }, `${words} a number from ${n(least)} to ${n(most)}.`)));
      return;
    }
    const parts = Object.fromEntries(Object.keys(NAMES).map((method) => [method, deviceBytes(budget, networks, method)]));
    const [choice, reasons] = recommend(budget, networks);
    const verdict = choice === "neither" ? "Neither fits." : `Start with ${NAMES[choice]}.`;
    out.replaceChildren(bars(parts, budget), table(parts, budget, networks),
      make("p", { class: "planner-verdict" }, verdict), make("ul", {}, ...reasons.map((reason) => make("li", {}, reason))));
  };
  const network = make("select", {}, ...Object.keys(networks).map((name) => make("option", { value: name }, name)));
  network.value = budget.network;
  network.addEventListener("change", () => { budget.network = network.value; draw(); });
  const precision = make("select", {}, make("option", { value: "4" }, "4 bytes (float32)"), make("option", { value: "2" }, "2 bytes (half)"));
  precision.value = budget.half ? "2" : "4";
  precision.addEventListener("change", () => { budget.half = precision.value === "2"; draw(); });
  const numbers = NUMBERS.map(([key, words, least, most]) => {
    const input = make("input", { type: "number", min: least, max: most, step: key === "gigabytes" ? "any" : 1 });
    input.value = budget[key];
    input.addEventListener("input", () => { budget[key] = input.value === "" ? NaN : Number(input.value); draw(); });
    return labelled(words, input);
  });
  el.classList.add("planner");
  el.replaceChildren(make("div", { role: "group", "aria-label": "Budget planner" },
    make("div", { class: "planner-controls" }, labelled("Network:", network), ...numbers, labelled("An activation takes:", precision)), out));
  draw();
}

export default { render };
