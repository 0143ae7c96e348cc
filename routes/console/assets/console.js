// deno-lint-ignore-file layers/effects -- it runs in the browser
// What pages gain from a script: live parts, copying, local times. Everything works without it.
"use strict";

/** `data-live="3000"`: the element is fetched again from the same page that often, until it is paused or hidden. */
function keepLive(part) {
  const every = Number(part.dataset.live);
  const bar = document.querySelector(`[data-live-for="${part.id}"]`);
  const button = bar?.querySelector("button");
  const said = bar?.querySelector("[data-live-said]");
  let paused = false, failed = 0;
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      paused = !paused;
      button.textContent = paused ? "Resume" : "Pause";
      say(paused ? "Paused" : "Live");
      if (!paused) refresh();
    });
  }
  const say = (text) => {
    if (said && said.textContent !== text) said.textContent = text;
  };
  say("Live");

  async function refresh() {
    if (paused || document.hidden || busy()) return;
    try {
      const response = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "error" });
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById(
        part.id,
      );
      if (!response.ok || fresh === null) throw new Error(String(response.status));
      if (paused || busy()) return;
      if (fresh.innerHTML !== part.innerHTML) part.replaceChildren(...fresh.childNodes);
      failed = 0;
      say("Live");
      if (fresh.dataset.live === undefined) {
        paused = true;
        say("Finished");
        if (button) button.hidden = true;
        clearInterval(timer);
      }
    } catch {
      failed++;
      say(`Not updated: the server did not answer${failed > 1 ? ` ${failed} times` : ""}`);
    }
  }
  /** Nothing is taken from under a cursor: a focused control, an open menu or a selection inside stays. */
  function busy() {
    const selection = document.getSelection();
    return part.contains(document.activeElement) ||
      (selection !== null && !selection.isCollapsed && part.contains(selection.anchorNode));
  }
  const timer = setInterval(refresh, every);
  document.addEventListener("visibilitychange", refresh);
}

/** `data-copy="id"`: copies that element's text. */
function offerCopy(button) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Press Ctrl+C";
      document.getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    }
    setTimeout(() => (button.textContent = label), 2000);
  });
}

/** `data-all="name"`: a box that ticks and locks all boxes of a group. */
function bindAll(box) {
  const others = document.querySelectorAll(`input[name="${box.dataset.all}"]`);
  const apply = () => others.forEach((other) => (other.disabled = box.checked));
  box.addEventListener("change", apply);
  apply();
}

/** A form that was sent is not sent again by a second click. */
function sendOnce(form) {
  form.addEventListener("submit", () => {
    const buttons = form.querySelectorAll("button");
    setTimeout(() => buttons.forEach((button) => (button.disabled = true)));
    const busy = form.querySelector("button[data-busy]");
    if (busy) busy.textContent = busy.dataset.busy;
  });
}
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

document.querySelectorAll("[data-live]").forEach(keepLive);
document.querySelectorAll("[data-copy]").forEach(offerCopy);
document.querySelectorAll("[data-all]").forEach(bindAll);
document.querySelectorAll("form[method=post]").forEach(sendOnce);
