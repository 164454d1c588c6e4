// Live parts: an element with data-poll asks again after so many seconds, ever more slowly while nothing
// changes. It pauses while the tab is hidden and ends when the server sends it without data-poll.
(function () {
  "use strict";

  const SLOWEST = 60;
  let timer = null;
  let wait = 0;

  const live = () => document.querySelector("[data-poll]");

  function plan(reset) {
    clearTimeout(timer);
    const part = live();
    if (!part || document.hidden) return;
    const base = Number(part.dataset.poll);
    wait = reset || !wait ? base : Math.min(wait * 1.5, SLOWEST);
    timer = setTimeout(ask, wait * 1000);
  }

  function ask() {
    const part = live();
    if (part && !document.hidden) window.htmx.trigger(part, "poll");
  }

  document.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.elt.matches?.("[data-poll]") && !live()) return;
    // 204: nothing new, ask later. 200: something moved, stay close.
    plan(event.detail.xhr.status === 200);
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : ask()));
  document.addEventListener("DOMContentLoaded", () => plan(true));
})();
