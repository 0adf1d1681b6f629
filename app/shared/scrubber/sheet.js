// The contact sheet: one tile a picture, filtered and sorted without asking the server. A tile holds
// one print a column: the same picture with the heat of another explainer, layer or model.

const TILE = 224; // pixels of a tile's canvas, about; small pictures are enlarged to it
const VIEWS = {
  picture: "the picture",
  heat: "heat, line at the threshold",
  hidden: "hidden pixels hatched",
  sees: "what the model sees",
};

function element(tag, className, attributes = {}) {
  const node = document.createElement(tag);
  node.className = className;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

// What the model says after hiding, in words; news is [answer, confidence, support].
function afterWords(picture, news) {
  if (!news) return "…";
  const sure = `${Math.round(news[1] * 100)}%`;
  return news[0] === picture.answer ? `still ${sure}` : `→ ${news[0]}, ${sure}`;
}

class Print {
  constructor(picture, frame, { onSelect }) {
    this.picture = picture;
    this.root = element("div", "print");
    const face = element("div", "face");
    const by = picture.title && `, ${picture.title}`;
    this.canvas = element("canvas", "picture", { role: "img" });
    this.button = element("button", "choose", {
      type: "button",
      "aria-pressed": "false",
      "aria-label": `Look closely at picture ${picture.place + 1}${by}: ${picture.name}`,
      title: picture.name + by,
    });
    face.append(this.canvas, this.button);
    const caption = element("p", "caption");
    this.answer = element("b", "answer");
    this.share = element("span", "share");
    this.after = element("span", "after");
    write(this.answer, picture.answer);
    this.wrong = picture.label !== "" && picture.label !== picture.answer;
    this.answer.classList.toggle("wrong", this.wrong);
    if (picture.title) {
      const column = element("span", "column");
      write(column, picture.title);
      caption.append(column);
    }
    caption.append(this.answer, " ", this.share, this.after);
    this.root.append(face, caption);
    this.plate = new Plate(this.canvas);
    this.plate.fit(frame);
    this.button.addEventListener("click", () => onSelect(picture.place, picture.column));
  }

  show(look) {
    this.plate.show(this.picture, look);
    this.view = look.view;
  }

  move(step) {
    this.plate.move(step);
    this.caption(step);
  }

  caption(step) {
    const empty = this.picture.hiddenAt[step] === 0;
    write(this.share, empty ? "nothing hidden" : percent(shareHidden(this.picture, step)));
    this.root.classList.toggle("whole", empty);
  }

  // Says what the model answers after hiding; undefined while that is not known at this k.
  answerAfter(news) {
    write(this.after, afterWords(this.picture, news));
    this.root.classList.toggle("waiting", !news);
    this.root.classList.toggle("changed", news !== undefined && news[0] !== this.picture.answer);
  }

  describe(step) {
    const { name, title, answer, hiddenAt } = this.picture;
    const share = hiddenAt[step] ? `${percent(shareHidden(this.picture, step))} hidden` : "nothing hidden";
    this.canvas.setAttribute(
      "aria-label", `${name}${title && `, ${title}`}: ${VIEWS[this.view]}. The model answers ${answer}${this.wrong ? ", wrongly" : ""}; ${share}.`,
    );
  }

  choose(chosen) {
    this.button.setAttribute("aria-pressed", String(chosen));
    this.button.tabIndex = chosen ? 0 : -1;
  }
}

class Tile {
  // Takes the picture in every column.
  constructor(pictures, frame, { onSelect }) {
    this.picture = pictures[0]; // what it is filtered and sorted by
    this.prints = pictures.map((picture) => new Print(picture, frame, { onSelect }));
    this.root = element("li", "tile");
    this.root.append(...this.prints.map(({ root }) => root));
  }
}

// By the first column.
const ORDERS = {
  given: () => 0,
  most: (step) => (a, b) => shareHidden(b, step) - shareHidden(a, step),
  least: (step) => (a, b) => shareHidden(a, step) - shareHidden(b, step),
  change: (_, rows) => (a, b) =>
    rows ? b.confidence - rows[0][b.place][2] - (a.confidence - rows[0][a.place][2]) : 0,
};

class ContactSheet {
  // onSelect(place, column) for a chosen print; onShown() when others are shown than before;
  // onChoose() when a hand chose a group or an order.
  constructor(root, { signal, onSelect, onShown, onChoose }) {
    this.list = root.querySelector(".sheet");
    this.groups = root.querySelector(".group");
    this.orders = root.querySelector(".order");
    this.onSelect = onSelect;
    this.onShown = onShown;
    for (const select of [this.groups, this.orders]) {
      select.addEventListener("change", () => {
        this.arrange(select === this.groups);
        onChoose();
      }, { signal });
    }
    this.list.addEventListener("keydown", (event) => this.#walk(event), { signal });
  }

  // Takes the pictures of every column.
  fill(columns, size) {
    const [pictures] = columns;
    const frame = new Frame(size, Math.max(1, Math.round(TILE / Math.max(...size))));
    const onSelect = (place, column) => this.onSelect(place, column);
    this.tiles = pictures.map(
      (_, i) => new Tile(columns.map((column) => column[i]), frame, { onSelect }),
    );
    this.list.style.setProperty("--columns", columns.length);
    const names = [...new Set(pictures.map(({ group }) => group))];
    this.groups.replaceChildren(
      new Option("All groups", ""), ...names.map((name) => new Option(name, `=${name}`)),
    );
    this.groups.closest("label").hidden = names.length < 2;
    this.rows = undefined;
    this.arrange();
  }

  // What is chosen: a group by its name, none for all, and an order.
  get choice() {
    return { group: this.groups.value.slice(1), order: this.orders.value };
  }

  // Takes a choice that Python remembers; tells whether it is another one.
  take({ group, order }, step) {
    const known = this.choice;
    if (known.group === group && known.order === order) return false;
    this.groups.value = group && `=${group}`;
    this.orders.value = order;
    this.step = step;
    this.arrange();
    return true;
  }

  // Puts the tiles of the chosen group in the chosen order.
  arrange(filtered = false) {
    const wanted = this.groups.value;
    const compare = ORDERS[this.orders.value](this.step, this.rows);
    const shown = this.tiles
      .filter(({ picture }) => wanted === "" || wanted === `=${picture.group}`)
      .sort((a, b) => compare && compare(a.picture, b.picture));
    const same = shown.length === this.list.children.length
      && shown.every((tile, i) => tile.root === this.list.children[i]);
    if (!same) {
      const active = this.list.getRootNode().activeElement;
      const focused = shown.some(({ root }) => root.contains(active)) ? active : undefined;
      this.list.replaceChildren(...shown.map(({ root }) => root));
      focused?.focus({ preventScroll: true });
    }
    this.shown = shown;
    this.prints = shown.flatMap(({ prints }) => prints);
    this.columns = shown[0].prints.map((_, c) => shown.map(({ prints }) => prints[c].picture));
    if (filtered) this.onShown();
  }

  show(look) {
    this.step = look.step;
    for (const print of this.prints) print.show(look);
  }

  move(step) {
    this.step = step;
    for (const print of this.prints) print.move(step);
  }

  // Takes the answers after hiding: by column, rows in sheet order; undefined while not known.
  answerAfter(rows) {
    this.rows = rows ?? this.rows; // sorting goes by the last known ones, or tiles would jump twice
    for (const { prints } of this.tiles) {
      prints.forEach((print, c) => print.answerAfter(rows?.[c][print.picture.place]));
    }
  }

  choose(place, column) {
    for (const print of this.tiles.flatMap(({ prints }) => prints)) {
      print.choose(print.picture.place === place && print.picture.column === column);
    }
    // When the chosen picture is filtered out, Tab must still reach the sheet.
    if (!this.shown.some(({ picture }) => picture.place === place)) this.prints[0].button.tabIndex = 0;
  }

  // Arrow keys go from print to print; the one they reach fills the loupe.
  #walk(event) {
    const at = this.prints.findIndex(({ button }) => button === event.target);
    if (at < 0) return;
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -at, End: this.prints.length - 1 - at };
    const down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const to = down ? this.#across(at, down) : this.prints[at + steps[event.key]];
    if (!to) return;
    event.preventDefault();
    to.button.focus();
    this.onSelect(to.picture.place, to.picture.column);
  }

  // The print straight above (-1) or below (1); columns of a tile may have wrapped.
  #across(at, down) {
    const boxes = this.prints.map(({ button }) => button.getBoundingClientRect());
    const here = boxes[at];
    let best;
    boxes.forEach((box, i) => {
      const far = down * (box.top - here.top);
      const same = Math.abs(box.left - here.left) < here.width / 2;
      if (same && far > 1 && (best === undefined || far < best.far)) best = { far, i };
    });
    return best && this.prints[best.i];
  }
}
