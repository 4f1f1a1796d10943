/* Keeps the state in this browser. Every change reads what is stored, changes that, and writes it whole, so that two
   tabs do not undo each other. What cannot be stored is kept for the visit, and said. */

import {
  addReview, checkRoom, copy, countReviews, EARLIEST, forget, fresh, LATEST, logOf, merge, Newer, read, readOwn, write,
} from "./state.js";

export const KEY = "contrastive-minilab.practice";

/** The storage of that name ("localStorage", "sessionStorage"), or null where the browser forbids it. */
export function storageNamed(name) {
  try {
    const storage = window[name];
    storage.getItem(KEY);
    return storage;
  } catch {
    return null;
  }
}

export class Store extends EventTarget {
  /** @param storage a Storage, or null; @param now the time in milliseconds, as Date.now. */
  constructor(storage, now = Date.now) {
    super();
    this.storage = storage;
    this.now = now;
    this.state = fresh();
    this.trouble = storage ? "" : FORBIDDEN; // in words; empty while everything is stored
    this.notice = ""; // something that happened once, in words
    this.waiting = []; // changes that are not stored yet
    this.own = []; // reviews of this tab since the last reset: [id, time, grade]
    this.#adopt();
    if (storage) window.addEventListener("storage", (event) => this.#onOtherTab(event));
  }

  log(id) {
    return logOf(this.state, id);
  }

  review(id, grade) {
    let time = Math.floor(Math.min(Math.max(this.now(), EARLIEST), LATEST - 1_000_000)); // a clock may be decades off
    while (this.log(id).some(([known]) => known === time)) time += 1;
    this.#change((state) => addReview(state, id, time, grade));
    this.own.push([id, time, grade]);
  }

  /** Forget the reviews of these cards, or all of them if `ids` is null. */
  reset(ids = null) {
    this.#change((state) => forget(state, ids));
    this.own = [];
  }

  setFourButtons(on) {
    this.#change((state) => (state.fourButtons = on));
  }

  exported() {
    this.#adopt();
    return write(this.state);
  }

  /** Add the reviews in an exported text; gives how many were new. Throws Unreadable and changes nothing if it is bad. */
  imported(text) {
    const other = read(text);
    this.#adopt();
    checkRoom(this.state, other);
    const before = countReviews(this.state);
    this.#change((state) => merge(state, other));
    return countReviews(this.state) - before;
  }

  /** Read what is stored, add what waits, and take that as the state. */
  #adopt() {
    const stored = this.#stored();
    if (!stored) return;
    if (stored.era !== this.state.era) this.own = [];
    for (const edit of this.waiting) edit(stored);
    this.state = stored;
  }

  #change(edit) {
    this.#adopt();
    const changed = copy(this.state);
    edit(changed);
    this.state = changed;
    if (this.storage) this.#save(edit);
    this.dispatchEvent(new Event("change"));
  }

  #save(edit) {
    try {
      this.storage.setItem(KEY, write(this.state));
      this.waiting = [];
      this.trouble = "";
    } catch {
      this.waiting.push(edit);
      this.trouble = FULL;
    }
  }

  /** What is stored, or null: there is nothing, or it is not for us to use. */
  #stored() {
    if (!this.storage) return null;
    let text = null;
    try {
      text = this.storage.getItem(KEY);
      return text === null ? null : readOwn(text);
    } catch (fault) {
      if (text === null) this.#giveUp(FORBIDDEN);
      else if (fault instanceof Newer) this.#giveUp(NEWER);
      else this.#setAside(text, fault);
      return null;
    }
  }

  #giveUp(why) {
    this.storage = null;
    this.trouble = why;
  }

  #setAside(text, fault) {
    const place = `${KEY}.set-aside-${new Date(this.now()).toISOString()}`;
    try {
      this.storage.setItem(place, text);
      this.storage.removeItem(KEY);
      this.notice = `The stored progress could not be read: ${fault.message}. It was set aside under the name ${place}, and a new one begun.`;
    } catch {
      this.#giveUp(`The stored progress could not be read (${fault.message}), nor set aside. ${VISIT}`);
    }
  }

  #onOtherTab(event) {
    if (event.key !== KEY && event.key !== null) return;
    if (event.key === null) {
      [this.state, this.own, this.waiting] = [fresh(), [], []]; // everything was cleared on purpose
    } else if (event.newValue === null) {
      if (countReviews(this.state)) this.#change(() => {}); // spoilt, and set aside by the other tab: ours is whole
    } else {
      this.#adopt();
      const lost = this.own.filter(([id, time]) => !this.log(id).some(([known]) => known === time));
      // Both tabs wrote at once, and the other was last.
      if (lost.length) this.#change((state) => lost.forEach(([id, time, grade]) => addReview(state, id, time, grade)));
    }
    this.dispatchEvent(new Event("change"));
  }
}

const VISIT = "Your progress lasts for this visit only: export it before you leave.";
const FORBIDDEN = `This browser does not let the page store anything. ${VISIT}`;
const FULL = "The browser's storage is full. Your last answers are kept for this visit only: export them before you leave.";
const NEWER = `Your stored progress was made by a newer version of this page, and is left as it is. Load the page again. ${VISIT}`;

/* Where the reader stands, for this tab alone: it outlives a reload, not the tab. */
export class Place {
  constructor(storage) {
    this.storage = storage;
    try {
      this.value = JSON.parse(storage?.getItem(`${KEY}.place`) ?? "{}") ?? {};
    } catch {
      this.value = {};
    }
    if (typeof this.value !== "object" || Array.isArray(this.value)) this.value = {};
  }

  save() {
    try {
      this.storage?.setItem(`${KEY}.place`, JSON.stringify(this.value));
    } catch {
      /* A reload then starts at the beginning; the reviews are safe. */
    }
  }
}
