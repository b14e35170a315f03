"use strict";
// Filters the pairs of samples by what became of them; without it all are shown.
for (const filter of document.querySelectorAll(".filter")) {
  const pairs = document.querySelectorAll(".pair[data-kind]");
  filter.hidden = false;
  filter.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    for (const one of filter.querySelectorAll("button")) one.setAttribute("aria-pressed", String(one === button));
    for (const pair of pairs) pair.hidden = button.dataset.kind !== "all" && pair.dataset.kind !== button.dataset.kind;
  });
}
// On paper everything counts: folded parts are opened, filtered ones shown.
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  for (const pair of document.querySelectorAll(".pair[hidden]")) pair.hidden = false;
});
