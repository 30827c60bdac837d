// The list of sessions: it goes on as one scrolls; views one has saved (in this browser); the export of several at once.
import { toast } from "./act.js";
import { heard } from "./live.js";

const KEPT = "holdfast.views";
const MOST_AT_ONCE = 500;
const picked = new Set();
const form = document.querySelector("[data-export]");

// On a phone the filters would fill the first screen: all but the text wait behind a button, unless some are in use.
const filters = document.querySelector("[data-filters]");
const unfold = filters.querySelector("[data-more]");
function shorten(short) { filters.classList.toggle("short", short); unfold.setAttribute("aria-expanded", String(!short)); }
shorten(!location.search);
unfold.addEventListener("click", () => shorten(!filters.classList.contains("short")));

// Live: a choice counts at once, a text a moment after the last key.
filters.querySelector("[data-apply]").hidden = true;
let typing = 0;
filters.addEventListener("change", (event) => { if (event.target.matches("select")) filters.requestSubmit(); });
filters.addEventListener("input", (event) => {
  if (!event.target.matches("input:not([type=hidden])")) return;
  clearTimeout(typing);
  typing = setTimeout(() => { sessionStorage.setItem("holdfast.typed", event.target.name); filters.requestSubmit(); }, 500);
});
const typed = filters.elements[sessionStorage.getItem("holdfast.typed") ?? ""];
sessionStorage.removeItem("holdfast.typed");
if (typed) { typed.focus(); typed.setSelectionRange?.(typed.value.length, typed.value.length); }

const saved = () => { try { return JSON.parse(localStorage.getItem(KEPT)) ?? {}; } catch { return {}; } };

function showViews() {
  const place = document.querySelector("[data-saved]");
  place.replaceChildren(...Object.entries(saved()).flatMap(([name, query]) => [link(name, query), remover(name)]));
  const save = document.querySelector("[data-save]");
  save.hidden = !location.search || Object.values(saved()).includes(location.search);
}

function link(name, query) {
  const made = document.createElement("a");
  made.href = `/sessions${query}`;
  made.textContent = name;
  if (query === location.search) made.setAttribute("aria-current", "page");
  return made;
}

function remover(name) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = "×";
  made.setAttribute("aria-label", `Remove the view ${name}`);
  made.addEventListener("click", () => { const all = saved(); delete all[name]; keep(all); });
  return made;
}

function keep(all) {
  localStorage.setItem(KEPT, JSON.stringify(all));
  showViews();
}

document.querySelector("[data-save]")?.addEventListener("click", () => {
  const name = window.prompt("Name of this view")?.trim();
  if (name) keep({ ...saved(), [name]: location.search });
});

function showPicked() {
  for (const box of document.querySelectorAll("[data-pick]")) box.checked = picked.has(box.value);
  const all = document.querySelector("[data-pick-all]");
  if (all) { const shown = [...document.querySelectorAll("[data-pick]")]; all.hidden = false; all.checked = shown.length > 0 && shown.every((box) => box.checked); }
  if (!form) return;
  form.hidden = !picked.size;
  form.querySelector("[data-picked]").textContent = `${picked.size} selected`;
  form.querySelector("[data-download]").disabled = !picked.size || picked.size > MOST_AT_ONCE;
  form.querySelector("[data-download]").title = picked.size > MOST_AT_ONCE ? `At most ${MOST_AT_ONCE} at once` : "";
}

document.addEventListener("change", (event) => {
  const box = event.target.closest("[data-pick], [data-pick-all]");
  if (!box) return;
  const boxes = box.matches("[data-pick]") ? [box] : [...document.querySelectorAll("[data-pick]")];
  for (const one of boxes) { if (box.checked) picked.add(one.value); else picked.delete(one.value); }
  showPicked();
});
form?.querySelector("[data-pick-none]").addEventListener("click", () => { picked.clear(); showPicked(); });
form?.querySelector("[data-download]").addEventListener("click", download);

// One file, or one archive with a file for each.
async function download() {
  const wanted = new URLSearchParams({ format: form.elements.format.value });
  for (const id of picked) wanted.append("id", id);
  const button = form.querySelector("[data-download]");
  button.disabled = true;
  const answer = await fetch(`/sessions/export?${wanted}`);
  button.disabled = false;
  if (!answer.ok) { toast(`The sessions could not be exported (${answer.status}).`, "bad"); return; }
  const file = document.createElement("a");
  file.href = URL.createObjectURL(await answer.blob());
  file.download = answer.headers.get("content-disposition")?.match(/filename="([^"]+)"/)?.[1] ?? "sessions";
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href), 10_000);
}

// ── the list goes on: the next page joins when the end of this one comes near ──

const more = document.getElementById("more");
const end = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) loadNext(); }, { rootMargin: "1500px" });
let loading = false;

async function loadNext() {
  const next = document.querySelector(".paging [rel=next]");
  if (loading || !next) return;
  loading = true;
  try {
    const answer = await fetch(next.href, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const table = document.importNode(fresh.querySelector(".all-sessions"), true);
    for (const row of [...table.tBodies[0].rows]) if (document.getElementById(row.id)) row.remove();
    for (const element of table.querySelectorAll("thead a, thead input")) element.remove();
    more.append(table);
    const paging = document.querySelector(".paging");
    paging.toggleAttribute("data-keep", true);
    const first = paging.querySelector(".dim").textContent.split(" ")[0];
    paging.replaceChildren(...[...fresh.querySelector(".paging").childNodes].map((node) => document.importNode(node, true)));
    paging.querySelector("[rel=prev]")?.remove();
    paging.querySelector(".dim").textContent = paging.querySelector(".dim").textContent.replace(/^\S+/, first);
    showPicked();
  } finally {
    loading = false;
    watchEnd();
  }
}

function watchEnd() {
  const paging = document.querySelector(".paging");
  end.disconnect();
  if (more && paging) end.observe(paging);
}

heard.addEventListener("page", () => { showViews(); showPicked(); });
showViews();
showPicked();
watchEnd();
