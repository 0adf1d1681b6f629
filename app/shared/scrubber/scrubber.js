// One scrubber on the page: the strip, the sheet and the loupe share a step, a view and a picture.

const MEETING = Symbol.for("masktune.scrubber"); // where tell.js leaves the news
const IDLE = 300; // ms without a move before the descriptions of pictures are written anew
const WORDS = { picture: "Picture", heat: "Heat", hidden: "Hidden", sees: "Model sees" };

class Scrubber {
  constructor(root) {
    this.root = root;
    this.meeting = globalThis[MEETING] ??= { news: new Map(), ears: new Set() };
    this.ear = (sheet) => sheet === this.id && this.#hear();
    this.meeting.ears.add(this.ear);
    this.turn = 0;
    this.moved = false;
    this.opacity = 1;
    this.life = new AbortController();
    const { signal } = this.life;
    this.strip = new Strip(root, {
      signal,
      onScrub: (step) => this.#want(step),
      onSettle: (step) => this.#settle(step),
    });
    this.sheet = new ContactSheet(root, {
      signal,
      onSelect: (place, column) => this.#select(place, column),
      onShown: () => this.#reveal(),
      onChoose: () => this.#send(),
    });
    this.loupe = new Loupe(root, { signal, onView: (view) => this.#turnTo(view) });
    this.ways = new Ways(root, { signal, onAsk: () => this.#send() });
    this.views = [...root.querySelectorAll("input[name=view]")];
    for (const input of this.views) {
      input.addEventListener("change", () => this.#turnTo(input.value), { signal });
    }
    this.opener = root.querySelector(".open");
    this.opener.addEventListener("click", () => this.setTriggerValue("open", this.chosen), { signal });
    this.fader = root.querySelector(".fader");
    this.fader.addEventListener("input", () => {
      this.opacity = this.fader.valueAsNumber / 100;
      this.#queue("repaint");
    }, { signal });
  }

  // Takes a blob; the same one again changes nothing.
  async load(data) {
    const id = blobIdentity(data);
    if (id === this.id) return;
    this.id = id;
    this.ready = this.shown = false;
    const blob = readBlob(data);
    const columns = blob.columns.map((_, c) =>
      Array.from({ length: blob.count }, (_, i) => outline(blob.header, i, c)));
    this.root.classList.toggle("several", columns.length > 1);
    this.sheet.fill(columns, blob.header.size); // takes its place at once, so nothing jumps later
    this.loupe.fill(blob.header.size);
    this.ways.fill(blob.header);
    this.strip.turn(blob.header.keepsHot);
    const pixels = await readPictures(blob);
    if (this.id !== id) return; // another sheet came while this one was decoded
    blob.columns.forEach((column, c) => columns[c].forEach((picture, i) =>
      develop(picture, heatOf(column, i), blob.header, pixels[i])));
    this.columns = columns;
    this.palette = blob.palette;
    this.ready = true;
    this.#hear();
  }

  get #look() {
    return { view: this.view, step: this.step, opacity: this.opacity, palette: this.palette };
  }

  get #chosenPicture() {
    return this.columns[this.column][this.chosen];
  }

  // Takes the news Python left for this sheet.
  #hear() {
    const news = this.meeting.news.get(this.id);
    // Two messages in either order: the answers after hiding may come before k, view and picture.
    if (!this.ready || news?.selected === undefined) return;
    this.awaits = news.awaits;
    this.after = news.after;
    this.toldWays = news.ways;
    this.root.classList.toggle("awaiting", Boolean(news.awaits));
    this.ways.box.hidden = !news.explains;
    this.opener.hidden = !news.opens;
    this.sheet.orders.querySelector("[value=change]").hidden = !news.awaits;
    const first = !this.shown;
    // News that do not know of the hand's last move would undo it.
    if (first || (news.turn >= this.turn && !this.moved)) {
      const before = [this.step, this.view, this.chosen, this.column];
      this.step = stepAt(news.k);
      this.view = news.view;
      this.chosen = news.selected;
      this.column = news.column;
      this.told = this.step;
      if (this.ways.asked !== news.every) this.ways.ask(news.every);
      const arranged = this.sheet.take(news, this.step);
      if (first || arranged || before.some((value, i) => value !== [this.step, this.view, this.chosen, this.column][i])) {
        this.strip.set(this.step);
        this.#reveal();
      }
    }
    this.#answer();
    this.#showWays();
    if (this.sheet.orders.value === "change") this.sheet.arrange();
    if (first) {
      this.shown = true;
      this.root.classList.add("ready");
    }
  }

  // Shows everything from scratch.
  #reveal() {
    for (const input of this.views) input.checked = input.value === this.view;
    this.root.dataset.view = this.view;
    this.sheet.show(this.#look);
    this.loupe.show(this.#chosenPicture, this.#look);
    this.sheet.choose(this.chosen, this.column);
    this.strip.count(this.sheet.columns);
    this.strip.tell(this.step, this.sheet.columns);
    this.sheet.move(this.step);
    this.#answer();
    this.#showWays();
    this.#describe();
  }

  #want(step) {
    this.wanted = step;
    this.moved = true; // until Python is told
    clearTimeout(this.selecting); // nothing is sent while the hand moves, a selection neither
    this.#queue("move");
  }

  #queue(work) {
    (this.work ??= new Set()).add(work);
    this.frame ??= requestAnimationFrame(() => this.#paint());
  }

  #paint() {
    const start = performance.now();
    const { work } = this;
    this.frame = this.work = undefined;
    if (!this.ready) return;
    if (work.has("move") && this.wanted !== this.step) {
      this.step = this.wanted;
      this.sheet.move(this.step);
      this.loupe.move(this.step);
      this.ways.move(this.step);
      this.strip.tell(this.step, this.sheet.columns);
      this.#answer();
      clearTimeout(this.idle);
      this.idle = setTimeout(() => this.#describe(), IDLE);
    }
    if (work.has("repaint")) {
      this.sheet.show(this.#look);
      this.loupe.show(this.#chosenPicture, this.#look);
      this.#showWays();
    }
    this.root.dispatchEvent(new CustomEvent("painted", {
      detail: { step: this.step, milliseconds: performance.now() - start },
    }));
  }

  // Shows the answers after hiding where they belong to this very k.
  #answer() {
    const known = this.after && stepAt(this.after.k) === this.step ? this.after.columns : undefined;
    if (known !== this.known || !this.shown) this.sheet.answerAfter(known);
    this.known = known;
    this.loupe.answerAfter(this.awaits ? known?.[this.column][this.chosen] : null);
  }

  // Shows the chosen picture by every explainer, where that was asked for and is of this picture.
  #showWays() {
    const known = this.toldWays?.place === this.chosen ? this.toldWays.rows : undefined;
    this.ways.show(known, this.columns[0][this.chosen], this.#look);
  }

  #describe() {
    for (const print of this.sheet.prints) print.describe(this.step);
    this.loupe.describe(this.step);
    this.ways.describe(this.step);
  }

  #settle(step) {
    if (!this.ready) return;
    if (step === this.told && this.selecting === undefined) {
      this.moved = false;
      return this.#hear();
    }
    this.#want(step);
    cancelAnimationFrame(this.frame);
    this.#paint();
    this.sheet.arrange();
    this.#send();
  }

  #turnTo(view) {
    this.view = view;
    this.#reveal();
    this.#send();
  }

