// The picture on the page: what a hand does to it, and the files that come in.

const MEETING = Symbol.for("masktune.easel"); // where tell.js leaves what Python says
const KEPT = 8; // pictures whose steps are remembered while another one is on the page
const SMALL = 64; // pixels a side, up to which a picture is shown pixel by pixel
const LARGEST = 50 * 2 ** 20; // bytes of a file that is sent
const LEAP = 10; // pixels that Shift and an arrow move
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function readBoard(data) {
  const bytes = data.slice();
  const length = new DataView(bytes.buffer).getUint32(8, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(12, 12 + length)));
  let start = 12 + length;
  const section = (count) => bytes.subarray(start, (start += count));
  const size = 3 * header.size[0] * header.size[1];
  const board = { ...header, pixels: opaque(section(size)), blurred: opaque(section(size)) };
  if (header.other) board.otherPixels = opaque(section(size));
  return board;
}

function toBase64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
  }
  return btoa(text);
}

const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// One of the two pictures: its canvas, and what is shown over it.
class Board {
  constructor(figure) {
    this.figure = figure;
    this.canvas = figure.querySelector("canvas");
    this.pen = this.canvas.getContext("2d");
    this.ring = figure.querySelector(".ring");
    this.marquee = figure.querySelector(".marquee");
    this.caption = figure.querySelector("figcaption");
  }

  fill(pixels, [height, width], caption) {
    Object.assign(this.canvas, { width, height });
    this.image = new ImageData(new Uint8ClampedArray(pixels.buffer), width, height);
    this.pen.putImageData(this.image, 0, 0);
    this.at = [Math.floor(width / 2), Math.floor(height / 2)];
    this.caption.textContent = caption;
    this.canvas.setAttribute("aria-label", caption);
  }

  draw([left, top, right, bottom] = [0, 0, this.canvas.width, this.canvas.height]) {
    this.pen.putImageData(this.image, 0, 0, left, top, right - left, bottom - top);
  }

  // Where the pointer is, in pixels of the picture.
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [
      ((event.clientX - box.left) / box.width) * this.canvas.width,
      ((event.clientY - box.top) / box.height) * this.canvas.height,
    ];
  }

  lay(element, left, top, width, height) {
    const share = (value, whole) => `${(100 * value) / whole}%`;
    element.hidden = false;
    element.style.left = share(left, this.canvas.width);
    element.style.top = share(top, this.canvas.height);
    element.style.width = share(width, this.canvas.width);
    element.style.height = share(height, this.canvas.height);
  }

  inside([x, y]) {
    const bound = (value, most) => Math.min(Math.max(Math.floor(value), 0), most - 1);
    return [bound(x, this.canvas.width), bound(y, this.canvas.height)];
  }
}

// Both corners belong to the box.
function boxOf([x0, y0], [x1, y1]) {
  return {
    left: Math.min(x0, x1), top: Math.min(y0, y1),
    width: Math.abs(x1 - x0) + 1, height: Math.abs(y1 - y0) + 1,
  };
}

class Easel {
  constructor(root) {
    this.root = root;
    this.meeting = globalThis[MEETING] ??= { kept: new Map(), ears: new Set() };
    this.ear = () => this.#hear();
    this.meeting.ears.add(this.ear);
    this.life = new AbortController();
    const find = (selector) => root.querySelector(selector);
    this.main = new Board(find(".board.main"));
    this.other = new Board(find(".board.other"));
    this.ghost = find(".ghost");
    this.size = find(".size");
    this.said = find(".said");
    this.answers = find(".answers");
    this.problem = find(".problem");
    this.buttons = { undo: find(".undo"), redo: find(".redo"), reset: find(".reset") };
    this.queue = [];
    this.#listen();
  }

  get #tool() { return this.root.querySelector("[name=tool]:checked").value; }
  get #fill() { return this.root.querySelector("[name=fill]:checked").value; }
  get #as() { return this.root.querySelector("[name=as]:checked").value; }
  get #across() { return this.size.valueAsNumber; }

