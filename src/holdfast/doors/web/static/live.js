// One stream of what happens. The page is fetched anew when something on it may have changed, and only what differs is
// exchanged, so that nothing jumps and the place where you are stays. A hidden page waits until it is looked at.
import { morph } from "./morph.js";

const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";

let every = 250;
let last = Number(meta("head"));
let source = null;
let due = 0;
let running = false;
let again = false;
let refreshedAt = 0;

export const heard = new EventTarget();

export function followLog() {
  if (!window.EventSource) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  if (!document.hidden) open();
}

function open() {
  if (source) return;
  const session = document.body.dataset.session ?? "";
  const kinds = document.body.dataset.live ?? "";
  const wanted = new URLSearchParams({ after: last, ...(session && { session }), ...(kinds && kinds !== "*" && { kinds }) });
  source = new EventSource(`/api/v1/live?${wanted}`);
  source.onopen = () => wire("live", "live");
  source.onerror = () => wire("wait", "reconnecting");
  source.onmessage = (message) => news(JSON.parse(message.data));
  source.addEventListener("reset", (message) => { last = Number(message.data); refresh(); });
  source.addEventListener("pace", (message) => { every = Number(message.data); });
  source.addEventListener("daemon", (m) => (m.data === "gone" ? wire("gone", "daemon is down") : wire("live", "live")));
}

function close() {
  source?.close();
  source = null;
  wire("wait", "paused");
}

function news(event) {
  last = Math.max(last, event.seq);
  heard.dispatchEvent(new CustomEvent("event", { detail: event }));
  if (document.body.dataset.live) refresh();
}

function wire(state, words) {
  const shown = document.querySelector("[data-wire]");
  if (!shown) return;
  shown.dataset.wire = state;
  shown.textContent = words;
  shown.title = state === "live" ? "What happens is shown at once" : words;
}

// At once when it has been quiet, else a little later: many events in a row are one look.
export function refresh() {
  if (due) return;
  due = setTimeout(() => { due = 0; fetchAnew(); }, Math.max(0, refreshedAt + every - Date.now()));
}

async function fetchAnew() {
  if (running) { again = true; return; }
  running = true;
  refreshedAt = Date.now();
  try {
    const address = new URL(location.href);
    address.searchParams.set("live", "1");
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    if (answer.status === 401) wire("gone", "the key is no longer good");
    else if (answer.ok) exchange(await answer.text());
  } catch { wire("wait", "reconnecting"); }
  running = false;
  if (again) { again = false; refresh(); }
}

function exchange(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  morph(document.querySelector("main"), fresh.querySelector("main"));
  morph(document.querySelector(".where"), fresh.querySelector(".where"));
  document.title = fresh.title;
  const icon = fresh.querySelector("link[rel=icon]")?.getAttribute("href");
  if (icon) document.querySelector("link[rel=icon]").setAttribute("href", icon);
  heard.dispatchEvent(new Event("page"));
}
