// One query's softmax: minilab/spectra/repulsion.py's `contrast`, on the page. A test compares the two on random cosines.

const STEPS = 32767, SHOWN = 30;
const sum = (values) => values.reduce((total, value) => total + value, 0);

// The cosines of the positive and of the negatives, as minilab/textbook/softmax.py packs them.
export function decode(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const all = Array.from({ length: bytes.length / 2 }, (_, i) => view.getInt16(2 * i, true) / STEPS);
  return { positive: all[0], negatives: all.slice(1) };
}

export function contrast(positive, negatives, temperature) {
  const logits = negatives.map((cosine) => cosine / temperature), most = logits.reduce((a, b) => Math.max(a, b));
  const total = most + Math.log(sum(logits.map((logit) => Math.exp(logit - most))));
  const gap = total - positive / temperature, missed = 1 / (1 + Math.exp(-gap)); // missed is 1 - p+, with all its digits
  const among = logits.map((logit) => logit - total); // log of each share among the negatives
  const shares = among.map((value) => Math.exp(value) * missed);
  const along = (cosine) => Math.sqrt(1 - cosine * cosine), pull = missed / temperature;
  const entropy = Math.abs(sum(among.map((value) => Math.exp(value) * value)));
  return {
    positive: 1 / (1 + Math.exp(gap)), shares, pull, pullAlong: pull * along(positive), entropy, effective: Math.exp(entropy),
    forces: shares.map((share, i) => (share / temperature) * along(negatives[i])),
    loss: Math.max(gap, 0) + Math.log1p(Math.exp(-Math.abs(gap))),
  };
}

// 1, 2, 4, ... and all of them.
export function sizes(count) {
  const found = [];
  for (let size = 1; size < count; size *= 2) found.push(size);
  return [...found, count];
}

// ---- The page ----------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 320, HEIGHT = 170, LEFT = 46, RIGHT = 6, TOP = 8, BOTTOM = 22;

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

const n = (value) => value.toLocaleString("en-US");
const percent = (share) => `${(100 * share).toFixed(1)} %`;

// Three digits that count.
function short(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1000) return n(Math.round(value));
  if (Math.abs(value) >= 1e-6) return `${Number(value.toPrecision(3))}`;
  const [digits, power] = value.toExponential(1).split("e-");
  return `${digits} · 10⁻${[...power].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

// A slider over the places of a list; what it says is the value.
function chooser(words, values, at, say, change) {
  const slider = make("input", { type: "range", min: 0, max: values.length - 1, step: 1, id: `softmax-${(count += 1)}` });
  const said = make("output", { for: slider.id });
  const tell = () => {
    said.textContent = say(values[Number(slider.value)]);
    slider.setAttribute("aria-valuetext", said.textContent);
  };
  slider.value = at;
  slider.addEventListener("input", () => { tell(); change(values[Number(slider.value)]); });
  tell();
  return make("label", { for: slider.id }, make("span", {}, words), slider, said);
}

// The whole softmax as one strip: the positive, the hardest negatives, the rest.
function strip(parts) {
  const pieces = parts.filter(([, share]) => share > 0);
  const bar = make("div", { class: "softmax-strip", "aria-hidden": "true" }, ...pieces.map(([kind, share]) => {
    const piece = make("span", { class: `softmax-${kind}` });
    piece.style.width = `${100 * share}%`;
    return piece;
  }));
  const key = make("ul", { class: "softmax-key" }, ...parts.map(([kind, share, words]) =>
    make("li", {}, make("span", { class: `softmax-swatch softmax-${kind}`, "aria-hidden": "true" }), `${words} ${percent(share)}`)));
  return [bar, key];
}

// Bars in nats, each beside its limit; the table has the same numbers.
function nats(rows) {
  const longest = Math.max(...rows.flatMap(([, value, limit]) => [value, limit])) || 1;
  return make("div", { class: "softmax-nats", "aria-hidden": "true" }, ...rows.map(([words, value, limit, name, kind]) => {
    const bar = make("div", { class: `softmax-bar softmax-${kind}` }), mark = make("div", { class: "softmax-limit" });
    bar.style.width = `${(100 * value) / longest}%`;
    mark.style.left = `${(100 * limit) / longest}%`;
    return make("div", { class: "softmax-line" }, make("span", {}, words), make("div", { class: "softmax-track" }, bar, mark),
      make("span", {}, `${short(value)}; ${name} ${short(limit)}`));
  }));
}

function bars(title, values, label) {
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
  const most = Math.max(...values) || 1, room = (WIDTH - LEFT - RIGHT) / SHOWN;
  const up = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - TOP - BOTTOM);
  for (const share of [0, 0.5, 1]) {
    svg.append(shape("text", { x: LEFT - 6, y: up(share * most) + 3.5, "text-anchor": "end" }, short(Number((share * most).toPrecision(2)))));
    svg.append(shape("path", { d: `M${LEFT - 4} ${up(share * most)}h4`, stroke: "currentColor" }));
  }
  values.forEach((value, i) => svg.append(shape("rect", {
    x: LEFT + (i + 0.12) * room, y: up(value), width: 0.76 * room, height: HEIGHT - BOTTOM - up(value), class: "softmax-column",
  })));
  svg.append(shape("path", { d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - RIGHT}`, fill: "none", stroke: "currentColor", "stroke-width": 0.8 }));
  for (const place of [1, 10, 20, 30])
    svg.append(shape("text", { x: LEFT + (place - 0.5) * room, y: HEIGHT - 7, "text-anchor": "middle" }, `${place}`));
  return make("figure", {}, make("figcaption", {}, title), svg);
}

