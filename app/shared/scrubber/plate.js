// A plate paints one picture in one view on one canvas, and repaints only what a step changes.
//
// Every hidden pixel has alpha 254 in the "hidden" and "sees" views, every kept one 255: the eye
// cannot tell, but whoever reads the canvas knows the mask exactly, on black pictures too.

const HIDDEN = 0xfe000000;
const KEPT = 0xff000000;
const bytesToPixel = (r, g, b, alpha) => (alpha | (b << 16) | (g << 8) | r) >>> 0;

const WHITE_LINE = bytesToPixel(255, 255, 255, HIDDEN);
const DARK_LINE = bytesToPixel(0x14, 0x20, 0x1d, KEPT);
const BLACK = bytesToPixel(0, 0, 0, HIDDEN);
const STRIPE = [0xff, 0x2d, 0x6f];
const GROUND = [0x14, 0x20, 0x1d];

const SMALL = 64; // up to this side every pixel stays a square when enlarged

// What all plates of one size and scale share.
class Frame {
  constructor([height, width], scale) {
    this.scale = scale;
    this.size = [height, width];
    this.height = height * scale;
    this.width = width * scale;
    const longer = Math.max(this.height, this.width);
    this.line = Math.max(1, Math.round(Math.sqrt(longer / 56))); // 2 on a tile, 3 in the loupe
    this.hatch = hatching(this.height, this.width, Math.max(longer / 14, 4));
    this.black = new Uint32Array(this.height * this.width).fill(BLACK);
  }
}

// Stripes at 45 degrees over 38% of the period.
function hatching(height, width, period) {
  const stripe = 0.38 * period;
  const colours = Array.from({ length: Math.ceil(period * 8) }, (_, i) => {
    const place = i / 8; // along a row, so sqrt(2) times as far as across the stripe
    const depth = place < stripe
      ? Math.min(place, stripe - place)
      : -Math.min(place - stripe, period - place);
    const share = Math.min(Math.max(0.5 + depth * Math.SQRT1_2, 0), 1); // an edge one pixel soft
    const mix = (c) => Math.round(GROUND[c] + share * (STRIPE[c] - GROUND[c]));
    return bytesToPixel(mix(0), mix(1), mix(2), HIDDEN);
  });
  const hatch = new Uint32Array(height * width);
  for (let y = 0, p = 0; y < height; y++) {
    for (let x = 0; x < width; x++, p++) hatch[p] = colours[Math.floor(((x + y) % period) * 8)];
  }
  return hatch;
}

// Repeats every pixel of a picture scale times in both directions.
function repeat(pixels, frame, Numbers) {
  const { scale, height, width, size } = frame;
  const large = new Numbers(height * width);
  for (let y = 0, p = 0; y < height; y++) {
    const row = Math.floor(y / scale) * size[1];
    for (let x = 0; x < width; x++, p++) large[p] = pixels[row + Math.floor(x / scale)];
  }
  return large;
}

// Gives each place the highest level within the line's reach of it.
function highestAround(levels, { height, width, line }) {
  const across = new Uint16Array(levels.length);
  const around = new Uint16Array(levels.length);
  for (let y = 0, p = 0; y < height; y++) {
    for (let x = 0; x < width; x++, p++) {
      const end = p + Math.min(line, width - 1 - x);
      let most = 0;
      for (let q = p - Math.min(line, x); q <= end; q++) if (levels[q] > most) most = levels[q];
      across[p] = most;
    }
  }
  for (let y = 0, p = 0; y < height; y++) {
    const above = Math.min(line, y) * width;
    const below = Math.min(line, height - 1 - y) * width;
    for (let x = 0; x < width; x++, p++) {
      let most = 0;
      for (let q = p - above; q <= p + below; q += width) if (across[q] > most) most = across[q];
      around[p] = most;
    }
  }
  return around;
}

// All places sorted by level (a counting sort): those above step s are the tail from starts[s + 1]
// on, and a move from one step to another crosses the levels of one slice.
function sortByLevel(levels) {
  const starts = new Uint32Array(STEPS + 2);
  for (let p = 0; p < levels.length; p++) starts[levels[p] + 1]++;
  for (let level = 0; level <= STEPS; level++) starts[level + 1] += starts[level];
  const next = starts.slice();
  const places = new (levels.length <= 0x10000 ? Uint16Array : Uint32Array)(levels.length);
  for (let p = 0; p < levels.length; p++) places[next[levels[p]]++] = p;
  return { starts, places };
}

// As k falls, a place goes through four states, at steps known beforehand: plain; dark line, once a
// place within the line's reach is hidden; white line, once it is hidden itself; hidden, once all
// places around it are. So there are three orders, and a repaint writes colours, nothing else.
function ordersOf(picture, frame) {
  const known = picture.orders.get(frame.scale);
  if (known) return known;
  const levels = repeat(picture.levels, frame, Uint16Array);
  const flip = (level) => STEPS - level; // the lowest around is the highest of the flipped
  const orders = {
    dark: sortByLevel(highestAround(levels, frame)),
    white: sortByLevel(levels),
    hidden: sortByLevel(highestAround(levels.map(flip), frame).map(flip)),
  };
  picture.orders.set(frame.scale, orders);
  return orders;
}

