"use strict";
// Filters the pairs of samples by what became of them; without it all are shown.
for (const filter of document.querySelectorAll(".filter")) {
  const groups = document.querySelectorAll("div[data-kind]");
  filter.hidden = false;
  filter.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const one of filter.querySelectorAll("button")) one.setAttribute("aria-pressed", String(one === button));
    for (const group of groups) group.hidden = button.dataset.kind !== "all" && group.dataset.kind !== button.dataset.kind;
  });
}
// On paper a filter would hide without saying so.
addEventListener("beforeprint", () => {
  for (const group of document.querySelectorAll("div[data-kind]")) group.hidden = false;
});