function table(head, rows, name) {
  return make("table", { class: name },
    ...(head.length ? [make("thead", {}, make("tr", {}, ...head.map((cell) => make("th", { scope: "col" }, cell))))] : []),
    make("tbody", {}, ...rows.map(([first, ...cells]) =>
      make("tr", {}, make("th", { scope: "row" }, first), ...cells.map((cell) => make("td", {}, cell))))));
}

function render({ model, el }) {
  const { positive, negatives } = decode(model.get("cosines"));
  const temperatures = model.get("temperatures"), state = { tau: model.get("temperature"), size: negatives.length };
  const drawing = make("div"), said = make("p", { class: "softmax-said", "aria-live": "polite" }), values = make("div");
  const hardest = make("div"), fold = make("details", {}, make("summary", {}, "The hardest negatives as numbers"), hardest);
  const draw = () => {
    const { tau, size } = state, used = negatives.slice(0, size), found = contrast(positive, used, tau);
    const order = used.map((_, i) => i).sort((a, b) => used[b] - used[a] || a - b), top = order.slice(0, SHOWN);
    const shares = top.map((i) => found.shares[i]), forces = top.map((i) => found.forces[i]), left = order.slice(SHOWN);
    const many = `${top.length} hardest negative${top.length === 1 ? "" : "s"}`;
    drawing.replaceChildren(
      ...strip([["positive", found.positive, "positive"], ["negative", sum(shares), many],
        ["rest", sum(left.map((i) => found.shares[i])), `the other ${n(left.length)}`]]),
      nats([["entropy", found.entropy, Math.log(size), "at most", "negative"], ["loss", found.loss, Math.log(size + 1), "a guess:", "loss"]]),
      make("div", { class: "softmax-panels" },
        bars("Share, hardest first", shares, `Shares of the ${many}: from ${short(shares[0])} to ${short(shares[shares.length - 1])}.`),
        bars("Force: share / τ · √(1 − cos²)", forces, `Forces of the ${many}: the largest is ${short(Math.max(...forces))}.`)));
    said.textContent = `At τ = ${tau} the ${n(size)} negative${size === 1 ? "" : "s"} count${size === 1 ? "s" : ""} as ${short(found.effective)}.`;
    values.replaceChildren(table([], [
      ["entropy of the negatives, nats", short(found.entropy), `at most log K = ${short(Math.log(size))}`],
      ["effective negatives", short(found.effective), `of ${n(size)}`],
      ["loss, nats", short(found.loss), `log(K + 1) = ${short(Math.log(size + 1))}`],
      ["share of the positive, p₊", short(found.positive), `a guess: ${short(1 / (size + 1))}`],
      ["pull of the positive, (1 − p₊) / τ", short(found.pull), `at most 1 / τ = ${short(1 / tau)}`],
      ["that pull along the sphere", short(found.pullAlong), `its cosine: ${positive.toFixed(3)}`],
      ["push of the hardest negative", short(forces[0]), `its cosine: ${used[top[0]].toFixed(3)}`],
      ["all pushes, lengths added", short(sum(found.forces)), `the ${top.length} hardest: ${short(sum(forces))}`],
    ], "softmax-values"));
    hardest.replaceChildren(table(["", "cosine", "share", "force"],
      top.map((i, place) => [`${place + 1}`, used[i].toFixed(3), short(found.shares[i]), short(found.forces[i])]), "softmax-hardest"));
  };
  const set = (key) => (value) => { state[key] = value; draw(); };
  const counts = sizes(negatives.length);
  el.classList.add("softmax");
  el.replaceChildren(make("div", { role: "group", "aria-label": "Softmax of one query" },
    make("div", { class: "softmax-controls" },
      chooser("Temperature τ:", temperatures, temperatures.indexOf(state.tau), (tau) => `${tau}`, set("tau")),
      chooser("Negatives K:", counts, counts.length - 1, n, set("size"))),
    drawing, said, values, fold));
  draw();
}

export default { render };
