// Pixels that strokes, patches and steps back change: one Uint32 a pixel, bytes R, G, B, A.

const STEPS_KEPT = 60; // how far back "Undo" goes
const OPAQUE = 0xff000000; // little-endian, as every browser is

function opaque(rgb) {
  const pixels = new Uint32Array(rgb.length / 3);
  for (let p = 0, i = 0; p < pixels.length; p++, i += 3) {
    pixels[p] = OPAQUE | (rgb[i + 2] << 16) | (rgb[i + 1] << 8) | rgb[i];
  }
  return pixels;
}

class Painting {
  constructor({ width, height, pixels, mean, blurred }) {
    Object.assign(this, { width, height, blurred });
    this.constants = { black: OPAQUE, mean: opaque(mean)[0] };
    this.pixels = pixels.slice();
    this.steps = [pixels]; // each a whole picture: exact, and small at a model's resolution
    this.at = 0;
    this.turn = 0; // of the picture that Python was told last; 0 for the untouched one
  }

  #box(left, top, right, bottom) {
    const inside = (value, most) => Math.min(Math.max(value, 0), most);
    return [
      inside(left, this.width), inside(top, this.height),
      inside(right, this.width), inside(bottom, this.height),
    ];
  }

  #paint(fill, p) {
    this.pixels[p] = fill === "blur" ? this.blurred[p] : this.constants[fill];
  }

  // Paints every pixel whose centre is within half a brush of the line; the pixels at its ends too,
  // or a brush one pixel wide would miss those that it does not meet in the middle.
  stroke(fill, x0, y0, x1, y1, across) {
    const reach = across / 2;
    const [left, top, right, bottom] = this.#box(
      Math.floor(Math.min(x0, x1) - reach), Math.floor(Math.min(y0, y1) - reach),
      Math.ceil(Math.max(x0, x1) + reach), Math.ceil(Math.max(y0, y1) + reach),
    );
    const dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy || 1;
    for (let y = top; y < bottom; y++) {
      for (let x = left; x < right; x++) {
        const px = x + 0.5 - x0, py = y + 0.5 - y0;
        const along = Math.min(Math.max((px * dx + py * dy) / length, 0), 1);
        const ox = px - along * dx, oy = py - along * dy;
        if (ox * ox + oy * oy <= reach * reach) this.#paint(fill, y * this.width + x);
      }
    }
    for (const [x, y] of [[x0, y0], [x1, y1]]) {
      const [column, row] = [Math.floor(x), Math.floor(y)];
      if (column >= 0 && column < this.width && row >= 0 && row < this.height) {
        this.#paint(fill, row * this.width + column);
      }
    }
    return [left, top, right, bottom];
  }

  cover(fill, { left, top, width, height }) {
    const [l, t, r, b] = this.#box(left, top, left + width, top + height);
    for (let y = t; y < b; y++) for (let x = l; x < r; x++) this.#paint(fill, y * this.width + x);
  }

  stamp(patch, left, top) {
    const [l, t, r, b] = this.#box(left, top, left + patch.width, top + patch.height);
    for (let y = t; y < b; y++) {
      for (let x = l; x < r; x++) {
        this.pixels[y * this.width + x] = patch.pixels[(y - top) * patch.width + (x - left)];
      }
    }
  }

  // Makes a step of what was changed; tells whether anything was.
  finish() {
    const last = this.steps[this.at];
    if (this.pixels.every((value, p) => value === last[p])) return false;
    this.steps.splice(this.at + 1, Infinity, this.pixels.slice());
    if (this.steps.length > STEPS_KEPT) this.steps.splice(1, 1); // the first is the picture itself
    this.at = this.steps.length - 1;
    return true;
  }

  // Goes to another step; tells whether there is one.
  go(at) {
    if (at < 0 || at >= this.steps.length || at === this.at) return false;
    this.at = at;
    this.pixels.set(this.steps[at]);
    return true;
  }

  // Takes a whole picture as a new step.
  take(pixels) {
    this.pixels.set(pixels);
    return this.finish();
  }

  get bytes() {
    const rgb = new Uint8Array(3 * this.pixels.length);
    for (let p = 0, i = 0; p < this.pixels.length; p++, i += 3) {
      const value = this.pixels[p];
      rgb[i] = value & 255;
      rgb[i + 1] = (value >> 8) & 255;
      rgb[i + 2] = (value >> 16) & 255;
    }
    return rgb;
  }
}

function cutOut(pixels, across, { left, top, width, height }) {
  const patch = { left, top, width, height, pixels: new Uint32Array(width * height) };
  for (let y = 0; y < height; y++) {
    const start = (top + y) * across + left;
    patch.pixels.set(pixels.subarray(start, start + width), y * width);
  }
  return patch;
}
