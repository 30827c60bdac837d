// j and k walk through the rows, Enter opens, a row's own keys press its buttons, / searches, g and a letter goes to a screen, ? shows the keys.
let waitsForScreen = 0;

export function listenToKeys() {
  document.addEventListener("keydown", pressed);
  document.querySelector("[data-help]")?.addEventListener("click", help);
  document.addEventListener("click", (event) => open(event.target.closest?.("button[data-open]")));
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "Escape") { escape(typing); return; }
  if (typing || document.querySelector("dialog[open]")) return;
  if (waitsForScreen && Date.now() < waitsForScreen) {
    waitsForScreen = 0;
    const target = [...document.querySelectorAll(".side [data-key]")].find((a) => a.dataset.key === event.key);
    if (target) { event.preventDefault(); target.click(); }
    return;
  }
  const handler = { j: () => walk(1), k: () => walk(-1), "/": search, "?": help, g: () => (waitsForScreen = Date.now() + 1500), Enter: () => openRow(event) }[event.key];
  if (!handler) { if (decide(event.key)) event.preventDefault(); return; }
  if (event.key !== "Enter" && event.key !== "g") event.preventDefault();
  handler();
}

const rows = () => [...document.querySelectorAll("main [data-row]")].filter((row) => row.offsetParent !== null);
const here = () => document.querySelector("main [data-row].here");

function walk(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(here());
  const next = at < 0 ? firstSeen(all, step) : Math.min(all.length - 1, Math.max(0, at + step));
  select(all[next]);
}

// Without a row to start from: the first (or last) one that is in view.
function firstSeen(all, step) {
  const seen = all.map((row) => row.getBoundingClientRect()).map((box, n) => {
    const frame = (all[n].closest(".scroller") ?? document.documentElement).getBoundingClientRect();
    return box.top >= Math.max(0, frame.top) && box.bottom <= Math.min(innerHeight, frame.bottom);
  });
  return Math.max(0, step > 0 ? seen.indexOf(true) : seen.lastIndexOf(true));
}

// A key that a button of the row names (data-press) presses it; without a chosen row, the first that waits for a decision.
function decide(key) {
  const waiting = [...document.querySelectorAll("main [data-decide]")];
  const row = here()?.matches("[data-decide]") ? here() : waiting[0];
  const button = [...(row?.querySelectorAll("[data-press]") ?? [])].find((one) => one.dataset.press === key);
  if (!button) return false;
  const next = button.dataset.command ? waiting[waiting.indexOf(row) + 1] : row;
  button.click();
  if (next) select(next);
  return true;
}

export function select(row) {
  here()?.classList.remove("here");
  row.classList.add("here");
  row.scrollIntoView({ block: "nearest" });
  row.dispatchEvent(new CustomEvent("row", { bubbles: true }));
}

function openRow(event) {
  if (event.target.closest?.("a, button, summary")) return;
  const target = here();
  (target?.matches("a") ? target : target?.querySelector("a.go, a, summary, button"))?.click();
}

function open(button) {
  const form = button && document.getElementById(button.dataset.open);
  if (!form) return;
  form.hidden = !form.hidden;
  form.toggleAttribute("data-keep", !form.hidden); // The page may be refreshed while somebody writes.
  form.querySelector("input")?.focus();
}

function search() {
  const field = document.querySelector("main [data-slash]") ?? document.querySelector("[data-slash]");
  field?.focus();
  field?.select();
}

function help() {
  const dialog = document.getElementById("keys");
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

function escape(typing) {
  if (typing) typing.blur();
  else document.dispatchEvent(new CustomEvent("leave"));
}
