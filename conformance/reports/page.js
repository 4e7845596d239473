"use strict";
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  });
}
for (const filter of document.querySelectorAll("input.filter")) {
  const place = filter.closest("p");
  place.hidden = false;
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const row of place.nextElementSibling.querySelectorAll("tbody tr")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}
function addButtons(before, names, press) {
  const bar = document.createElement("p");
  bar.className = "buttons";
  for (const name of names) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name.replace("-", " ");
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => press(name, button));
    bar.append(button);
  }
  before.before(bar);
  return bar;
}

// The map of requirements: a button for each verdict shows its cells alone.
for (const map of document.querySelectorAll(".map")) {
  const cells = [...map.querySelectorAll("li > .verdict")];
  const verdicts = [...new Set(cells.map((cell) => cell.classList[1]))];
  const chosen = new Set();
  if (verdicts.length < 2) continue;
  addButtons(map, verdicts, (verdict, button) => {
    if (!chosen.delete(verdict)) chosen.add(verdict);
    button.setAttribute("aria-pressed", chosen.has(verdict));
    for (const cell of cells) cell.parentElement.hidden = chosen.size > 0 && !chosen.has(cell.classList[1]);
    for (const list of map.querySelectorAll("ul")) {
      const row = list.parentElement;
      row.hidden = row.previousElementSibling.hidden = !list.querySelector("li:not([hidden])");
    }
  });
}

// Drawings on an axis of time: they zoom together, and a mark is where the field asks what happened.
const DAY = 86400000, NEAR = 12, ZOOMS = ["1×", "4×", "16×"];
const drawings = [...document.querySelectorAll("svg.timeline")];
const field = document.querySelector("input.around");
function milliseconds(text) {
  const clock = /(\d+):(\d+)(?::(\d+(?:\.\d+)?))?/.exec(text), seconds = /\d+(\.\d+)?/.exec(text);
  if (clock) return (clock[1] * 3600 + clock[2] * 60 + Number(clock[3] || 0)) * 1000;
  return seconds ? seconds[0] * 1000 : null;
}
function placeOf(drawing, time) {
  const since = Number(drawing.dataset.since), until = Number(drawing.dataset.until);
  let place = time - Number(drawing.dataset.zero || 0);
  while (place < since) place += DAY;
  return (place - since) / Math.max(1, until - since);
}
function mark(time) {
  for (const drawing of drawings) {
    drawing.querySelector(".mark")?.remove();
    const place = time === null ? 2 : placeOf(drawing, time);
    if (place > 1) continue;
    const line = document.createElementNS(drawing.namespaceURI, "line");
    for (const end of ["x1", "x2"]) line.setAttribute(end, `${100 * place}%`);
    line.setAttribute("y1", 18);
    line.setAttribute("y2", "100%");
    line.setAttribute("class", "mark");
    drawing.append(line);
    const box = drawing.parentElement;
    box.scrollLeft = place * drawing.clientWidth - box.clientWidth / 2;
  }
}
function showAround() {
  const time = milliseconds(field.value);
  const rows = [...field.closest("p").nextElementSibling.querySelectorAll("tbody tr")];
  const distance = (row) => {
    const apart = Math.abs(milliseconds(row.cells[0].textContent.split(" ").pop()) - time) % DAY;
    return Math.min(apart, DAY - apart);
  };
  const near = new Set([...rows].sort((one, other) => distance(one) - distance(other)).slice(0, NEAR));
  for (const row of rows) row.hidden = time !== null && !near.has(row);
  mark(time);
}
function fitLabels() {
  for (const label of document.querySelectorAll("svg.timeline svg text")) {
    const room = label.parentElement.getBoundingClientRect().width;
    label.setAttribute("visibility", label.getComputedTextLength() + 8 < room ? "visible" : "hidden");
  }
}
for (const drawing of drawings) {
  const box = drawing.parentElement;
  addButtons(box, ZOOMS, (name) => {
    for (const each of drawings) each.style.width = `${100 * parseInt(name)}%`;
    for (const each of document.querySelectorAll(".zoom button")) {
      each.setAttribute("aria-pressed", each.textContent === name);
    }
    document.body.dataset.zoom = parseInt(name);
    fitLabels();
    if (field) mark(milliseconds(field.value));
  }).className = "buttons zoom";
  box.addEventListener("scroll", () => {
    for (const name of drawing.querySelectorAll(".row-name")) name.setAttribute("x", box.scrollLeft);
  });
  drawing.addEventListener("click", (event) => {
    if (!field) return;
    const frame = drawing.getBoundingClientRect(), share = (event.clientX - frame.left) / frame.width;
    const since = Number(drawing.dataset.since), time = since + share * (Number(drawing.dataset.until) - since);
    const clock = new Date((time + Number(drawing.dataset.zero || 0)) % DAY).toISOString();
    field.value = drawing.dataset.zero ? clock.slice(11, 23) : `${(time / 1000).toFixed(3)} s`;
    showAround();
  });
}
if (field) {
  field.closest("p").hidden = false;
  field.addEventListener("input", showAround);
  showAround();
}
addEventListener("resize", fitLabels);
addEventListener("toggle", fitLabels, true);
fitLabels();

function reveal() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = place; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  if (place) place.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