  #on(target, name, act, options = {}) {
    target.addEventListener(name, act, { signal: this.life.signal, ...options });
  }

  #listen() {
    for (const board of [this.main, this.other]) {
      const { canvas } = board;
      this.#on(canvas, "pointerdown", (event) => this.#press(board, event));
      this.#on(canvas, "pointermove", (event) => this.#move(board, event));
      this.#on(canvas, "pointerup", (event) => this.#lift(board, board.place(event)));
      this.#on(canvas, "pointercancel", (event) => this.#lift(board, board.place(event)));
      this.#on(canvas, "pointerleave", () => this.#leave(board));
      this.#on(canvas, "keydown", (event) => this.#key(board, event));
      this.#on(canvas, "keyup", (event) => this.#keyUp(board, event));
      this.#on(canvas, "focus", () => canvas.matches(":focus-visible") && this.#point(board));
      this.#on(canvas, "blur", () => this.#abandon(board));
    }
    this.#on(this.size, "input", () => this.#tellSize());
    for (const radio of this.root.querySelectorAll("[name=tool]")) {
      this.#on(radio, "change", () => this.#drop());
    }
    this.#on(this.buttons.undo, "click", () => this.#step(-1));
    this.#on(this.buttons.redo, "click", () => this.#step(1));
    this.#on(this.buttons.reset, "click", () => this.#reset());
    const file = this.root.querySelector(".file");
    this.#on(this.root.querySelector(".choose"), "click", () => file.click());
    this.#on(file, "change", () => {
      this.#send(file.files[0]);
      file.value = ""; // the same file may be chosen again
    });
    for (const name of ["dragover", "drop"]) {
      this.#on(document, name, (event) => {
        // A picture that misses the easel would be opened in the place of the page, paint and all.
        const files = event.dataTransfer.types.includes("Files");
        if (!files && !event.composedPath().includes(this.root)) return; // text goes elsewhere
        event.preventDefault();
        this.root.classList.toggle("dropping", name === "dragover");
        if (name === "drop") this.#take(event.dataTransfer.files);
      });
    }
    this.#on(document, "dragleave", () => this.root.classList.remove("dropping"));
    this.#on(document, "paste", (event) => {
      const [pasted] = event.clipboardData?.files ?? [];
      if (!pasted) return; // text belongs to whatever has the focus
      event.preventDefault();
      this.#send(pasted);
    });
  }

  // Takes a board; the same picture again keeps all its steps.
  load(data) {
    const board = readBoard(data);
    const { id, size } = board;
    if (id !== this.id) {
      this.id = id;
      this.sent = undefined;
      const { kept } = this.meeting;
      this.painting = kept.get(id) ?? new Painting({
        width: size[1], height: size[0], pixels: board.pixels, mean: board.mean,
        blurred: board.blurred,
      });
      kept.delete(id);
      kept.set(id, this.painting);
      while (kept.size > KEPT) kept.delete(kept.keys().next().value);
      this.root.classList.toggle("small", Math.max(...size) <= SMALL);
      this.main.fill(this.painting.pixels, size, board.name);
      const shorter = Math.min(...size);
      this.size.max = Math.max(2, Math.round(shorter / 2));
      this.size.value = Math.max(1, Math.round(shorter / 7));
      this.#tellSize();
      this.#drop();
    }
    if (board.otherId !== this.otherId) {
      this.otherId = board.otherId;
      this.otherPixels = board.otherPixels;
      this.other.figure.hidden = !board.other;
      if (board.other) this.other.fill(board.otherPixels, size, `Cut from: ${board.other}`);
    }
    this.#offer(board.examples);
    this.problem.textContent = "";
    this.#hear();
    this.#count();
    this.root.classList.add("ready");
  }

  #offer(examples) {
    const wanted = JSON.stringify(examples.map(([where]) => where));
    if (wanted === this.offered) return;
    this.offered = wanted;
    this.root.querySelector(".examples").replaceChildren(...examples.map(([where, label, uri]) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      const image = document.createElement("img");
      image.src = uri;
      image.alt = "";
      button.type = "button";
      button.title = label;
      button.setAttribute("aria-label", `Open ${label}`);
      button.append(image);
      button.addEventListener("click", () => this.setTriggerValue("open", { where, as: this.#as }));
      item.append(button);
      return item;
    }));
  }

  // Takes a change that Python made, unless a hand was quicker: Python then hears of that.
  #hear() {
    const { told } = this.meeting;
    if (!this.painting || told?.id !== this.id) return;
    if (told.pixels && told.turn > this.painting.turn) {
      this.painting.turn = told.turn;
      if (this.painting.take(opaque(fromBase64(told.pixels)))) this.#say("Undo brings it back.");
      this.main.draw();
      this.#count();
    } else if (this.painting.turn > told.turn && !this.sent) {
      // Another picture was on the page meanwhile, and Python has forgotten this one's changes.
      this.#commit();
    }
    const { answers } = this.meeting;
    if (answers?.id === this.id && answers.turn === this.painting.turn) this.#answer(answers.words);
  }

  #answer(words) {
    if (this.answers.textContent !== words) this.answers.textContent = words;
  }

  #say(words) {
    this.said.textContent = words;
  }

  #tellSize() {
    const across = this.#across;
    this.root.querySelector(".across").textContent = across === 1 ? "1 pixel" : `${across} pixels`;
    if (!this.main.ring.hidden && this.#tool === "brush") this.#point(this.main);
  }

  #count() {
    const { at, steps } = this.painting;
    this.buttons.undo.disabled = at === 0;
    this.buttons.redo.disabled = at === steps.length - 1;
    this.buttons.reset.disabled = at === 0;
  }

  // Sends the picture as it is shown.
  #commit() {
    this.painting.turn = Math.max(this.painting.turn + 1, Date.now());
    this.sent = this.painting.turn;
    this.#count();
    this.#answer("Asking the models.");
    this.setTriggerValue("painted", {
      id: this.id, turn: this.painting.turn, pixels: toBase64(this.painting.bytes),
    });
  }

  #finish() {
    if (this.painting.finish()) this.#commit();
  }

  #step(by) {
    if (!this.painting.go(this.painting.at + by)) return;
    this.main.draw();
    this.#say(by < 0 ? "Undone." : "Done again.");
    this.#commit();
  }

  #reset() {
    if (!this.painting.take(this.painting.steps[0])) return;
    this.main.draw();
    this.#say("As it was opened. Undo brings the changes back.");
    this.#commit();
  }

  // What the pointer or the keys would do at a place, shown before they do it.
  #point(board, [x, y] = this.#centre(board)) {
    const patch = this.patch;
    if (patch && board === this.main) {
      board.ring.hidden = true;
      board.lay(this.ghost, ...this.#corner([x, y]), patch.width, patch.height);
      return;
    }
    const brush = this.#tool === "brush" && board === this.main;
    board.ring.classList.toggle("square", !brush);
    const across = brush ? this.#across : 1;
    const [left, top] = brush ? [x - across / 2, y - across / 2] : board.inside([x, y]);
    board.lay(board.ring, left, top, across, across);
  }

  #centre(board) {
    return [board.at[0] + 0.5, board.at[1] + 0.5];
  }

  #corner([x, y]) {
    return [Math.round(x - this.patch.width / 2), Math.round(y - this.patch.height / 2)];
  }

  #leave(board) {
    if (this.held) return;
    board.ring.hidden = true;
    if (board === this.main) this.ghost.hidden = true;
  }

  #press(board, event) {
    if (event.button !== 0 || !this.painting) return;
    board.canvas.setPointerCapture(event.pointerId);
    const place = board.place(event);
    board.at = board.inside(place);
    this.#begin(board, place);
  }

  #move(board, event) {
    if (!this.painting) return;
    const moves = event.getCoalescedEvents?.() ?? [];
    for (const one of moves.length ? moves : [event]) this.queue.push([board, board.place(one)]);
    this.frame ??= requestAnimationFrame(() => this.#paint());
  }

  #paint() {
    const start = performance.now();
    const { queue } = this;
    this.frame = undefined;
    this.queue = [];
    for (const [board, place] of queue) this.#drag(board, place);
    const [board, place] = queue.at(-1) ?? [];
    if (board) {
      board.at = board.inside(place);
      this.#point(board, place);
    }
    this.root.dispatchEvent(new CustomEvent("painted", {
      detail: { milliseconds: performance.now() - start },
    }));
  }

  // A hand or Enter goes down.
  #begin(board, place) {
    if (this.#tool === "brush") {
      if (board !== this.main) {
        this.#say("Patches are cut here: choose “Copy a patch” first.");
        return;
      }
      this.held = { board, place };
      this.main.draw(this.painting.stroke(this.#fill, ...place, ...place, this.#across));
    } else if (this.patch && board === this.main) {
      this.#stamp(place);
    } else if (!this.held) {
      this.held = { board, corner: board.inside(place) };
      this.#drag(board, place);
    }
  }

  #drag(board, place) {
    const { held } = this;
    if (!held || held.board !== board) return;
    if (held.corner) {
      const { left, top, width, height } = boxOf(held.corner, board.inside(place));
      board.lay(board.marquee, left, top, width, height);
    } else {
      const stroke = [...held.place, ...place];
      this.main.draw(this.painting.stroke(this.#fill, ...stroke, this.#across));
      held.place = place;
    }
  }

  // The hand lifts.
  #lift(board, place) {
    const { held } = this;
    if (!held || held.board !== board || held.byKeys) return;
    while (this.queue.length) this.#drag(...this.queue.shift());
    if (!held.corner) return this.#end();
    this.held = undefined;
    this.#cut(board, boxOf(held.corner, board.inside(place)));
  }

  // The keys go elsewhere: paint is done, a box that was begun is not.
  #abandon(board) {
    if (this.held?.byKeys && this.held.board === board) {
      if (this.held.corner) this.#drop();
      else this.#end();
    }
    this.#leave(board);
  }

  #end() {
    this.held = undefined;
    this.#finish();
  }

  #cut(board, box) {
    board.marquee.hidden = true;
    const pixels = board === this.main ? this.painting.pixels : this.otherPixels;
    this.patch = cutOut(pixels, board.canvas.width, box);
    this.patch.moved = this.#tool === "move" && board === this.main;
    Object.assign(this.ghost, { width: box.width, height: box.height });
    this.ghost.getContext("2d").putImageData(
      new ImageData(new Uint8ClampedArray(this.patch.pixels.buffer), box.width, box.height), 0, 0,
    );
    const what = `A patch of ${box.width} × ${box.height} pixels. `;
    this.#say(`${what}Click on the picture, or press Enter there, to put it down.`);
    if (board === this.main) this.#point(this.main);
    else this.main.canvas.focus();
  }

  #stamp(place) {
    const { patch } = this;
    if (patch.moved) this.painting.cover(this.#fill, patch);
    this.painting.stamp(patch, ...this.#corner(place));
    this.main.draw();
    if (patch.moved) this.#drop();
    this.#say(patch.moved ? "Moved." : "Put down. Again for another, Escape puts it away.");
    this.#finish();
  }

  // Puts a patch away, or what was begun of one.
  #drop() {
    this.patch = this.held = undefined;
    this.ghost.hidden = true;
    for (const board of [this.main, this.other]) board.marquee.hidden = true;
    const words = {
      brush: "Paint over the picture; it is answered anew when you let go.",
      copy: "Draw a box round what you want to copy, here or in the other picture.",
      move: "Draw a box round what you want to move; the paint fills its place.",
    };
    this.#say(words[this.#tool]);
  }

  #key(board, event) {
    if (!this.painting) return;
    const control = event.ctrlKey || event.metaKey;
    if (control && event.key.toLowerCase() === "z") this.#step(event.shiftKey ? 1 : -1);
    else if (control && event.key.toLowerCase() === "y") this.#step(1);
    else if (control || event.altKey) return;
    else if (event.key in ARROWS) this.#walk(board, ARROWS[event.key], event.shiftKey ? LEAP : 1);
    else if (event.key === "Enter" || event.key === " ") this.#enter(board, event.repeat);
    else if (event.key === "[" || event.key === "]") {
      this.size.valueAsNumber += event.key === "]" ? 1 : -1;
      this.#tellSize();
    } else if (event.key === "Escape") this.#drop();
    else return;
    event.preventDefault();
    event.stopPropagation(); // Streamlit has keys of its own
  }

  #walk(board, [dx, dy], by) {
    board.at = board.inside([board.at[0] + dx * by, board.at[1] + dy * by]);
    const place = this.#centre(board);
    if (this.held?.byKeys) this.#drag(board, place);
    this.#point(board, place);
    const [column, row] = board.at;
    this.#say(`Column ${column + 1}, row ${row + 1}.`);
  }

  #enter(board, repeat) {
    if (repeat) return;
    const place = this.#centre(board);
    if (this.held?.corner && this.held.board === board) {
      const { corner } = this.held;
      this.held = undefined;
      this.#cut(board, boxOf(corner, board.at));
      return;
    }
    this.#begin(board, place);
    if (this.held) this.held.byKeys = true;
    if (this.held?.corner) this.#say("First corner. Go to the opposite one and press Enter.");
  }

  // Paint ends when the key comes up; a box is ended by pressing it again.
  #keyUp(board, event) {
    if (event.key !== "Enter" && event.key !== " ") return;
    if (this.held?.byKeys && !this.held.corner) this.#end();
  }

  #take([file]) {
    if (file) this.#send(file);
    else {
      this.problem.textContent =
        "What was dropped is no file, but perhaps a link to one. Save the picture and choose it.";
    }
  }

  async #send(file) {
    this.problem.textContent = "";
    if (!file) return;
    if (file.size > LARGEST) {
      this.problem.textContent =
        `“${file.name}” is larger than 50 MB. Save it smaller and choose it again.`;
      return;
    }
    const as = this.#as;
    this.#say(`Reading “${file.name}”.`);
    const bytes = await file.arrayBuffer().catch(() => undefined);
    if (!bytes) { // a folder, or a file that has gone
      this.#drop();
      this.problem.textContent = `“${file.name}” cannot be read. Choose a picture file.`;
      return;
    }
    const content = toBase64(new Uint8Array(bytes));
    this.setTriggerValue("file", { name: file.name, content, as });
  }

  close() {
    this.meeting.ears.delete(this.ear);
    this.life.abort();
    cancelAnimationFrame(this.frame);
  }
}

// Streamlit calls again on every change of data, without cleaning up: one easel an element.
const easels = new WeakMap();

export default function ({ parentElement, data, setTriggerValue }) {
  const root = parentElement.querySelector(".easel");
  let easel = easels.get(root);
  if (!easel) easels.set(root, (easel = new Easel(root)));
  easel.setTriggerValue = setTriggerValue;
  easel.load(data);
  return () => {
    easel.close();
    easels.delete(root);
  };
}
