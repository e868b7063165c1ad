"use strict";
const filter = document.getElementById("filter");
if (filter) {
  const pairs = Array.from(document.querySelectorAll("[data-near]"));
  const show = function () {
    const from = Number(filter.from.value), to = Number(filter.to.value);
    let shown = 0;
    for (const pair of pairs) {
      const near = Number(pair.dataset.near);
      pair.hidden = near !== Math.min(Math.max(near, from), to);
      shown += pair.hidden ? 0 : 1;
    }
    filter.shown.value = shown + " of " + pairs.length + " shown";
  };
  filter.hidden = false;
  filter.addEventListener("input", show);
  show();
}
addEventListener("beforeprint", function () {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
