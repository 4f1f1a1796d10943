/* A soft clock: it counts up, can be paused, and past its target only changes colour. */

import { button, el, say } from "./dom.js";

/** A clock that keeps its count in `kept.seconds`, so that a reload goes on from there. `name` is for screen readers. */
export class Clock {
  constructor(kept, target, name, onSave = () => {}) {
    this.kept = kept;
    this.kept.seconds ??= 0;
    this.target = target;
    this.onSave = onSave;
    this.since = null; // when it was last started; null while it stands
    this.face = el("span", { class: "clock-face" });
    this.start = button("Start the clock", () => (this.since === null ? this.run() : this.pause()));
    this.again = button("Reset", () => this.reset());
    this.element = el("span", { class: "clock", role: "group", "aria-label": name }, this.start, this.face, this.again);
    this.#draw();
  }

  get seconds() {
    return this.kept.seconds + (this.since === null ? 0 : (performance.now() - this.since) / 1000);
  }

  setTarget(seconds) {
    this.target = seconds;
    this.#draw();
  }

  run() {
    if (this.since !== null) return;
    this.since = performance.now();
    this.ticking = setInterval(() => this.#tick(), 250);
    this.#draw();
  }

  pause() {
    this.#keep();
    this.onSave();
    this.since = null;
    clearInterval(this.ticking);
    this.#draw();
  }

  reset() {
    this.pause();
    this.kept.seconds = 0;
    this.onSave();
    this.#draw();
    this.start.focus();
  }

  #keep() {
    const before = Math.floor(this.kept.seconds);
    this.kept.seconds = this.seconds;
    if (this.since !== null) this.since = performance.now();
    if (Math.floor(this.kept.seconds) !== before) this.onSave();
  }

  #tick() {
    if (!this.element.isConnected) return this.pause();
    const before = this.kept.seconds;
    this.#keep();
    if (before < this.target && this.kept.seconds >= this.target) say(`${this.#words(this.target)} have passed. Take the time you need.`);
    return this.#draw();
  }

  #draw() {
    const now = this.seconds;
    this.face.textContent = `${this.#words(Math.floor(now))} of about ${this.#words(this.target)}`;
    this.element.style.setProperty("--clock-share", Math.min(1, now / this.target));
    this.element.classList.toggle("clock-past", now > this.target);
    this.start.textContent = this.since !== null ? "Pause" : now > 0 ? "Go on" : "Start the clock";
    this.again.hidden = now === 0;
  }

  #words(seconds) {
    if (this.target < 180) return `${seconds} s`;
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  }
}
