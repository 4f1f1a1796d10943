/* The card's own question to answer by choice or by number, with a word on every option. */

import { isRight } from "./bank.js";
import { button, el, focus, words } from "./dom.js";

/** The question of a card, or null if it has none. What was answered is kept in `kept.choice` or `kept.number`.
    `turn` rotates the options, so that a place cannot be learnt by heart. `onAnswer` runs at each answer. */
export function item(card, kept, turn, onAnswer) {
  const parts = [];
  if (card.choices.length) parts.push(choiceItem(card, kept, turn, onAnswer));
  if (card.numeric) parts.push(numberItem(card, kept, onAnswer));
  return parts.length ? parts : null;
}

/** true or false if the card's question was answered, else null; one wrong answer makes it false. */
export function itemResult(card, kept) {
  const results = [];
  if (card.choices[kept.choice]) results.push(card.choices[kept.choice].right);
  if (card.numeric && typeof kept.number === "string") results.push(isRight(card.numeric, kept.number));
  return results.length ? results.every(Boolean) : null;
}

function choiceItem(card, kept, turn, onAnswer) {
  const order = card.choices.map((_, i) => (i + turn) % card.choices.length);
  const options = order.map((index, place) => option(card.choices[index], index, `p-choice-${place}`));
  const verdict = el("p", { class: "p-verdict", tabIndex: -1 });
  const check = button("Check", () => {
    const chosen = options.find((each) => each.input.checked);
    if (!chosen) return (verdict.textContent = "Choose one first.");
    kept.choice = chosen.index;
    show();
    focus(verdict);
    return onAnswer();
  });
  function show() {
    const right = card.choices[kept.choice].right;
    verdict.textContent = right ? "✓ Right. What is said of each option:" : "✗ Not quite. What is said of each option:";
    for (const each of options) {
      each.input.checked = each.index === kept.choice;
      each.input.disabled = true;
      each.why.hidden = false;
    }
    check.hidden = true;
  }
  if (card.choices[kept.choice]) show();
  const group = el("fieldset", { class: "p-item" }, el("legend", {}, "Choose one"), options.map((each) => each.row));
  return el("div", {}, group, el("p", { class: "p-row" }, check), verdict);
}

function option(choice, index, id) {
  const input = el("input", { type: "radio", name: "p-choice", id, "aria-describedby": `${id}-why` });
  const mark = choice.right ? "✓ Right." : "✗ Wrong.";
  const why = el("p", { class: `p-why ${choice.right ? "p-right" : ""}`, id: `${id}-why`, hidden: true });
  why.append(el("strong", {}, mark), " ", words(choice.why));
  const row = el("div", { class: "p-tick" }, input, el("label", { for: id }, words(choice.text)), why);
  return { input, why, row, index };
}

function numberItem(card, kept, onAnswer) {
  const { value, unit, why } = card.numeric;
  const field = el("input", { type: "text", id: "p-number", inputMode: "decimal", autocomplete: "off", maxLength: 30 });
  const verdict = el("p", { class: "p-verdict", tabIndex: -1 });
  const reason = el("p", { class: "p-why", hidden: true }, words(why));
  const show = () => {
    const good = isRight(card.numeric, kept.number);
    field.value = kept.number;
    verdict.textContent = `${good ? "✓ Right:" : "✗ Not quite:"} ${value.toLocaleString("en")} ${unit}.`;
    reason.hidden = false;
    reason.classList.toggle("p-right", good);
  };
  const answer = (event) => {
    event.preventDefault();
    if (!field.value.trim()) return (verdict.textContent = "Write a number first.");
    kept.number = field.value;
    show();
    focus(verdict);
    return onAnswer();
  };
  if (typeof kept.number === "string") show();
  const label = el("label", { for: "p-number" }, `Your number, in ${unit || "units"}`);
  const send = el("button", { type: "submit", class: "p-button" }, "Check");
  return el("form", { class: "p-number", on: { submit: answer } }, label, el("p", { class: "p-row" }, field, send), verdict, reason);
}
