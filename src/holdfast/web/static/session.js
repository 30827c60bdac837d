// The list of a session: only what is seen is there. Blocks of two hundred rows are fetched by range, ready made.
import { heard } from "./live.js";
import { select } from "./keys.js";

const ROW = 28;
const KEEP_NEAR = 2;
const MOST = 500;
const scroller = document.getElementById("scroller");
const pane = document.getElementById("pane");
const { id, only, q } = scroller.dataset;

let marks = [], every = 200, total = 0;
let blocks = null;
const made = new Map();
const wanted = new Set();

async function begin() {
  listen();
  if (!q) await virtual();
  const seq = Number(location.hash.match(/^#e(\d+)$/)?.[1] ?? 0);
  if (seq) await show(seq);
}

async function virtual() {
  const answer = await fetch(`/api/v1/sessions/${encodeURIComponent(id)}/marks?only=${encodeURIComponent(only)}`);
  if (!answer.ok) return;
  const told = (await answer.json()).data;
  ({ marks, every, total } = told);
  if (!total) return;
  const asked = new URLSearchParams(location.search);
  blocks = document.createElement("div");
  blocks.className = "blocks";
  size();
  const start = Number(asked.get("start") ?? 0);
  const first = await block(start ? at(start) : marks.length - 1);
  scroller.replaceChildren(blocks);
  if (start) scroller.scrollTop = top(start, first);
  else scroller.scrollTop = scroller.scrollHeight;
  scroller.addEventListener("scroll", scrolled, { passive: true });
  new ResizeObserver(fill).observe(scroller);
  fill();
}

const size = () => { blocks.style.height = `${total * ROW}px`; };
const at = (seq) => Math.max(0, marks.findLastIndex((mark) => mark <= seq));

function top(seq, element) {
  const rows = [...(element?.children ?? [])];
  const place = Math.max(0, rows.findIndex((row) => Number(row.dataset.seq) >= seq));
  return (Number(element?.dataset.n ?? 0) * every + place) * ROW;
}

// Who drags the bar across thousands of rows wants to see where it stops, not everything between.
let lastTop = 0, waits = 0;
function scrolled() {
  const far = Math.abs(scroller.scrollTop - lastTop) > 2 * scroller.clientHeight;
  lastTop = scroller.scrollTop;
  clearTimeout(waits);
  if (far) waits = setTimeout(fill, 60);
  else requestAnimationFrame(fill);
}

function fill() {
  if (!blocks) return;
  const from = Math.floor(scroller.scrollTop / ROW / every);
  const to = Math.floor((scroller.scrollTop + scroller.clientHeight) / ROW / every);
  for (let n = Math.max(0, from - 1); n <= Math.min(marks.length - 1, to + 1); n++) block(n);
  for (const [n, element] of made) if (n < from - KEEP_NEAR || n > to + KEEP_NEAR) { element.remove(); made.delete(n); }
}

async function block(n, anew = false) {
  if (made.has(n) && !anew) return made.get(n);
  if (wanted.has(n)) return null;
  wanted.add(n);
  try {
    const last = n === marks.length - 1;
    const asked = new URLSearchParams({ id, only, start: marks[n], limit: last ? MOST : every });
    const answer = await fetch(`/rows?${asked}`);
    if (!answer.ok) return null;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("ol");
    return place(n, document.importNode(fresh, true));
  } finally { wanted.delete(n); }
}

function place(n, element) {
  element.dataset.n = n;
  element.style.top = `${n * every * ROW}px`;
  const chosen = blocks.querySelector(".here")?.id;
  const old = made.get(n);
  made.set(n, element);
  if (old) old.replaceWith(element);
  else {
    const next = [...blocks.children].find((other) => Number(other.dataset.n) > n);
    blocks.insertBefore(element, next ?? null);
  }
  if (chosen && element.querySelector(`#${chosen}`)) element.querySelector(`#${chosen}`).classList.add("here");
  return element;
}

// What is new is at the end: the last block is looked at again, and cut in two when it has grown too long.
let growing = 0; // 2: something came meanwhile, look once more.
async function grow() {
  if (!blocks) return;
  if (growing) { growing = 2; return; }
  do {
    growing = 1;
    await growOnce();
  } while (growing === 2);
  growing = 0;
}

async function growOnce() {
  const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;
  const n = marks.length - 1;
  while (wanted.has(n)) await new Promise((later) => setTimeout(later, 30));
  const element = await block(n, true);
  if (!element) return;
  const rows = [...element.children];
  total = n * every + rows.length;
  for (let k = every; k < rows.length; k += every) marks.push(Number(rows[k].dataset.seq));
  if (rows.length >= MOST) growing = 2;
  for (const row of rows.slice(every)) row.remove();
  size();
  if (atEnd) scroller.scrollTop = scroller.scrollHeight;
  fill();
}

// ── details ──

function listen() {
  scroller.addEventListener("click", (event) => {
    const row = event.target.closest("[data-row]");
    if (!row || event.ctrlKey || event.metaKey || event.button) return;
    event.preventDefault();
    select(row);
  });
  scroller.addEventListener("row", (event) => detail(Number(event.target.dataset.seq)));
  document.querySelector("main").addEventListener("click", (event) => {
    const turn = event.target.closest(".overview a");
    if (!turn || !blocks) return;
    event.preventDefault();
    show(Number(turn.dataset.seq));
  });
  document.addEventListener("leave", () => { pane.replaceChildren(); scroller.focus(); });
  heard.addEventListener("event", grow);
  heard.addEventListener("page", grow);
}

async function show(seq) {
  const element = blocks ? await block(at(seq)) ?? made.get(at(seq)) : scroller;
  if (blocks) scroller.scrollTop = Math.max(0, top(seq, element) - scroller.clientHeight / 3);
  const row = document.getElementById(`e${seq}`);
  if (row) select(row);
  else detail(seq);
}

let asked = 0;
async function detail(seq) {
  const mine = ++asked;
  history.replaceState(null, "", `#e${seq}`);
  const answer = await fetch(`/event/${seq}`);
  if (mine !== asked) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".detail, .empty");
  if (fresh) pane.replaceChildren(document.importNode(fresh, true));
  pane.scrollTop = 0;
}

begin();
