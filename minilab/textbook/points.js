// The page of points on a circle. `points.py` puts points_model.js in front of it: create, train, embed, guess, times, mean.

const SVG = "http://www.w3.org/2000/svg", STRETCH = 1500, RECENT = 50, GROUPS = 8;
const NAMES = { simclr: "SimCLR", moco: "MoCo" }, COLOURS = { simclr: "#2368b8", moco: "#dd5f14" };
// field, words, whether it acts at once (else it begins a new run)
const SLIDERS = [
  ["batch", "Images a step, N", true], ["queue", "Keys in the queue, K", false], ["momentum", "Momentum coefficient, m", true],
  ["temperature", "Temperature", true], ["rate", "Learning rate", true], ["images", "Images in all", false],
  ["width", "Spread of W at the start", false], ["seed", "Seed", false],
];
let count = 0;

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

const place = ([x, y], radius) => [160 + radius * x, 160 - radius * y].map((value) => value.toFixed(1));
const dots = (points, radius) => points.map((point, i) => `M${place(point, radius(i)).join(" ")}h0`).join("");
const crosses = (points, radius) => points.map((point) => {
  const [x, y] = place(point, radius);
  return `M${x - 3.5} ${y - 3.5}l7 7m0 -7l-7 7`;
}).join("");

// Queries on the circle, keys just within, the queue without: the older a key, the further out and the fainter.
function circle() {
  const svg = shape("svg", { viewBox: "0 0 320 320", role: "img", class: "points-circle" });
  const add = (name, attributes) => svg.appendChild(shape(name, { fill: "none", stroke: "currentColor", ...attributes }));
  add("circle", { cx: 160, cy: 160, r: 96, "stroke-width": 0.8 });
  const groups = times(GROUPS, (i) => add("path", { class: "points-old", opacity: 1 - (0.65 * i) / GROUPS }));
  const arrow = add("path", { "stroke-width": 2 }), links = add("path", { "stroke-width": 0.6 });
  const keys = add("path", { class: "points-key" }), queries = add("path", { class: "points-query" });
  return { svg, draw: (run) => {
    const { method } = run.setting, moco = method === "moco", size = run.queue.length;
    const old = moco ? times(size, (age) => run.queue[(run.oldest - 1 - age + 2 * size) % size]) : [];
    groups.forEach((group, i) => {
      const from = Math.ceil((i * size) / GROUPS), until = Math.ceil(((i + 1) * size) / GROUPS);
      group.setAttribute("d", dots(old.slice(from, until), (j) => 106 + (46 * (from + j)) / size));
    });
    const made = moco ? embed(run.keyWeights, run.images) : [];
    keys.setAttribute("d", crosses(made, 82));
    links.setAttribute("d", made.map((key, i) => `M${place(key, 82).join(" ")}L${place(run.points[i], 96).join(" ")}`).join(""));
    queries.setAttribute("d", dots(run.points, () => 96));
    queries.setAttribute("stroke", `var(--${method}, ${COLOURS[method]})`);
    arrow.setAttribute("d", `M160 160L${place(run.mean, 96).join(" ")}`);
    svg.setAttribute("aria-label", `${run.points.length} points on a circle, step ${run.steps}, spread ${run.spread.toFixed(2)}.`);
  } };
}

// Loss over that of a guess (solid) and spread (dashed) at every step so far, at most 150 places.
function chart() {
  const svg = shape("svg", { viewBox: "0 0 320 170", role: "img", class: "points-chart" });
  const up = (value) => (140 - 86 * Math.min(value, 1.5)).toFixed(1);
  const add = (name, attributes, text) => svg.appendChild(shape(name, attributes, text));
  for (const value of [0, 0.5, 1, 1.5]) add("text", { x: 26, y: Number(up(value)) + 4, "text-anchor": "end" }, value.toFixed(1));
  add("path", { d: "M32 8V140H312", fill: "none", stroke: "currentColor", "stroke-width": 0.8 });
  add("path", { d: `M32 ${up(1)}H312`, stroke: "currentColor", "stroke-width": 0.8, "stroke-dasharray": "1 3" });
  const last = add("text", { x: 312, y: 156, "text-anchor": "end" }), line = { fill: "none", stroke: "currentColor" };
  add("text", { x: 32, y: 156, "text-anchor": "middle" }, "0");
  const loss = add("path", { ...line, "stroke-width": 1.6 });
  const spread = add("path", { ...line, "stroke-width": 1.6, "stroke-dasharray": "5 3" });
  return { svg, draw: (history) => {
    const size = Math.max(1, Math.ceil(history.length / 150)), whole = Math.max(100, history.length);
    const trace = (key) => times(Math.ceil(history.length / size), (i) => {
      const part = history.slice(i * size, (i + 1) * size);
      const across = (32 + (280 * (i * size + part.length)) / whole).toFixed(1);
      return `${i ? "L" : "M"}${across} ${up(mean(part.map((entry) => entry[key])))}`;
    }).join("");
    loss.setAttribute("d", trace("share"));
    spread.setAttribute("d", trace("spread"));
    last.textContent = `step ${whole.toLocaleString("en-US")}`;
    svg.setAttribute("aria-label", `Loss over that of a guess, and spread, at each of ${history.length} steps.`);
  } };
}

