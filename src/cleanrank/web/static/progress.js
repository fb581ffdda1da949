// Shows the figures once they are there; a form that somebody has begun to fill in stays as it is.
"use strict";
(() => {
  let touched = false;
  for (const event of ["focusin", "input"]) {
    document.addEventListener(event, ({target}) => { touched ||= Boolean(target.closest("#next")); });
  }

  document.addEventListener("change", ({target}) => {  // as many rows as are worth asking for now
    if (target.dataset.rows) document.querySelector("#next [name=n]").value = target.dataset.rows;
  });

  async function look() {
    const response = await fetch("/progress?count=false");
    if (!response.ok) return;
    const next = new DOMParser().parseFromString(await response.text(), "text/html");
    const page = document.adoptNode(next.getElementById("page"));
    if (touched) page.querySelector("#next").replaceWith(document.getElementById("next"));
    document.getElementById("page").replaceWith(page);
  }

  async function watch() {
    while (document.querySelector("[data-busy]")) {
      await new Promise(resolve => setTimeout(resolve, 1500));
      if (!document.hidden) await look().catch(() => {});  // no connection: later
    }
  }

  watch();
})();
