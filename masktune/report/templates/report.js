"use strict";

// The page's colours, as the browser resolves them now: Plotly cannot read CSS variables.
function colour(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = "var(" + name + ")";
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

function draw(holder, width) {
  const spec = JSON.parse(holder.querySelector("script").textContent);
  const muted = colour("--muted");
  spec.layout.width = width;
  spec.layout.font = { ...spec.layout.font, family: getComputedStyle(document.body).fontFamily,
    color: colour("--ink") };
  for (const name of Object.keys(spec.layout)) {
    if (/^[xy]axis\d*$/.test(name)) {
      Object.assign(spec.layout[name], { gridcolor: colour("--border"), tickfont: { color: muted } });
      if (spec.layout[name].title) {
        spec.layout[name].title.font = { ...spec.layout[name].title.font, color: muted };
      }
    }
  }
  let plot = holder.querySelector(".plot");
  if (!plot) {
    plot = holder.appendChild(document.createElement("div"));
    plot.className = "plot";
  }
  return Plotly.react(plot, spec.data, spec.layout, spec.config);
}

function drawAll({ width } = {}) {
  document.querySelectorAll(".figure").forEach((holder) => draw(holder, width));
}

function addSave(box) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "save";
  button.textContent = "Save as CSV";
  button.setAttribute("aria-label", "Save as CSV: " + box.dataset.name);
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([box.dataset.csv], { type: "text/csv" }));
    link.download = box.dataset.name.replace(/[^\p{L}\p{N}]+/gu, "-") + ".csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  box.after(button);
}

// Paper is light, and narrower than the screen: figures are drawn for it, with letters of the usual
// size, and shrink to a narrower one as pictures do.
function forPaper() {
  document.documentElement.style.colorScheme = "light";
  drawAll({ width: 660 });
  document.querySelectorAll(".main-svg").forEach((svg) => {
    const [width, height] = [svg.getAttribute("width"), svg.getAttribute("height")];
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    svg.closest(".figure").style.setProperty("--ratio", width + " / " + height);
  });
}

function forScreen() {
  document.documentElement.style.colorScheme = "";
  document.querySelectorAll(".main-svg").forEach((svg) => svg.removeAttribute("viewBox"));
  drawAll();
}

document.querySelectorAll(".table[data-csv]").forEach(addSave);
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("beforeprint", forPaper);
addEventListener("afterprint", forScreen);
