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
const REBUILD = 1 / 6; // above this share of changed pixels, painting all of them is quicker

// What all plates of one size and scale share. Arrays have a margin as wide as the line, so that
// no loop has to look out for the border.
class Frame {
  constructor([height, width], scale) {
    this.scale = scale;
    this.size = [height, width];
    this.height = height * scale;
    this.width = width * scale;
    const longer = Math.max(this.height, this.width);
    this.line = Math.max(1, Math.round(Math.sqrt(longer / 56))); // 2 on a tile, 3 in the loupe
    this.stride = this.width + 2 * this.line;
    this.rows = this.height + 2 * this.line;
    this.around = boxSums(this, this.#inside()); // places of the picture within the line's reach
    this.hatch = this.#hatch(Math.max(longer / 14, 4));
    this.black = new Uint32Array(this.stride * this.rows).fill(BLACK);
  }

  at(y, x) {
    return (y + this.line) * this.stride + x + this.line;
  }

  #inside() {
    const inside = new Uint8Array(this.stride * this.rows);
    for (let y = 0; y < this.height; y++) inside.fill(1, this.at(y, 0), this.at(y, this.width));
    return inside;
  }

  #hatch(period) {
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
    const hatch = new Uint32Array(this.stride * this.rows);
    for (let y = 0; y < this.height; y++) {
      for (let x = 0; x < this.width; x++) {
        hatch[this.at(y, x)] = colours[Math.floor(((x + y) % period) * 8)];
      }
    }
    return hatch;
  }
}

// Sums a map of zeros and ones over the square of the line's reach around every place.
function boxSums(frame, ones) {
  const { stride, rows, line } = frame;
  const across = new Uint16Array(ones.length);
  const sums = new Uint16Array(ones.length);
  for (let y = 0; y < rows; y++) {
    for (let x = 0, sum = 0; x < stride + line; x++) {
      if (x < stride) sum += ones[y * stride + x];
      if (x > 2 * line) sum -= ones[y * stride + x - 2 * line - 1];
      if (x >= line) across[y * stride + x - line] = sum;
    }
  }
  for (let x = 0; x < stride; x++) {
    for (let y = 0, sum = 0; y < rows + line; y++) {
      if (y < rows) sum += across[y * stride + x];
      if (y > 2 * line) sum -= across[(y - 2 * line - 1) * stride + x];
      if (y >= line) sums[(y - line) * stride + x] = sum;
    }
  }
  return sums;
}

// The places of a picture sorted by level (a counting sort): those hidden at step s are the tail
// from starts[s + 1] on, and a move from one step to another changes one slice.
function orderOf(picture, frame) {
  const known = picture.orders.get(frame.scale);
  if (known) return known;
  const { scale } = frame;
  const starts = new Uint32Array(STEPS + 2);
  for (let level = 0; level <= STEPS; level++) {
    starts[level + 1] = starts[level] + picture.counts[level] * scale * scale;
  }
  const next = starts.slice();
  const places = new Uint32Array(frame.height * frame.width);
  for (let y = 0; y < frame.height; y++) {
    const row = Math.floor(y / scale) * frame.size[1];
    for (let x = 0; x < frame.width; x++) {
      places[next[picture.levels[row + Math.floor(x / scale)]]++] = frame.at(y, x);
    }
  }
  const order = { starts, places };
  picture.orders.set(frame.scale, order);
  return order;
}

