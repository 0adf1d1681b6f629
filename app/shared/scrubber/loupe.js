// The loupe: one picture large in the sheet's view, its other views small, and its facts.

const LOUPE = 448; // pixels of the large canvas, about

class Loupe {
  constructor(root, { signal, onView }) {
    this.name = root.querySelector(".loupe .name");
    this.facts = Object.fromEntries(
      ["label", "answer", "after", "share", "threshold"].map((fact) => [
        fact, root.querySelector(`.fact-${fact}`),
      ]),
    );
    this.large = root.querySelector(".loupe .large");
    this.caption = root.querySelector(".loupe .shows");
    this.plate = new Plate(this.large);
    this.smalls = [...root.querySelectorAll(".loupe .small")].map((button) => {
      const small = { button, words: button.querySelector("span") };
      small.plate = new Plate(button.querySelector("canvas"));
      button.addEventListener("click", () => onView(small.view), { signal });
      return small;
    });
  }

  fill(size) {
    const longer = Math.max(...size);
    this.plate.fit(new Frame(size, Math.max(1, Math.round(LOUPE / longer))));
    const frame = new Frame(size, Math.max(1, Math.round(TILE / longer)));
    for (const { plate } of this.smalls) plate.fit(frame);
    this.picture = undefined;
  }

  show(picture, look) {
    // Orders of the large canvas are large too: only the present picture keeps its own.
    if (this.picture !== picture) this.picture?.orders.delete(this.plate.frame.scale);
    this.picture = picture;
    this.view = look.view;
    write(this.name, breakable(picture.name));
    write(this.caption, `${picture.title && `${picture.title}: `}${VIEWS[look.view]}`);
    this.plate.show(picture, look);
    const others = Object.keys(VIEWS).filter((view) => view !== look.view);
    this.smalls.forEach((small, i) => {
      small.view = others[i];
      write(small.words, WORDS[others[i]]);
      small.plate.show(picture, { ...look, view: others[i] });
    });
    this.facts.label.parentElement.hidden = picture.label === "";
    write(this.facts.label, breakable(picture.label));
    write(this.facts.answer, breakable(`${picture.answer}, ${Math.round(picture.confidence * 100)}%`));
    this.facts.answer.classList.toggle("wrong", picture.label !== "" && picture.label !== picture.answer);
    this.tell(look.step);
    this.describe(look.step);
  }

  move(step) {
    this.plate.move(step);
    for (const { plate } of this.smalls) plate.move(step);
    this.tell(step);
  }

  tell(step) {
    const { hiddenAt, mu, sigma } = this.picture;
    const share = percent(shareHidden(this.picture, step));
    write(this.facts.share, hiddenAt[step] ? share : "nothing");
    write(this.facts.threshold, (mu + kAt(step) * sigma).toFixed(3));
  }

  // Says what the model answers after hiding: null when nobody asks it, undefined while not known.
  answerAfter(news) {
    this.facts.after.parentElement.hidden = news === null;
    const sure = news && `${breakable(news[0])}, ${Math.round(news[1] * 100)}%`;
    write(this.facts.after, !news ? "…" : news[0] === this.picture.answer ? sure : `→ ${sure}`);
  }

  describe(step) {
    const share = percent(shareHidden(this.picture, step));
    this.large.setAttribute(
      "aria-label", `${this.picture.name}, large: ${this.caption.textContent}. ${share} hidden.`,
    );
  }
}