function verdict(run, share, spread) {
  const { method, batch, queue } = run.setting, random = method === "moco" ? queue - run.steps * batch : 0;
  if (!run.steps) return "Not trained yet.";
  if (random > 0) return `${random} of ${queue} keys in the queue are still random vectors, which are easy to tell apart.`;
  const together = Math.max(spread, run.spread) < 0.15; // now, and over the last steps
  if (together && share < 0.9) return "Runaway: the loss is below that of a guess, and the points lie together.";
  if (together) return "Almost one point: the images are not told apart.";
  return spread < 0.6 ? "Partly spread." : "Spread round the circle.";
}

// The current figures as a table.
function table(run, loss, spread) {
  const { method, batch, queue, momentum } = run.setting, moco = method === "moco";
  const rows = [
    ["step", run.steps.toLocaleString("en-US")],
    [`loss, over the last ${RECENT} steps`, run.steps ? loss.toFixed(3) : "none"],
    [`loss of a guess, log(${moco ? "K + 1" : "2N - 1"})`, guess(run.setting).toFixed(3)],
    [`spread, over the last ${RECENT} steps`, spread.toFixed(3)],
    ["length of the points' mean", Math.hypot(...run.mean).toFixed(3)],
    ["turns of that mean so far", (Math.round(100 * run.turns) / 100 || 0).toFixed(2)],
    ["(1 - m) K / N", moco ? Number((((1 - momentum) * queue) / batch).toPrecision(3)).toString() : "no queue"],
  ];
  return make("table", {}, make("tbody", {}, ...rows.map(([head, value]) =>
    make("tr", {}, make("th", { scope: "row" }, head), make("td", {}, value)))));
}

// What each sign stands for.
function legend(method) {
  const part = (attributes, words) => {
    const svg = shape("svg", { viewBox: "0 0 20 14", "aria-hidden": "true" });
    svg.append(shape("path", { fill: "none", stroke: "currentColor", ...attributes }));
    return make("span", {}, svg, ` ${words}`);
  };
  const moco = method === "moco", line = { d: "M0 7h20", "stroke-width": 2 };
  return [
    part({ d: "M10 7h0", class: "points-query", stroke: `var(--${method}, ${COLOURS[method]})` },
      moco ? "images, query encoder" : "images"),
    ...(moco ? [part({ d: "M6 3l8 8m0 -8l-8 8", class: "points-key" }, "images, key encoder"),
      part({ d: "M4 7h0M10 7h0M16 7h0", class: "points-old" }, "queue, the oldest furthest out")] : []),
    part(line, "from the centre: mean of the images"), part(line, "below: loss / loss of a guess"),
    part({ ...line, "stroke-dasharray": "5 3" }, "below: spread"),
  ];
}

function labelled(words, control, ...more) {
  control.id = `points-${(count += 1)}`;
  return make("label", { for: control.id }, `${words} `, ...more, control);
}

function select(pairs, value, change) {
  const node = make("select", {}, ...pairs.map(([key, words]) => make("option", { value: key }, words)));
  node.value = value;
  node.addEventListener("change", () => change(node.value));
  return node;
}

