// The queue in motion: keys enter, age and leave. One cell stands for a fortieth of the queue.

const CELLS = 40;

export function age(place, keys, batch) {
  return Math.floor(place / batch) + 1; // in steps; place 0 is the newest key, which the last step made
}

// The share of a gap between the two encoders that the average has closed since the key was made.
export const moved = (steps, m) => 1 - m ** steps;

function make(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

let count = 0;

function labelled(words, control) {
  control.id = `album-${(count += 1)}`;
  return make("label", { for: control.id }, `${words} `, control);
}

function render({ model, el }) {
  const state = { keys: 4096, batch: 256, m: 0.99, step: 0, place: 0, timer: 0, ...model.get("start") };
  const number = (value) => value.toLocaleString("en-US");
  const row = make("div", { class: "album-row", "aria-hidden": "true" });
  const cells = Array.from({ length: CELLS }, () => row.appendChild(make("span")));
  const cursor = make("input", { type: "range", min: 0, max: CELLS - 1, step: 1, value: 0 });
  const said = make("p", { class: "album-said", "aria-live": "polite" });
  const about = make("p", { class: "album-about" });
  const play = make("button", { type: "button" }, "Play");

  const draw = () => {
    const filled = Math.min(1, (state.step * state.batch) / state.keys);
    cells.forEach((cell, i) => {
      const first = Math.floor((i * state.keys) / CELLS);
      const real = first < state.step * state.batch;
      cell.className = `${real ? "album-key" : "album-random"}${i === state.place ? " album-here" : ""}`;
      cell.style.opacity = real ? 1 - 0.85 * moved(age(first, state.keys, state.batch), state.m) : 1;
    });
    const first = Math.floor((state.place * state.keys) / CELLS);
    const steps = age(first, state.keys, state.batch);
    said.textContent = first < state.step * state.batch
      ? `Key number ${number(first + 1)} from the newest: made ${number(steps)} step${steps === 1 ? "" : "s"} ago. `
        + `Since then the key encoder has closed ${(100 * moved(steps, state.m)).toFixed(0)} % of a gap to the query encoder.`
      : `Row ${number(first + 1)} from the newest: still a random vector.`;
    about.textContent = `Step ${number(state.step)}. ${(100 * filled).toFixed(0)} % of the rows are real keys. `
      + `The oldest key of a full queue is ${number(Math.ceil(state.keys / state.batch))} steps old; `
      + `the key encoder averages over about ${number(Math.round(1 / (1 - state.m)))}.`;
    cursor.setAttribute("aria-valuetext", said.textContent);
  };
  const stop = () => { clearInterval(state.timer); state.timer = 0; play.textContent = "Play"; };
  const advance = (steps) => { state.step += steps; draw(); };
  const choose = (key, values) => {
    const select = make("select", {}, ...values.map((value) => make("option", { value }, number(value))));
    if (key === "m") [...select.options].forEach((option) => { option.textContent = option.value; });
    select.value = state[key];
    select.addEventListener("change", () => { state[key] = Number(select.value); state.step = 0; draw(); });
    return select;
  };
  cursor.addEventListener("input", () => { state.place = Number(cursor.value); draw(); });
  const next = make("button", { type: "button" }, "One step");
  next.addEventListener("click", () => advance(1));
  const fill = make("button", { type: "button" }, "Fill it");
  fill.addEventListener("click", () => { state.step = Math.max(state.step, Math.ceil(state.keys / state.batch)); draw(); });
  play.addEventListener("click", () => {
    if (state.timer) { stop(); return; }
    play.textContent = "Pause";
    const jump = Math.max(1, Math.round(state.keys / state.batch / 40));
    state.timer = setInterval(() => {
      if (!el.isConnected || state.step * state.batch >= 2 * state.keys) stop();
      else advance(jump);
    }, 300);
  });
  el.classList.add("album");
  el.replaceChildren(make("div", { role: "group", "aria-label": "The queue in motion" },
    make("div", { class: "album-controls" },
      labelled("Keys K:", choose("keys", [1024, 4096, 16384, 65536])), labelled("Images a step N:", choose("batch", [64, 256, 1024])),
      labelled("m:", choose("m", [0.9, 0.99, 0.999])), next, fill, play),
    make("div", { class: "album-ends", "aria-hidden": "true" }, make("span", {}, "newest"), make("span", {}, "oldest")), row,
    labelled("Look at a key:", cursor), said, about));
  draw();
  return stop; // when the view goes, so does the clock
}

export default { render };