class Plate {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
  }

  // Makes room for pictures of one size.
  fit(frame) {
    const size = frame.stride * frame.rows;
    this.frame = frame;
    this.canvas.width = frame.width;
    this.canvas.height = frame.height;
    this.image = new ImageData(frame.stride, frame.rows);
    this.out = new Uint32Array(this.image.data.buffer);
    this.base = new Uint32Array(size);
    this.hidden = new Uint8Array(size);
  }

  // Shows a picture from scratch.
  show(picture, { view, step, opacity, palette }) {
    const { frame } = this;
    this.order = orderOf(picture, frame);
    const pixels = view === "heat" ? heatOver(picture, palette, opacity) : picture.pixels;
    layInto(this.base, pixels, frame);
    this.inside = { hidden: frame.hatch, sees: frame.black }[view] ?? this.base;
    this.lined = view !== "picture";
    this.step = step;
    this.#rebuild();
  }

  // Goes to another step.
  move(step) {
    const { starts, places } = this.order;
    const from = starts[Math.min(step, this.step) + 1];
    const to = starts[Math.max(step, this.step) + 1];
    const hides = step < this.step;
    this.step = step;
    if (from === to || !this.lined) return;
    if (to - from > REBUILD * places.length) this.#rebuild();
    else this.#toggle(places.subarray(from, to), hides);
  }

  #toggle(changed, hides) {
    const { stride, line, around } = this.frame;
    const { hidden, near, out, base, inside } = this;
    const by = hides ? 1 : -1;
    let first = Infinity;
    let last = 0;
    for (let i = 0; i < changed.length; i++) {
      const p = changed[i];
      hidden[p] = hides ? 1 : 0;
      if (p < first) first = p;
      if (p > last) last = p;
      for (let row = p - line * (stride + 1), n = 0; n <= 2 * line; n++, row += stride) {
        for (let q = row; q <= row + 2 * line; q++) near[q] += by;
      }
    }
    for (let i = 0; i < changed.length; i++) {
      for (let row = changed[i] - line * (stride + 1), n = 0; n <= 2 * line; n++, row += stride) {
        for (let q = row; q <= row + 2 * line; q++) {
          out[q] = hidden[q]
            ? near[q] < around[q] ? WHITE_LINE : inside[q]
            : near[q] ? DARK_LINE : base[q];
        }
      }
    }
    const top = Math.floor(first / stride) - line;
    this.#put(top, Math.floor(last / stride) + line + 1 - top);
  }

  #rebuild() {
    const { hidden, out, base, inside, frame } = this;
    if (this.lined) {
      const { starts, places } = this.order;
      hidden.fill(0);
      for (let i = starts[this.step + 1]; i < places.length; i++) hidden[places[i]] = 1;
      const near = (this.near = boxSums(frame, hidden));
      const { around } = frame;
      for (let q = 0; q < out.length; q++) {
        out[q] = hidden[q]
          ? near[q] < around[q] ? WHITE_LINE : inside[q]
          : near[q] ? DARK_LINE : base[q];
      }
    } else out.set(base);
    this.#put(0, frame.rows);
  }

  #put(top, rows) {
    const { line, stride } = this.frame;
    this.pen.putImageData(this.image, -line, -line, 0, top, stride, rows);
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

// Lays a picture's pixels into a frame, enlarged: small ones square by square, photographs smoothly.
function layInto(base, pixels, frame) {
  const [height, width] = frame.size;
  const { scale } = frame;
  if (scale === 1 || Math.max(height, width) <= SMALL) {
    for (let y = 0; y < frame.height; y++) {
      const row = Math.floor(y / scale) * width;
      const start = frame.at(y, 0);
      for (let x = 0; x < frame.width; x++) base[start + x] = pixels[row + Math.floor(x / scale)];
    }
    return;
  }
  const bytes = new Uint8ClampedArray(pixels.buffer, pixels.byteOffset, pixels.byteLength);
  const small = new OffscreenCanvas(width, height);
  small.getContext("2d").putImageData(new ImageData(bytes, width, height), 0, 0);
  const large = new OffscreenCanvas(frame.width, frame.height);
  const pen = large.getContext("2d", { willReadFrequently: true });
  pen.imageSmoothingQuality = "high";
  pen.drawImage(small, 0, 0, frame.width, frame.height);
  const smooth = new Uint32Array(
    pen.getImageData(0, 0, frame.width, frame.height).data.buffer,
  );
  for (let y = 0; y < frame.height; y++) {
    base.set(smooth.subarray(y * frame.width, (y + 1) * frame.width), frame.at(y, 0));
  }
}
