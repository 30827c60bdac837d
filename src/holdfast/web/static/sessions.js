// The list of sessions: views one has saved (in this browser), and the export of several at once.
import { toast } from "./act.js";
import { heard } from "./live.js";

const KEPT = "holdfast.views";
const picked = new Set();
const form = document.querySelector("[data-export]");

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
  if (!form) return;
  form.hidden = false;
  form.querySelector("[data-picked]").textContent = `${picked.size} selected`;
  form.querySelector("[data-download]").disabled = !picked.size;
}

document.addEventListener("change", (event) => {
  const box = event.target.closest("[data-pick]");
  if (!box) return;
  if (box.checked) picked.add(box.value); else picked.delete(box.value);
  showPicked();
});
form?.querySelector("[data-pick-all]").addEventListener("click", () => { for (const box of document.querySelectorAll("[data-pick]")) picked.add(box.value); showPicked(); });
form?.querySelector("[data-pick-none]").addEventListener("click", () => { picked.clear(); showPicked(); });
form?.querySelector("[data-download]").addEventListener("click", download);

async function download() {
  const format = form.elements.format.value;
  const button = form.querySelector("[data-download]");
  button.disabled = true;
  for (const id of picked) {
    const answer = await fetch(`/sessions/export?${new URLSearchParams({ id, format })}`);
    if (!answer.ok) { toast(`${id.slice(0, 8)} could not be exported (${answer.status})`, "bad"); continue; }
    const file = document.createElement("a");
    file.href = URL.createObjectURL(await answer.blob());
    file.download = `session-${id.slice(0, 8)}.${format}`;
    file.click();
    setTimeout(() => URL.revokeObjectURL(file.href), 10_000);
  }
  button.disabled = false;
}

heard.addEventListener("page", () => { showViews(); showPicked(); });
showViews();
showPicked();
