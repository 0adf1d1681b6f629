// The strip: how much heat lies how far above the mean, the slider under it, and what it hides.

const BIN = 3; // steps a bar of the histogram, so 100 bars
const TYPING = 250; // ms without a key before a keyboard move counts as done

const percent = (share) => {
  if (share > 0 && share < 0.0005) return "<0.1%";
  return `${(share * 100).toFixed(1)}%`;
};

// Writes text only where it changed, and into the text node that is there: a write costs a layout.
function write(node, text) {
  if (!node.firstChild) node.append(text);
  else if (node.firstChild.data !== text) node.firstChild.data = text;
}

// Lets a name break after its underscores, and a range such as 5–9 nowhere.
function breakable(name) {
  return name.replaceAll("_", "_\u200b").replaceAll("–", "–\u2060");
}

class Strip {
  // onScrub(step) while moving; onSettle(step) once, when the hand lets go.
  constructor(root, { signal, onScrub, onSettle }) {
    this.scale = root.querySelector(".scale");
    this.slider = root.querySelector(".slider");
    this.chart = root.querySelector(".histogram");
    this.value = root.querySelector(".value");
    this.hides = root.querySelector(".hides");
    this.empty = root.querySelector(".empty");
    this.onSettle = onSettle;
    let keyed = false;
    const { slider } = this;
    const on = (event, act) => slider.addEventListener(event, act, { signal });
    on("input", () => onScrub(stepAt(slider.valueAsNumber)));
    on("pointerdown", () => (keyed = false));
    on("keydown", () => (keyed = true));
    on("change", () => (keyed ? this.#wait() : this.#settle()));
    on("blur", () => this.#settle()); // before a button of the page is pressed
    this.resizing = new ResizeObserver(() => this.#draw());
    this.resizing.observe(this.chart);
  }

  #wait() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#settle(), TYPING);
  }

  #settle() {
    clearTimeout(this.timer);
    this.onSettle(stepAt(this.slider.valueAsNumber));
  }

  // Puts the slider somewhere without a hand.
  set(step) {
    this.slider.value = kAt(step);
  }

  // Says on which side of the threshold pixels are hidden.
  turn(keepsHot) {
    this.scale.classList.toggle("keeps-hot", keepsHot);
    const ends = this.scale.parentElement.querySelectorAll(".ticks .end");
    const words = keepsHot ? ["hides least", "hides most"] : ["hides most", "hides least"];
    ends.forEach((end, i) => write(end, words[i]));
  }

  // Takes the heat of the pictures shown, a list for each column.
  count(columns) {
    this.bars = new Float64Array(Math.ceil((STEPS - 1) / BIN));
    for (const { counts } of columns.flat()) {
      // A pixel of level s lies between s - 1 and s hundredths of a sigma above the mean.
      for (let s = 1; s < STEPS; s++) this.bars[Math.floor((s - 1) / BIN)] += counts[s];
    }
    this.#draw();
  }

  #draw() {
    const { width, height } = this.chart.getBoundingClientRect();
    if (!this.bars || width === 0) return;
    const most = this.bars.reduce((a, b) => Math.max(a, b), 1);
    const points = Array.from(this.bars, (bar, i) => {
      const x = ((i + 0.5) / this.bars.length) * width;
      return `${x.toFixed(1)},${(height - (bar / most) * (height - 6)).toFixed(1)}`;
    });
    const [first, last] = [points[0], points.at(-1)].map((point) => point.split(",")[1]);
    const line = `M0,${first}L${points.join("L")}L${width},${last}`;
    for (const path of this.chart.querySelectorAll(".curve")) path.setAttribute("d", line);
    for (const path of this.chart.querySelectorAll(".area")) {
      path.setAttribute("d", `${line}V${height}H0Z`);
    }
  }

  // Says what a step hides: the share of all pixels shown, and pictures left whole; by column.
  tell(step, columns) {
    const shares = [];
    const whole = [];
    for (const pictures of columns) {
      let share = 0;
      let empty = 0;
      for (const picture of pictures) {
        share += shareHidden(picture, step) / pictures.length;
        if (picture.hiddenAt[step] === 0) empty++;
      }
      const { title } = pictures[0];
      shares.push(title ? `${title} ${percent(share)}` : percent(share));
      whole.push(empty);
    }
    const k = kAt(step).toFixed(2);
    const hides = shares.join(", ");
    this.scale.style.setProperty("--at", step / (STEPS - 1));
    write(this.value, `k = ${k}`);
    write(this.hides, columns.length > 1 ? `hides: ${hides}` : `hides ${hides} of these pictures`);
    // Of several columns the captions say it: here they would need three lines.
    const alone = columns.length === 1 && whole[0];
    write(this.empty, alone ? `nothing hidden in ${alone} of ${columns[0].length}` : "");
    this.slider.setAttribute("aria-valuetext", `k ${k}, hides ${hides}`);
  }

  close() {
    clearTimeout(this.timer);
    this.resizing.disconnect();
  }
}
