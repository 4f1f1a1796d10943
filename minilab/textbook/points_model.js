// Points on a circle, trained in the page: minilab/spectra/points.py once more. A test compares the two, step by step.
// z = normalize(c + W x) in the plane; weights are 18 numbers, c and W of each row: [c1, W1..., c2, W2...].

const NUMBERS = 8, ROW = NUMBERS + 1, DIFFERENCE = 0.4, NOISE = 0.04, CENTRED = 0.1;

// Tommy Ettinger's mulberry32, and two of its numbers made into a normal one (Box and Muller).
export function random(seed) {
  let counter = seed | 0;
  const uniform = () => {
    counter = (counter + 0x6d2b79f5) | 0;
    let t = Math.imul(counter ^ (counter >>> 15), counter | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const mean = (values) => values.reduce((total, value) => total + value, 0) / values.length;
const onCircle = (turn) => [Math.cos(2 * Math.PI * turn), Math.sin(2 * Math.PI * turn)];

function rescaled(weights) {
  const length = Math.sqrt(weights.reduce((total, weight) => total + weight * weight, 0));
  return weights.map((weight) => weight / length);
}

// Unit vectors of images, and the lengths before division.
function embed(weights, images) {
  return images.map((image) => {
    let x = 0, y = 0;
    for (let i = 0; i < ROW; i += 1) { x += weights[i] * image[i]; y += weights[ROW + i] * image[i]; }
    const length = Math.sqrt(x * x + y * y);
    return [x / length, y / length, length];
  });
}

// One anchor against its candidates: their shares of the softmax, and the loss if `right` is the partner.
function softmax(z, candidates, right, temperature) {
  const logits = candidates.map((other) => (z[0] * other[0] + z[1] * other[1]) / temperature);
  const top = logits.reduce((a, b) => Math.max(a, b));
  const shares = logits.map((logit) => Math.exp(logit - top));
  const total = shares.reduce((a, b) => a + b);
  return { shares: shares.map((share) => share / total), loss: Math.log(total) + top - logits[right] };
}

// Each returns the mean loss, and adds its gradient at z[i] to pulls[i].
function mocoLoss(queries, keys, queue, temperature, pulls) {
  const scale = 1 / (temperature * queries.length);
  return mean(queries.map((z, i) => {
    const candidates = [keys[i], ...queue], { shares, loss } = softmax(z, candidates, 0, temperature);
    shares[0] -= 1; // what the softmax expects, less what is right
    candidates.forEach((other, j) => {
      pulls[i][0] += scale * shares[j] * other[0];
      pulls[i][1] += scale * shares[j] * other[1];
    });
    return loss;
  }));
}

function simclrLoss(z, temperature, pulls) {
  const scale = 1 / (temperature * z.length), half = z.length / 2;
  return mean(z.map((anchor, i) => {
    const others = times(z.length, (j) => j).filter((j) => j !== i), right = others.indexOf((i + half) % z.length);
    const { shares, loss } = softmax(anchor, others.map((j) => z[j]), right, temperature);
    shares[right] -= 1;
    others.forEach((j, place) => [0, 1].forEach((axis) => { // each view is anchor and candidate
      pulls[i][axis] += scale * shares[place] * z[j][axis];
      pulls[j][axis] += scale * shares[place] * anchor[axis];
    }));
    return loss;
  }));
}

export function create(setting) {
  const { uniform, normal } = random(setting.seed);
  const images = times(setting.images, () => [1, ...times(NUMBERS, () => DIFFERENCE * normal())]);
  const [x, y] = onCircle(uniform());
  const slopes = times(2, () => times(NUMBERS, () => setting.width * normal()));
  const weights = rescaled([x, ...slopes[0], y, ...slopes[1]]);
  const queue = times(setting.queue, () => onCircle(uniform())); // random at first, as in MoCo's code
  const run = { setting, uniform, normal, images, weights, keyWeights: weights, queue, oldest: 0, steps: 0, turns: 0, loss: NaN };
  follow(run);
  return run;
}

export function train(run, count = 1) {
  for (let step = 0; step < count; step += 1) {
    const { method, batch, momentum, temperature, rate } = run.setting;
    const chosen = times(batch, () => run.images[Math.floor(run.uniform() * run.images.length)]);
    const view = () => chosen.map((image) => image.map((value, i) => (i ? value + NOISE * run.normal() : value)));
    const first = view(), second = view(), keys = embed(run.keyWeights, second);
    const inputs = method === "moco" ? first : [...first, ...second], z = embed(run.weights, inputs);
    const pulls = z.map(() => [0, 0]);
    run.loss = method === "moco" ? mocoLoss(z, keys, run.queue, temperature, pulls) : simclrLoss(z, temperature, pulls);
    descend(run, inputs, z, pulls, rate);
    if (method === "moco") {
      run.keyWeights = run.keyWeights.map((weight, i) => momentum * weight + (1 - momentum) * run.weights[i]);
      keys.forEach(([x, y]) => { run.queue[run.oldest] = [x, y]; run.oldest = (run.oldest + 1) % run.queue.length; });
    }
    run.steps += 1;
    follow(run);
  }
}

function descend(run, inputs, z, pulls, rate) {
  const slope = run.weights.map(() => 0);
  z.forEach(([x, y, length], i) => {
    const along = pulls[i][0] * x + pulls[i][1] * y; // a unit vector can only turn
    const across = [(pulls[i][0] - along * x) / length, (pulls[i][1] - along * y) / length];
    for (let j = 0; j < 2 * ROW; j += 1) slope[j] += across[j < ROW ? 0 : 1] * inputs[i][j % ROW];
  });
  run.weights = rescaled(run.weights.map((weight, j) => weight - rate * slope[j]));
}

// Where the points lie, without noise: their spread, their mean, and what the mean has turned so far.
function follow(run) {
  const before = run.mean;
  run.points = embed(run.weights, run.images);
  run.mean = [0, 1].map((axis) => mean(run.points.map((point) => point[axis])));
  run.spread = Math.SQRT2 * mean([0, 1].map((axis) =>
    Math.sqrt(mean(run.points.map((point) => (point[axis] - run.mean[axis]) ** 2)))));
  if (!before || Math.min(Math.hypot(...before), Math.hypot(...run.mean)) < CENTRED) return;
  const cross = before[0] * run.mean[1] - before[1] * run.mean[0], dot = before[0] * run.mean[0] + before[1] * run.mean[1];
  run.turns += Math.atan2(cross, dot) / (2 * Math.PI);
}

export const guess = ({ method, batch, queue }) => Math.log(1 + (method === "simclr" ? 2 * batch - 2 : queue));
