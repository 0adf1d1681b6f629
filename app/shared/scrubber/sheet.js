// The contact sheet: one tile a picture, filtered and sorted without asking the server.

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

class Tile {
  constructor(picture, frame, { onSelect }) {
    this.picture = picture;
    this.root = element("li", "tile");
    const face = element("div", "face");
    this.canvas = element("canvas", "picture", { role: "img" });
    this.button = element("button", "choose", {
      type: "button",
      "aria-pressed": "false",
      "aria-label": `Look closely at picture ${picture.place + 1}: ${picture.name}`,
      title: picture.name,
    });
    face.append(this.canvas, this.button);
    const caption = element("p", "caption");
    this.answer = element("b", "answer");
    this.share = element("span", "share");
    this.after = element("span", "after");
    write(this.answer, picture.answer);
    this.wrong = picture.label !== "" && picture.label !== picture.answer;
    this.answer.classList.toggle("wrong", this.wrong);
    caption.append(this.answer, " ", this.share, this.after);
    this.root.append(face, caption);
    this.plate = new Plate(this.canvas);
    this.plate.fit(frame);
    this.button.addEventListener("click", () => onSelect(picture.place));
  }

  show(look) {
    this.plate.show(this.picture, look);
    this.view = look.view;
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
    const { name, answer, hiddenAt } = this.picture;
    const share = hiddenAt[step] ? `${percent(shareHidden(this.picture, step))} hidden` : "nothing hidden";
    this.canvas.setAttribute(
      "aria-label", `${name}: ${VIEWS[this.view]}. The model answers ${answer}${this.wrong ? ", wrongly" : ""}; ${share}.`,
    );
  }

  choose(chosen) {
    this.button.setAttribute("aria-pressed", String(chosen));
    this.button.tabIndex = chosen ? 0 : -1;
  }
}

const ORDERS = {
  given: () => 0,
  most: (step) => (a, b) => shareHidden(b, step) - shareHidden(a, step),
  least: (step) => (a, b) => shareHidden(a, step) - shareHidden(b, step),
  change: (_, rows) => (a, b) =>
    rows ? b.confidence - rows[b.place][2] - (a.confidence - rows[a.place][2]) : 0,
};

class ContactSheet {
  // onSelect(place) for a chosen picture; onShown(pictures) when others are shown than before.
  constructor(root, { signal, onSelect, onShown }) {
    this.list = root.querySelector(".sheet");
    this.groups = root.querySelector(".group");
    this.orders = root.querySelector(".order");
    this.onSelect = onSelect;
    this.onShown = onShown;
    this.groups.addEventListener("change", () => this.arrange(true), { signal });
    this.orders.addEventListener("change", () => this.arrange(), { signal });
    this.list.addEventListener("keydown", (event) => this.#walk(event), { signal });
  }

  fill(pictures, size) {
    const frame = new Frame(size, Math.max(1, Math.round(TILE / Math.max(...size))));
    this.tiles = pictures.map(
      (picture) => new Tile(picture, frame, { onSelect: (place) => this.onSelect(place) }),
    );
    const names = [...new Set(pictures.map(({ group }) => group))];
    this.groups.replaceChildren(
      new Option("All groups", ""), ...names.map((name) => new Option(name, `=${name}`)),
    );
    this.groups.closest("label").hidden = names.length < 2;
    this.rows = undefined;
    this.arrange();
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
      const focused = shown.find((tile) => tile.root.contains(tile.root.getRootNode().activeElement));
      this.list.replaceChildren(...shown.map(({ root }) => root));
      focused?.button.focus({ preventScroll: true });
    }
    this.shown = shown;
    if (filtered) this.onShown(shown.map(({ picture }) => picture));
  }

  show(look) {
    this.step = look.step;
    for (const tile of this.shown) tile.show(look);
  }

  move(step) {
    this.step = step;
    for (const tile of this.shown) {
      tile.plate.move(step);
      tile.caption(step);
    }
  }

  // Takes the answers after hiding: rows in sheet order, undefined while they are not known.
  answerAfter(rows) {
    this.rows = rows ?? this.rows; // sorting goes by the last known ones, or tiles would jump twice
    for (const tile of this.tiles) tile.answerAfter(rows?.[tile.picture.place]);
  }

  choose(place) {
    for (const tile of this.tiles) tile.choose(tile.picture.place === place);
    // When the chosen picture is filtered out, Tab must still reach the sheet.
    if (!this.shown.some(({ picture }) => picture.place === place)) this.shown[0].button.tabIndex = 0;
  }

  // Arrow keys go from tile to tile; the picture they reach fills the loupe.
  #walk(event) {
    const at = this.shown.findIndex(({ button }) => button === event.target);
    const columns = getComputedStyle(this.list).gridTemplateColumns.split(" ").length;
    const steps = {
      ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns,
      Home: -at, End: this.shown.length - 1 - at,
    };
    const to = this.shown[at + steps[event.key]];
    if (at < 0 || !to) return;
    event.preventDefault();
    to.button.focus();
    this.onSelect(to.picture.place);
  }
}