  #select(place, column) {
    this.chosen = place;
    this.column = column;
    this.moved = true;
    this.sheet.choose(place, column);
    this.loupe.show(this.#chosenPicture, this.#look);
    this.#answer();
    this.#showWays();
    clearTimeout(this.selecting);
    this.selecting = setTimeout(() => this.#send(), TYPING);
  }

  #send() {
    clearTimeout(this.selecting);
    this.selecting = undefined;
    this.moved = false;
    this.turn = Math.max(this.turn + 1, Date.now());
    this.told = this.step;
    this.setStateValue("now", {
      k: kAt(this.step), view: this.view, selected: this.chosen, column: this.column, every: this.ways.asked,
      ...this.sheet.choice, turn: this.turn,
    });
  }

  close() {
    this.meeting.ears.delete(this.ear);
    this.life.abort();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.idle);
    clearTimeout(this.selecting);
    this.strip.close();
  }
}

// Streamlit calls again on every change of data, without cleaning up: one scrubber an element.
const scrubbers = new WeakMap();

export default function ({ parentElement, data, setStateValue, setTriggerValue }) {
  const root = parentElement.querySelector(".scrubber");
  let scrubber = scrubbers.get(root);
  if (!scrubber) scrubbers.set(root, (scrubber = new Scrubber(root)));
  scrubber.setStateValue = setStateValue;
  scrubber.setTriggerValue = setTriggerValue;
  scrubber.load(data).catch((error) => {
    root.classList.add("failed");
    write(root.querySelector(".problem"), `The pictures could not be shown: ${error.message}`);
  });
  return () => {
    scrubber.close();
    scrubbers.delete(root);
  };
}
