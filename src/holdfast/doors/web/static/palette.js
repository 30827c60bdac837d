// Ctrl-K (or Cmd-K): go to a page or a session, or copy a command, by typing a part of its name.
const COMMANDS = ["holdfast who", "holdfast status", "holdfast doctor", "holdfast up", "holdfast data import", "holdfast gate status", "holdfast task list", "holdfast session list --all", "holdfast search QUERY", "holdfast cost", "holdfast event tail"];
const dialog = document.getElementById("palette");
const field = dialog?.querySelector("input");
const list = dialog?.querySelector("[role=listbox]");
let found = [];
let chosen = 0;
let asked = 0;
let timer = 0;

export function listenToPalette() {
  if (!dialog) return;
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) { event.preventDefault(); open(); }
  });
  document.querySelector("[data-palette]")?.addEventListener("click", open);
  field.addEventListener("input", () => { clearTimeout(timer); look([]); timer = setTimeout(lookForSessions, 120); });
  dialog.addEventListener("keydown", pressed);
  list.addEventListener("click", (event) => { const item = event.target.closest("[role=option]"); if (item) choose(Number(item.dataset.n)); });
}

function open() {
  if (dialog.open) { dialog.close(); return; }
  field.value = "";
  dialog.showModal();
  look([]);
  lookForSessions();
}

function pressed(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) { event.preventDefault(); chosen = (chosen + step + found.length) % Math.max(1, found.length); show(); }
  if (event.key === "Enter") { event.preventDefault(); choose(chosen); }
}

const fits = (text) => field.value.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));

function look(sessions) {
  const pages = [...document.querySelectorAll(".side [data-key]")].map((a) => ({ kind: "Page", text: a.querySelector("span").textContent, href: a.href }));
  const commands = COMMANDS.map((text) => ({ kind: "Copy", text, copy: text }));
  found = [...pages.filter((one) => fits(one.text)), ...sessions, ...commands.filter((one) => fits(one.text))];
  chosen = 0;
  show();
}

async function lookForSessions() {
  const mine = ++asked;
  try {
    const answer = await fetch(`/api/v1/sessions/table?${new URLSearchParams({ text: field.value.trim(), limit: 12 })}`);
    if (!answer.ok || mine !== asked) return;
    const { data } = await answer.json();
    look(data.sessions.map((one) => ({ kind: one.state, text: `${one.title || one.prompt || one.id} · ${one.alias}`, href: `/session/${encodeURIComponent(one.id)}` })));
  } catch { /* The pages are still there. */ }
}

function show() {
  list.replaceChildren(...found.slice(0, 40).map((one, n) => {
    const item = document.createElement("li");
    item.setAttribute("role", "option");
    item.id = `palette-${n}`;
    item.dataset.n = n;
    item.setAttribute("aria-selected", String(n === chosen));
    const kind = document.createElement("span");
    kind.className = "dim";
    kind.textContent = one.kind;
    const text = document.createElement("span");
    text.textContent = one.text;
    item.append(text, kind);
    return item;
  }));
  field.setAttribute("aria-activedescendant", found.length ? `palette-${chosen}` : "");
  list.children[chosen]?.scrollIntoView({ block: "nearest" });
}

function choose(n) {
  const one = found[n];
  if (!one) return;
  dialog.close();
  if (one.copy) navigator.clipboard?.writeText(one.copy);
  else location.href = one.href;
}
