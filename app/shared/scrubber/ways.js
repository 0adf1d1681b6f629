// The chosen picture by every explainer, at the same threshold: heat that Python sends when asked to.

class Ways {
  // onAsk(asked) when somebody wants to see them, or no longer.
  constructor(root, { signal, onAsk }) {
    this.box = root.querySelector(".every");
    this.button = this.box.querySelector("button");
    this.list = this.box.querySelector(".ways");
    this.loupe = root.querySelector(".loupe");
    this.wait = this.box.querySelector(".wait");
    this.asked = false;
    this.shown = [];
    this.button.addEventListener("click", () => {
      this.ask(!this.asked);
      onAsk(this.asked);
    }, { signal });
  }

  ask(asked) {
    this.asked = asked;
    this.button.setAttribute("aria-expanded", String(asked));
    if (!asked) this.clear();
  }

  // Makes room for pictures of one size.
  fill(header) {
    this.header = header;
    this.frame = new Frame(header.size, Math.max(1, Math.round(TILE / Math.max(...header.size))));
    this.clear();
  }

  clear() {
    this.rows = this.picture = undefined;
    this.shown = [];
    this.list.replaceChildren();
    write(this.wait, "");
  }

  // Shows rows [{title, coarse, heat, mu, sigma} or {title, problem}] of one picture; undefined while
  // they are on their way.
  show(rows, picture, look) {
    if (!this.asked) return;
    if (rows && rows === this.rows && picture === this.picture) return this.paint(look);
    this.clear();
    if (!rows) return write(this.wait, "Asking every explainer …");
    this.rows = rows;
    this.picture = picture;
    for (const row of rows) this.list.append(this.#item(row, picture));
    this.paint(look);
    // In a loupe that scrolls by itself they would lie below its edge.
    this.loupe.scrollTop = this.box.offsetTop;
  }

  #item(row, picture) {
    const item = element("li", "way");
    const words = element("span", "words");
    if (row.problem) {
      write(words, `${row.title}: ${row.problem}`);
      item.append(words);
      return item;
    }
    const way = { title: row.title, name: picture.name, orders: new Map() };
    develop(way, { ...row, heat: Float32Array.from(row.heat) }, this.header, picture.pixels);
    const canvas = element("canvas", "picture", { role: "img" });
    const plate = new Plate(canvas);
    plate.fit(this.frame);
    item.append(canvas, words);
    this.shown.push({ way, plate, canvas, words });
    return item;
  }

  paint(look) {
    this.view = look.view;
    for (const { way, plate } of this.shown) plate.show(way, look);
    this.tell(look.step);
    this.describe(look.step);
  }

  move(step) {
    for (const { plate } of this.shown) plate.move(step);
    this.tell(step);
  }

  tell(step) {
    for (const { way, words } of this.shown) {
      const share = way.hiddenAt[step] ? percent(shareHidden(way, step)) : "nothing";
      write(words, `${way.title} ${share}`);
    }
  }

  describe(step) {
    for (const { way, canvas } of this.shown) {
      const share = percent(shareHidden(way, step));
      canvas.setAttribute(
        "aria-label", `${way.name}, ${way.title}: ${VIEWS[this.view]}. ${share} hidden.`,
      );
    }
  }
}
