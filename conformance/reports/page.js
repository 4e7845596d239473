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
function reveal() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let node = place; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  if (place) place.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
