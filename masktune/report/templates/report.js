"use strict";

// The page's colours, as the browser resolves them now: Plotly cannot read CSS variables.
function colour(name) {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = "var(" + name + ")";
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

function draw(holder) {
  const spec = JSON.parse(holder.querySelector("script").textContent);
  const muted = colour("--muted");
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

function drawAll() {
  document.querySelectorAll(".figure").forEach(draw);
}

// A text that starts like a formula would be run by spreadsheet programs.
function field(value) {
  let text = value === null ? "" : String(value);
  if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

function csv(table) {
  return [...table.rows].map((row) => [...row.cells].flatMap((cell) => {
    return JSON.parse(cell.dataset.names || cell.dataset.values);
  }).map(field).join(",")).join("\n") + "\n";
}

function addSave(box) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "save";
  button.textContent = "Save as CSV";
  button.setAttribute("aria-label", "Save as CSV: " + box.dataset.name);
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(box.querySelector("table"))], { type: "text/csv" }));
    link.download = box.dataset.name.replace(/[^\p{L}\p{N}]+/gu, "-") + ".csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  box.after(button);
}

document.querySelectorAll(".table").forEach(addSave);
drawAll();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
