// What htmx needs from us: the form token, swapped form errors, toasts, and a focus that does not get lost.
(function () {
  "use strict";

  const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

  document.addEventListener("htmx:configRequest", (event) => {
    const { verb, headers, formData } = event.detail;
    if (verb !== "get") {
      headers["X-CSRFToken"] = meta("csrf-token");
      return;
    }
    // Empty filters stay out of the address.
    for (const [name, value] of [...formData.entries()]) {
      if (value === "") formData.delete(name);
    }
  });

  // A form that was refused comes back with its errors: 422 is shown like any other answer.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status === 422 && event.detail.serverResponse) {
      event.detail.shouldSwap = true;
      event.detail.isError = false;
    }
  });

  // On a narrow screen the tabs scroll: show the one we are on.
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelector("nav [aria-current=page]")?.scrollIntoView({ block: "nearest", inline: "center" });
  });

  // --- toasts ---

  const icons = { good: "check", warn: "alert", bad: "alert" };

  function toast(text, tone) {
    const box = document.createElement("div");
    box.className = `toast ${tone}`;
    const words = document.createElement("p");
    words.textContent = text;
    const close = document.createElement("button");
    close.type = "button";
    close.setAttribute("aria-label", "Close this message");
    close.textContent = "\u00d7";
    close.addEventListener("click", () => box.remove());
    box.append(icon(icons[tone] ?? "note"), words, close);
    document.getElementById("toasts").append(box);
    setTimeout(() => box.remove(), 12_000);
  }

  function icon(name) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    svg.append(document.createElementNS("http://www.w3.org/2000/svg", "use"));
    svg.firstChild.setAttribute("href", `#i-${name}`);
    return svg;
  }

  document.addEventListener("toast", (event) => toast(event.detail.text, event.detail.tone));
  document.addEventListener("htmx:sendError", () => toast("effaced does not answer. Nothing was changed.", "bad"));
  document.addEventListener("htmx:responseError", (event) => {
    if (!event.detail.xhr.getResponseHeader("HX-Trigger")) toast("That did not work. Reload the page.", "bad");
  });

  // --- focus: what a swap takes away gives it to what came in its place ---

  const asking = new WeakSet(); // parts that asked while they had the focus; their button may be disabled by now
  let before = null;

  document.addEventListener("htmx:beforeRequest", (event) => {
    const part = event.detail.elt;
    asking[part.contains(document.activeElement) ? "add" : "delete"](part);
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const target = event.detail.target;
    const asked = event.detail.requestConfig.elt;
    const goes = target.contains(document.activeElement) || (asking.has(asked) && target.contains(asked));
    before = goes ? { id: target.id, row: target.id === "more" ? target.previousElementSibling : null } : null;
  });

  // Nothing in particular to go on with: to the top of what came, where a reader starts.
  function heading(id) {
    const part = document.getElementById(id);
    const top = part?.querySelector("h1, h2") ?? part;
    top?.setAttribute("tabindex", "-1");
    return top;
  }

  document.addEventListener("htmx:afterSettle", () => {
    const lost = document.activeElement === document.body || document.activeElement === null;
    if (before && lost) {
      const next = before.row
        ? before.row.nextElementSibling?.querySelector("a, input, button")
        : document.querySelector(`#${before.id} [aria-invalid], #${before.id} [data-focus]`) ?? heading(before.id);
      next?.focus();
    }
    before = null;
  });

  // --- what is half typed in another form stays when the part around it comes anew ---

  const fields = "form textarea[id], form input[type=text][id]";
  let typed = [];

  document.addEventListener("htmx:beforeSwap", (event) => {
    const sent = event.detail.requestConfig.elt;
    typed = [...document.querySelectorAll(fields)].filter((each) => each.value !== each.defaultValue && !sent.contains(each));
  });

  document.addEventListener("htmx:afterSettle", () => {
    for (const each of typed.filter((old) => !old.isConnected)) {
      const anew = document.getElementById(each.id);
      if (!anew || anew.value !== anew.defaultValue) continue;
      anew.value = each.value;
      anew.closest("details")?.setAttribute("open", "");
    }
    typed = [];
  });

  // --- choosing rows ---

  function countChosen() {
    const chosen = document.querySelectorAll('input[name="ids"]:checked').length;
    document.querySelectorAll("[data-chosen]").forEach((each) => { each.textContent = chosen || ""; });
    document.querySelectorAll("[data-needs-choice]").forEach((each) => { each.disabled = chosen === 0; });
  }

  document.addEventListener("change", countChosen);
  document.addEventListener("htmx:afterSettle", countChosen);
  window.addEventListener("pageshow", countChosen);
})();