function render({ model, el }) {
  const choices = model.get("choices"), presets = model.get("presets"), first = model.get("first");
  const reduced = window.matchMedia("(prefers-reduced-motion: reduce)");
  const setting = { ...presets[first].setting }, picture = circle(), graph = chart();
  const paces = [1, 2, 5, 20].map((steps) => (reduced.matches ? 25 * steps : steps)); // jumps, not motion
  let run, history, until = 0, playing = 0, speed = paces[1];

  const values = make("div"), signs = make("p", { class: "points-legend" }), said = make("p", { class: "points-said" });
  const about = make("p", { class: "points-about" });
  const button = (words, act) => {
    const node = make("button", { type: "button" }, words);
    node.addEventListener("click", act);
    return node;
  };
  const draw = () => {
    const recent = history.slice(-RECENT), average = (key) => mean(recent.map((entry) => entry[key]));
    const spread = recent.length ? average("spread") : run.spread;
    picture.draw(run);
    graph.draw(history);
    values.replaceChildren(table(run, average("loss"), spread));
    said.textContent = verdict(run, average("share"), spread);
  };
  const advance = (steps) => {
    for (let step = 0; step < steps; step += 1) {
      train(run);
      history.push({ loss: run.loss, share: run.loss / guess(run.setting), spread: run.spread });
    }
    draw();
  };
  const begin = () => { [run, history, until] = [create({ ...setting }), [], STRETCH]; draw(); };
  const stop = () => { playing = 0; play.textContent = "Play"; said.setAttribute("aria-live", "polite"); };
  const tick = (turn) => {
    if (turn !== playing) return; // paused, or played anew
    if (!el.isConnected || run.steps >= until) { stop(); return; }
    advance(Math.min(until - run.steps, speed));
    if (reduced.matches) setTimeout(tick, 1000, turn);
    else requestAnimationFrame(() => tick(turn));
  };
  const play = button("Play", () => {
    if (playing) { stop(); return; }
    play.textContent = "Pause";
    said.setAttribute("aria-live", "off"); // else a reader's voice would never end
    until = run.steps + STRETCH;
    tick(playing = (count += 1));
  });
  const step = button("One step", () => { stop(); advance(1); });
  const reset = button("Start again", () => { stop(); begin(); });

  const sliders = SLIDERS.map(([name, words, atOnce]) => {
    const input = make("input", { type: "range", min: 0, max: choices[name].length - 1, step: 1 });
    const shown = make("span", { class: "points-value" });
    input.addEventListener("input", () => {
      setting[name] = choices[name][Number(input.value)];
      change(atOnce);
    });
    const show = () => {
      const least = name === "batch" && setting.method === "simclr" ? choices[name].findIndex((value) => value >= 2) : 0;
      input.min = least; // with one image a step SimCLR has no negatives
      input.value = choices[name].indexOf(setting[name]);
      input.disabled = setting.method === "simclr" && (name === "queue" || name === "momentum");
      shown.textContent = input.disabled ? "none" : setting[name].toString();
      input.setAttribute("aria-valuetext", shown.textContent);
    };
    return { show, label: labelled(words, input, shown) };
  });
  const show = () => {
    method.value = setting.method;
    signs.replaceChildren(...legend(setting.method));
    about.textContent = preset.value ? presets[preset.value].about : "Your own settings.";
    sliders.forEach((slider) => slider.show());
  };
  const change = (atOnce) => {
    preset.value = "";
    show();
    if (!atOnce) begin();
    else { run.setting = { ...setting }; draw(); }
  };
  const method = select(Object.entries(NAMES), setting.method, (value) => {
    setting.method = value;
    if (value === "simclr") setting.batch = Math.max(2, setting.batch);
    change(false);
  });
  const named = [...Object.keys(presets).map((name) => [name, name]), ["", "your own"]];
  const preset = select(named, first, (value) => {
    if (value) { Object.assign(setting, presets[value].setting); stop(); begin(); }
    show();
  });
  const pace = select(paces.map((steps) => [steps, `${steps}`]), speed, (value) => { speed = Number(value); });
  el.classList.add("points");
  el.replaceChildren(make("div", { role: "group", "aria-label": "Points on a circle" },
    make("div", { class: "points-top" }, labelled("Show:", preset), play, step, reset, labelled("Steps a picture:", pace)),
    about, said,
    make("div", { class: "points-body" },
      make("div", {}, picture.svg, graph.svg, signs),
      make("div", { class: "points-controls" }, labelled("Method", method), ...sliders.map((slider) => slider.label))),
    values));
  begin();
  stop();
  show();
  return stop; // when the view goes, so does the clock
}

export default { render };