class Plate {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
  }

  // Makes room for pictures of one size.
  fit(frame) {
    this.frame = frame;
    this.canvas.width = frame.width;
    this.canvas.height = frame.height;
    this.image = new ImageData(frame.width, frame.height);
    this.out = new Uint32Array(this.image.data.buffer);
  }

  // Shows a picture from scratch.
  show(picture, { view, step, opacity, palette }) {
    const { frame, out } = this;
    const pixels = view === "heat" ? heatOver(picture, palette, opacity) : picture.pixels;
    this.picture = picture;
    this.base = enlarge(pixels, frame);
    this.inside = { hidden: frame.hatch, sees: frame.black }[view] ?? this.base;
    this.orders = view === "picture" ? undefined : ordersOf(picture, frame);
    out.set(this.base);
    this.step = STEPS; // above the last step nothing is hidden
    this.#cross(picture.paintStep(step));
    this.pen.putImageData(this.image, 0, 0);
  }

  // Goes to another step.
  move(step) {
    this.#cross(this.picture.paintStep(step));
    if (this.last < 0) return;
    const { width } = this.frame;
    const top = Math.floor(this.first / width);
    const rows = Math.floor(this.last / width) + 1 - top;
    this.pen.putImageData(this.image, 0, 0, 0, top, width, rows);
  }

  #cross(step) {
    const { orders, step: before } = this;
    const low = Math.min(step, before) + 1;
    const high = Math.max(step, before) + 1;
    this.step = step;
    this.first = Infinity;
    this.last = -1;
    if (!orders) return;
    // A place may cross several levels in one move: what it crosses last must be painted last.
    if (step < before) {
      this.#fill(orders.dark, low, high, DARK_LINE);
      this.#fill(orders.white, low, high, WHITE_LINE);
      this.#copy(orders.hidden, low, high, this.inside);
    } else {
      this.#fill(orders.hidden, low, high, WHITE_LINE);
      this.#fill(orders.white, low, high, DARK_LINE);
      this.#copy(orders.dark, low, high, this.base);
    }
  }

  #fill({ starts, places }, low, high, colour) {
    const { out } = this;
    for (let i = starts[low]; i < starts[high]; i++) out[places[i]] = colour;
    this.#reach(places, starts[low], starts[high]);
  }

  #copy({ starts, places }, low, high, colours) {
    const { out } = this;
    for (let i = starts[low]; i < starts[high]; i++) out[places[i]] = colours[places[i]];
    this.#reach(places, starts[low], starts[high]);
  }

  // Notes which places were painted, first and last.
  #reach(places, from, to) {
    let { first, last } = this;
    for (let i = from; i < to; i++) {
      if (places[i] < first) first = places[i];
      if (places[i] > last) last = places[i];
    }
    this.first = first;
    this.last = last;
  }
}

// Colours over the grey picture: the hotter, the less of the picture shows through.
function heatOver(picture, palette, opacity) {
  const out = new Uint32Array(picture.pixels.length);
  for (let p = 0; p < out.length; p++) {
    const pixel = picture.pixels[p];
    const heat = picture.heat[p];
    const grey = 0.8
      * (0.299 * (pixel & 255) + 0.587 * ((pixel >> 8) & 255) + 0.114 * ((pixel >> 16) & 255));
    const share = opacity * (0.12 + (0.78 * heat) / 255);
    const rest = (1 - share) * grey + 0.5;
    out[p] = bytesToPixel(
      rest + share * palette[3 * heat],
      rest + share * palette[3 * heat + 1],
      rest + share * palette[3 * heat + 2],
      KEPT,
    );
  }
  return out;
}

// Brings pixels to a frame's scale: small pictures square by square, photographs smoothly.
function enlarge(pixels, frame) {
  const [height, width] = frame.size;
  if (frame.scale === 1) return pixels;
  if (Math.max(height, width) <= SMALL) return repeat(pixels, frame, Uint32Array);
  const bytes = new Uint8ClampedArray(pixels.buffer, pixels.byteOffset, pixels.byteLength);
  const small = new OffscreenCanvas(width, height);
  small.getContext("2d").putImageData(new ImageData(bytes, width, height), 0, 0);
  const large = new OffscreenCanvas(frame.width, frame.height);
  const pen = large.getContext("2d", { willReadFrequently: true });
  pen.imageSmoothingQuality = "high";
  pen.drawImage(small, 0, 0, frame.width, frame.height);
  return new Uint32Array(pen.getImageData(0, 0, frame.width, frame.height).data.buffer);
}
