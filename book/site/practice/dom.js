/* Building the page. Text of a card is only ever set as text, never as HTML. */

/** An element with properties (`class`, `on`, `aria-…` and `data-…` too) and children: nodes, strings or null. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (name === "class" || name === "for" || name === "role" || name.includes("-")) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

export const button = (label, run, kind = "") =>
  el("button", { type: "button", class: `p-button ${kind}`.trim(), on: { click: run } }, label);

const MATHS = /(?:\$([^$\n]+)\$|\\\(([^\n]+?)\\\))([.,;:?!)’”]*)/g;

/** Plain text as nodes; what stands between dollar signs becomes a formula, which keeps the full stop behind it on its line. */
export function words(text) {
  const found = document.createDocumentFragment();
  let end = 0;
  for (const match of text.matchAll(MATHS)) {
    const tex = `\\(${match[1] ?? match[2]}\\)`;
    const formula = el("span", { class: "p-tex mathjax_process" }, tex);
    found.append(text.slice(end, match.index), match[3] ? el("span", { class: "p-whole" }, formula, match[3]) : formula);
    end = match.index + match[0].length;
  }
  found.append(text.slice(end));
  return found;
}

/** Text whose paragraphs are parted by empty lines. */
export const paragraphs = (text) =>
  text.split(/\n\s*\n/).map((part) => el("p", {}, words(part.trim())));

/** A text without its formulas' signs, for names that hold no markup. */
export const plain = (text) => text.replace(MATHS, (_, dollars, round, end) => (dollars ?? round) + end);

/** Draw the formulas under `root` once MathJax is there; without it they stay as TeX. */
export async function typeset(root) {
  if (document.readyState !== "complete") await new Promise((done) => addEventListener("load", done, { once: true }));
  const mathjax = window.MathJax;
  if (!mathjax?.startup?.promise) return;
  const undrawn = () => [...root.querySelectorAll(".p-tex")].filter((e) => e.isConnected && !e.querySelector("mjx-container"));
  mathjax.startup.promise = mathjax.startup.promise.then(() => mathjax.typesetPromise(undrawn()));
  await mathjax.startup.promise;
}

/** Put `children` in the place of what `host` holds. */
export function fill(host, ...children) {
  window.MathJax?.typesetClear?.([host]);
  host.replaceChildren(...children.flat().filter(Boolean));
  typeset(host);
}

/** Move the focus to something that is no control, such as a heading. */
export function focus(element) {
  if (!element) return;
  if (!element.matches("button, input, select, a[href], summary")) element.tabIndex = -1;
  element.focus();
}

let live = null;

/** Have a screen reader say something. */
export function say(text) {
  if (!live) {
    live = el("div", { class: "p-unseen", role: "status", "aria-live": "polite" });
    document.getElementById("practice-page").after(live);
  }
  live.textContent = text;
}

export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** Ask before something that cannot be undone; resolves to true or false. Escape means no. */
export function confirmed(question, yes, no = "Keep it") {
  return new Promise((done) => {
    const title = el("p", { id: "p-ask" }, question);
    const dialog = el("dialog", { class: "p-dialog", "aria-labelledby": "p-ask" }, title);
    const end = (answer) => {
      dialog.close();
      dialog.remove();
      done(answer);
    };
    dialog.append(el("p", { class: "p-row" }, button(no, () => end(false)), button(yes, () => end(true), "p-grave")));
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      end(false);
    });
    document.getElementById("practice-page").append(dialog);
    dialog.showModal();
  });
}
