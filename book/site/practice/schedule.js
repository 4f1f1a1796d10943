/* When a card is due: FSRS-6 with its default parameters, whole days, no fuzz, a recall of 90 % wanted.
   No learning steps: a missed card comes again within the sitting, which is the drill's affair (drill.js). */

import { FSRS } from "../vendor/ts-fsrs.js";

export const AGAIN = 1;
export const HARD = 2;
export const GOOD = 3;
export const EASY = 4;
export const GRADES = { [AGAIN]: "Again", [HARD]: "Hard", [GOOD]: "Good", [EASY]: "Easy" };
export const FIRM_DAYS = 21; // an interval from which on a card counts as firm, as Anki's "mature"
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const fsrs = new FSRS({
  request_retention: 0.9,
  enable_fuzz: false,
  enable_short_term: true,
  learning_steps: [],
  relearning_steps: [],
});

/** The number of the reader's day, by her own clock. A day begins at four in the morning. */
export function dayOf(time) {
  const date = new Date(time - 4 * HOUR);
  return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate()) / DAY;
}

/** What a card's reviews, [[time in ms, grade], …] in the order they were made, lead to; null if there are none.
    `interval` and `due` are in days; a review dated before the one before it counts as made on the same day. */
export function replay(log) {
  if (!log.length) return null;
  let memory = null;
  let interval = 0;
  let before = null;
  for (const [time, grade] of log) {
    const today = dayOf(time);
    const elapsed = before === null ? 0 : Math.max(0, today - before);
    memory = fsrs.next_state(memory, elapsed, grade);
    interval = fsrs.next_interval(memory.stability, elapsed);
    before = today;
  }
  const last = log[log.length - 1][0];
  return { ...memory, interval, due: before + interval, last, times: log.length };
}

/** Whether a card with this memory should be asked. A last review that lies in the future was dated by a wrong clock. */
export const isDue = (memory, now) => memory !== null && (dayOf(now) >= memory.due || memory.last > now + DAY);

/** In how many days a card comes back if it is graded so now. */
export const intervalAfter = (log, grade, now) => replay([...log, [now, grade]]).interval;

/** How many cards fall due on each of the next days, today first; what is overdue counts for today. */
export function forecast(memories, now, days) {
  const counts = new Array(days).fill(0);
  for (const memory of memories) {
    if (!memory) continue;
    const ahead = isDue(memory, now) ? 0 : memory.due - dayOf(now);
    if (ahead < days) counts[ahead] += 1;
  }
  return counts;
}

export const inDays = (days) => (days < 60 ? `in ${days === 1 ? "1 day" : `${days} days`}` : `in ${Math.round(days / 30)} months`);
