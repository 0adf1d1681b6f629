// From coarse heat to the slider steps at which each pixel is hidden: the arithmetic of
// masktune.heat.xgradcam.upsample and masktune.heat.keep (keep_masks, keep_hot), in the same doubles.

const STEPS = 301; // k = 0.00, 0.01 .. 3.00
const TINY = 1e-7; // masktune.heat.xgradcam.TINY

const kAt = (step) => step / 100;
const stepAt = (k) => Math.min(Math.max(Math.round(k * 100), 0), STEPS - 1);

// Where each of `to` places falls among `from` cells, as torch has it without align_corners.
function resampling(from, to) {
  const low = new Int32Array(to);
  const high = new Int32Array(to);
  const share = new Float64Array(to);
  const scale = from / to;
  for (let i = 0; i < to; i++) {
    const place = Math.max(scale * (i + 0.5) - 0.5, 0);
    low[i] = Math.min(Math.floor(place), from - 1);
    high[i] = Math.min(low[i] + 1, from - 1);
    share[i] = Math.min(Math.max(place - low[i], 0), 1);
  }
  return { low, high, share };
}

// Gives heat at the size of the picture, stretched to [0, 1].
function upsample(coarse, [h, w], [height, width]) {
  const fine = new Float64Array(height * width);
  const down = resampling(h, height);
  const across = resampling(w, width);
  let least = Infinity;
  for (let y = 0, p = 0; y < height; y++) {
    const upper = down.low[y] * w;
    const lower = down.high[y] * w;
    const sink = down.share[y];
    for (let x = 0; x < width; x++, p++) {
      const l = across.low[x];
      const r = across.high[x];
      const shift = across.share[x];
      const above = (1 - shift) * coarse[upper + l] + shift * coarse[upper + r];
      const below = (1 - shift) * coarse[lower + l] + shift * coarse[lower + r];
      fine[p] = (1 - sink) * above + sink * below;
      if (fine[p] < least) least = fine[p];
    }
  }
  let most = 0;
  for (let p = 0; p < fine.length; p++) {
    fine[p] -= least;
    if (fine[p] > most) most = fine[p];
  }
  for (let p = 0; p < fine.length; p++) fine[p] /= TINY + most;
  return fine;
}

// Gives, for each pixel, how many of the steps hide it: it is hidden at step s when s < level. The
// comparison is the one of keep_masks, strict; thresholds never fall from one step to the next.
function levelsOf(fine, mu, sigma) {
  const thresholds = new Float64Array(STEPS);
  for (let s = 0; s < STEPS; s++) thresholds[s] = mu + kAt(s) * sigma;
  const levels = new Uint16Array(fine.length);
  for (let p = 0; p < fine.length; p++) {
    let level = 0;
    let above = STEPS;
    while (level < above) {
      const middle = (level + above) >> 1;
      if (fine[p] > thresholds[middle]) level = middle + 1;
      else above = middle;
    }
    levels[p] = level;
  }
  return levels;
}

// Counts pixels by level: STEPS + 1 numbers.
function countLevels(levels) {
  const counts = new Uint32Array(STEPS + 1);
  for (let p = 0; p < levels.length; p++) counts[levels[p]]++;
  return counts;
}

// What is known of a picture in one column before its pixels are decoded.
function outline(header, i, c) {
  const { title, answers, confidences } = header.columns[c];
  return {
    place: i,
    column: c,
    title: header.columns.length > 1 ? title : "",
    name: header.names[i],
    group: header.groups[i],
    answer: answers[i],
    label: header.labels[i] ?? "",
    confidence: confidences[i],
    orders: new Map(), // by scale, filled when a plate needs one
  };
}

// The heat of one picture in a column.
function heatOf({ coarse, heat, mu, sigma }, i) {
  const cells = coarse[0] * coarse[1];
  return { coarse, heat: heat.subarray(i * cells, (i + 1) * cells), mu: mu[i], sigma: sigma[i] };
}

// Adds the rest of what does not depend on k.
function develop(picture, { coarse, heat: cells, mu, sigma }, { size, keepsHot }, pixels) {
  const fine = upsample(cells, coarse, size);
  let levels = levelsOf(fine, mu, sigma);
  const counts = countLevels(levels);
  let hiddenAt = new Uint32Array(STEPS); // pixels hidden at each step
  for (let s = STEPS - 1, sum = 0; s >= 0; s--) hiddenAt[s] = sum += counts[s + 1];
  let paintStep = (step) => step;
  if (keepsHot) {
    // The other way round: a mirrored step hides the others. Where nothing is hot nothing is hidden.
    const hotAt = hiddenAt;
    levels = levels.map((level) => STEPS - level);
    hiddenAt = hotAt.map((hot) => (hot ? fine.length - hot : 0));
    paintStep = (step) => (hotAt[step] ? STEPS - 1 - step : STEPS);
  }
  const heat = Uint8Array.from(fine, (value) => Math.round(value * 255)); // for colour only
  Object.assign(picture, { mu, sigma, pixels, heat, levels, counts, hiddenAt, paintStep });
}

const shareHidden = (picture, step) => picture.hiddenAt[step] / picture.levels.length;
