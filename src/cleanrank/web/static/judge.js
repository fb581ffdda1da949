// Sends answers and shows the next question. A request that got no answer is sent again under the same id, so
// that it is stored once, however often the connection or the server failed.
"use strict";
(() => {
  const status = document.getElementById("status");
  const bar = () => document.querySelector(".answers");
  let seconds = 0, since = performance.now(), busy = false;

  // Only the time that the page was in sight counts.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) seconds += (performance.now() - since) / 1000;
    since = performance.now();
  });

  const requestId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, "0")).join("");
  const wait = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

  async function persistently(address, options) {
    for (let pause = 500; ; pause = Math.min(2 * pause, 5000)) {
      try {
        const response = await fetch(address, options);
        if (response.status !== 429 && response.status < 500) return {ok: response.ok, text: await response.text()};
        status.textContent = "The server is busy. Trying again …";
      } catch (error) {
        status.textContent = "The server does not answer. Your answer is kept here and sent again …";
      }
      await wait(pause);
    }
  }

  function reasonIn(text) {
    try {
      return JSON.parse(text).error;
    } catch (error) {  // of a proxy, say
      return "";
    }
  }

  async function showNext() {
    const {text} = await persistently(location.href, {headers: {accept: "text/html"}});
    const next = new DOMParser().parseFromString(text, "text/html");
    const page = next.getElementById("page");
    if (!page) {  // of a proxy, say
      status.textContent = "The next question could not be loaded. Your answers are stored; load the page again.";
      return;
    }
    document.title = next.title;
    document.getElementById("page").replaceWith(document.adoptNode(page));
    scrollTo(0, 0);
    const heading = document.getElementById("query");
    if (heading) heading.focus({preventScroll: true});
    seconds = 0;
    since = performance.now();
    document.dispatchEvent(new Event("question-shown"));
  }

  async function send(button) {
    if (busy) return;
    busy = true;
    const {batch, unit, question} = bar().dataset;
    const action = button.dataset.action;
    const body = {request: requestId()};
    if (action !== "undo") {
      Object.assign(body, {unit: Number(unit), question, seconds: seconds + (performance.now() - since) / 1000});
      if (action === "answer") body.value = JSON.parse(button.dataset.value);
    }
    button.classList.add("chosen");
    const headers = {"content-type": "application/json", "x-csrf-token": document.querySelector("meta[name=csrf]").content};
    const {ok, text} = await persistently(`/api/batches/${batch}/${action}`, {method: "POST", headers, body: JSON.stringify(body)});
    status.textContent = ok ? "" : reasonIn(text) || "The server refused the answer.";
    await showNext();
    busy = false;
  }

  document.addEventListener("click", event => {
    const button = event.target.closest(".answers button[data-action]");
    if (button) send(button);
  });

  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("input, textarea, select")) return;
    const button = [...document.querySelectorAll(".answers button[data-key]")].find(
      each => each.dataset.key.toLowerCase() === event.key.toLowerCase());
    if (!button) return;
    event.preventDefault();
    button.click();
  });
})();
