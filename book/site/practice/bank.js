/* The cards, as `make book` wrote them. */

export const LENGTHS = { basics: 20, solid: 50, deep: 120 }; // seconds to speak
export const TIERS = ["basics", "solid", "deep"];
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
export const topicName = (topic) => capital(topic.replaceAll("-", " "));
export const spoken = (seconds) => (seconds < 60 ? `${seconds} s` : `${seconds / 60} min`);

const BOOK = new URL("../../", import.meta.url); // the site's first page lies two folders above this file

/** The bank at `url`; throws an Error with the reason in words. */
export async function loadBank(url) {
  let answer;
  try {
    answer = await fetch(url);
  } catch {
    throw new Error("the cards could not be fetched");
  }
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  const bank = await answer.json().catch(() => {
    throw new Error("the file of cards is not JSON");
  });
  if (bank?.version !== 1 || !Array.isArray(bank.cards)) throw new Error("this page and its cards do not fit: load it again");
  return new Bank(bank.cards);
}

export class Bank {
  constructor(cards) {
    this.cards = [...cards].sort((a, b) => TIERS.indexOf(a.tier) - TIERS.indexOf(b.tier));
    this.byId = new Map(this.cards.map((card) => [card.id, card]));
    this.topics = [...new Set(cards.map((card) => card.topic))];
    this.chapters = [...new Map(cards.filter((card) => card.chapter).map((card) => [card.chapter, card.chapter_title]))]
      .map(([name, title]) => ({ name, title, cards: cards.filter((card) => card.chapter === name) }));
  }

  get(id) {
    return this.byId.get(id) ?? null;
  }

  followUps(card) {
    return card.follow_ups.map((id) => this.get(id)).filter(Boolean);
  }

  /** Cards that a chain can start from; first those that no other card leads to. */
  starts() {
    const led = new Set(this.cards.flatMap((card) => card.follow_ups));
    const starts = this.cards.filter((card) => this.followUps(card).length);
    return [...starts.filter((card) => !led.has(card.id)), ...starts.filter((card) => led.has(card.id))];
  }
}

/** The address of a chapter's part, such as "the-mechanism"; null if the card names no chapter. */
export function chapterLink(card, part) {
  return card.chapter ? new URL(`notebooks/${card.chapter}.html#${part}`, BOOK).href : null;
}

/** The lengths in which a card's answer is written, shortest first, and the one to begin with. */
export function lengthsOf(card) {
  const names = TIERS.filter((name) => card.answer[name]);
  return { names, first: names.includes(card.tier) ? card.tier : (names.at(-1) ?? card.tier) };
}

/** Whether `text` is the number asked for. Takes 65,536 and 65 536 and 0,5; NaN is never right. */
export const isRight = (numeric, text) => Math.abs(toNumber(text) - numeric.value) <= numeric.tolerance + 1e-12 * Math.abs(numeric.value);

export function toNumber(text) {
  const tight = text.trim().replace(/[\s_\u00a0\u202f]/g, "").replace("−", "-");
  if (tight === "") return NaN;
  if (/^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$/.test(tight)) return Number(tight.replaceAll(",", ""));
  return Number(tight.replace(",", "."));
}
