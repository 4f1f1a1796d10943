/* What is remembered: which card was answered, when, and how. Everything else follows from these reviews.
   The same form is stored in the browser and exported. */

export const FORMAT = "contrastive-minilab-practice";
export const VERSION = 1;
export const MOST_CHARACTERS = 2_000_000;
const MOST_REVIEWS = 5_000; // of one card
const ID = /^[a-z0-9]+(-[a-z0-9]+)*$/;
export const EARLIEST = Date.UTC(2000, 0, 1);
export const LATEST = Date.UTC(2100, 0, 1);
const FIELDS = ["format", "version", "era", "fourButtons", "reviews"];

export class Unreadable extends Error {}
/** The text comes from a later version of this page and must not be overwritten. */
export class Newer extends Unreadable {}

const token = () => Math.random().toString(36).slice(2, 12).padEnd(10, "0");

/** A state with no history. The era changes with every reset, so that another tab does not bring back what was forgotten. */
export const fresh = () =>
  ({ format: FORMAT, version: VERSION, era: token(), fourButtons: false, reviews: Object.create(null) });

export const write = (state) => JSON.stringify(state);
export const copy = (state) => readOwn(write(state));
export const logOf = (state, id) => state.reviews[id] ?? [];
export const countReviews = (state) => Object.values(state.reviews).reduce((sum, log) => sum + log.length, 0);

/** The state written in `text`, a file. Throws Unreadable, with what is wrong in words, and then nothing has changed. */
export function read(text) {
  if (text.length > MOST_CHARACTERS) throw new Unreadable("it is larger than 2 MB");
  return parse(text, MOST_REVIEWS);
}

/** The same of what this page wrote itself, which may be of any size: what grew here must stay readable here. */
export const readOwn = (text) => parse(text, Infinity);

function parse(text, most) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Unreadable("it is not JSON");
  }
  if (!isObject(value) || value.format !== FORMAT) throw new Unreadable("it is not progress that this page exported");
  if (!Number.isInteger(value.version)) throw new Unreadable("it does not say its version");
  if (value.version > VERSION)
    throw new Newer(`it was made by a newer version of this page (${value.version}; this page knows ${VERSION})`);
  if (value.version < VERSION) throw new Unreadable(`its version ${value.version} was never in use`);
  for (const name of Object.keys(value))
    if (!FIELDS.includes(name)) throw new Unreadable(`it holds the unknown field “${short(name)}”`);
  if (typeof value.era !== "string" || !/^[a-z0-9]{1,20}$/.test(value.era)) throw new Unreadable("its field “era” is not a short word");
  if (typeof value.fourButtons !== "boolean") throw new Unreadable("its field “fourButtons” is neither true nor false");
  if (!isObject(value.reviews)) throw new Unreadable("its field “reviews” is not a table of cards");
  const reviews = Object.create(null);
  for (const [id, log] of Object.entries(value.reviews)) reviews[id] = readLog(id, log, most);
  return { format: FORMAT, version: VERSION, era: value.era, fourButtons: value.fourButtons, reviews };
}

function readLog(id, log, most) {
  const where = `the reviews of “${short(id)}”`;
  if (id.length > 100 || !ID.test(id)) throw new Unreadable(`“${short(id)}” is not the name of a card`);
  if (!Array.isArray(log) || log.length === 0) throw new Unreadable(`${where} are not a list`);
  if (log.length > most) throw new Unreadable(`${where} are more than ${most}`);
  for (const review of log) {
    if (!Array.isArray(review) || review.length !== 2) throw new Unreadable(`${where} hold something other than a time and a grade`);
    const [time, grade] = review;
    if (!Number.isInteger(time) || time < EARLIEST || time > LATEST) throw new Unreadable(`${where} hold a time that cannot be`);
    if (![1, 2, 3, 4].includes(grade)) throw new Unreadable(`${where} hold a grade other than 1 to 4`);
  }
  return log.map(([time, grade]) => [time, grade]);
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const short = (text) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);

/** Add a review, at the end of its card's log, unless it is there. A full log loses its first one. */
export function addReview(state, id, time, grade) {
  const log = (state.reviews[id] ??= []);
  if (log.some(([known]) => known === time)) return;
  log.push([time, grade]);
  if (log.length > MOST_REVIEWS) log.shift();
}

/** Throws Unreadable where `state` with all of `other` added would be more than one file can hold. */
export function checkRoom(state, other) {
  const both = copy(state);
  merge(both, other);
  try {
    read(write(both));
  } catch (fault) {
    throw new Unreadable(`together with what is here, ${fault.message}`);
  }
}

/** Add every review of `other` to `state`: nothing that is there goes away. Each log keeps its own order. */
export function merge(state, other) {
  for (const [id, log] of Object.entries(other.reviews)) state.reviews[id] = mergeLogs(logOf(state, id), log);
}

function mergeLogs(own, other) {
  const known = new Set(own.map(([time]) => time));
  const extra = other.filter(([time]) => !known.has(time) && known.add(time)); // one review at a time, as here
  const merged = [];
  let next = 0;
  for (const review of own) {
    while (next < extra.length && extra[next][0] < review[0]) merged.push(extra[next++]);
    merged.push(review);
  }
  return merged.concat(extra.slice(next));
}

/** Forget the reviews of these cards, or of all if `ids` is null. */
export function forget(state, ids) {
  for (const id of ids ?? Object.keys(state.reviews)) delete state.reviews[id];
  state.era = token();
}
