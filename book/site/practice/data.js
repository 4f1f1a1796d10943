/* Export, import and reset. */

import { button, confirmed, el, plural, say } from "./dom.js";
import { MOST_CHARACTERS, Unreadable } from "./state.js";

/** The nodes of the part "Your data" of the progress view. */
export function dataPart(bank, store) {
  const outcome = el("p", { class: "p-outcome", tabIndex: -1 });
  const tell = (text) => {
    outcome.textContent = text;
    say(text);
  };
  const what = "Your history is kept in this browser and nowhere else, and nothing is sent anywhere. A browser may clear it: export it now and then. " +
    "An import adds to what is here and takes nothing away.";
  return [el("h3", {}, "Your data"), el("p", {}, what), el("p", { class: "p-row" }, button("Export", () => save(store)), importer(store, tell)),
    resets(bank, store, tell), outcome];
}

function save(store) {
  const blob = new Blob([store.exported()], { type: "application/json" });
  const link = el("a", { href: URL.createObjectURL(blob), download: `contrastive-practice-${new Date(store.now()).toISOString().slice(0, 10)}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function importer(store, tell) {
  const input = el("input", { type: "file", accept: ".json,application/json", id: "p-import", class: "p-unseen", tabIndex: -1, "aria-label": "File to import" });
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (!file) return;
    tell(await take(store, file));
    input.value = "";
  });
  return [button("Import", () => input.click()), input];
}

async function take(store, file) {
  try {
    if (file.size > 2 * MOST_CHARACTERS) throw new Unreadable("it is larger than 2 MB");
    const added = store.imported(await file.text());
    return added ? `Imported: ${plural(added, "answer")} added.` : "Imported: all its answers were here already.";
  } catch (fault) {
    if (!(fault instanceof Unreadable)) throw fault;
    return `Nothing was changed. The file cannot be imported: ${fault.message}.`;
  }
}

function resets(bank, store, tell) {
  const options = bank.chapters.map(({ name, title }) => el("option", { value: name }, title));
  const select = el("select", { id: "p-chapter" }, options);
  const one = async () => {
    const { title, cards } = bank.chapters.find(({ name }) => name === select.value);
    await reset(store, cards.map(({ id }) => id), `“${title}”`, tell);
  };
  const all = () => reset(store, null, "all chapters", tell);
  const field = el("span", { class: "p-field" }, el("label", { for: "p-chapter" }, "Chapter"), select);
  return el("div", {}, el("p", { class: "p-row" }, field, button("Reset this chapter", one)), el("p", { class: "p-row" }, button("Reset everything", all)));
}

async function reset(store, ids, name, tell) {
  const reviews = (ids ?? Object.keys(store.state.reviews)).reduce((sum, id) => sum + store.log(id).length, 0);
  if (!reviews) return tell(`There is no history of ${name}.`);
  const question = `Forget ${plural(reviews, "answer")} of ${name}? This cannot be undone, unless you exported them.`;
  if (!(await confirmed(question, "Forget them"))) return tell("Nothing was forgotten.");
  store.reset(ids);
  return tell(`Forgotten: ${plural(reviews, "answer")} of ${name}.`);
}
