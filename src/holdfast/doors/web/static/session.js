// One session: the tree, the details of the row that is chosen, the time axis, and the replay.
import { heard } from "./live.js";
import { select } from "./keys.js";
import { Tree } from "./tree.js";
import { Zoom } from "./zoom.js";
import { frameOnMap } from "./minimap.js";

const scroller = document.getElementById("scroller");
const pane = document.getElementById("pane");
const replay = document.getElementById("replay");
const tools = document.querySelector("[data-tree-tools]");
const tree = scroller && !scroller.dataset.q ? new Tree(scroller) : null;
const zoom = tree && new Zoom(tree, document.querySelector("[data-times]"), document.querySelector("[data-zoom]"));
let there = false; // The tree is drawn.

async function begin() {
  if (!scroller) return;
  listen();
  there = Boolean(tree) && await tree.load();
  if (there) {
    tools.hidden = false;
    zoom.listen();
    frameOnMap(tree, () => document.querySelector("[data-minimap]"));
    tree.addEventListener("drawn", (event) => dim(event.detail));
    const start = Number(new URLSearchParams(location.search).get("start") ?? 0);
    const seq = Number(location.hash.match(/^#e(\d+)$/)?.[1] ?? 0);
    if (seq) await show(seq);
    else if (start) await tree.reveal(start);
    // What is over is read from its beginning; of what goes on, and of a long session that begins folded, the end counts.
    else if (!("ended" in scroller.dataset) || tree.folded) tree.toEnd();
    tree.fill();
  } else {
    const row = location.hash && document.getElementById(location.hash.slice(1));
    if (row) select(row);
  }
}

function listen() {
  scroller.addEventListener("click", (event) => {
    const row = event.target.closest("[data-row]");
    if (!row || event.ctrlKey || event.metaKey || event.button || event.target.closest("button")) return;
    event.preventDefault();
    select(row);
  });
  scroller.addEventListener("row", (event) => { choose(Number(event.target.dataset.seq)); detail(Number(event.target.dataset.seq)); });
  pane.addEventListener("click", pressedInPane);
  document.querySelector("main").addEventListener("click", (event) => {
    const turn = event.target.closest(".overview a");
    if (turn && there) { event.preventDefault(); show(Number(turn.dataset.seq)); }
    toolPressed(event.target.closest("button[data-tree]")?.dataset.tree);
  });
  tools?.querySelector("input[data-tree=idle]").addEventListener("change", (event) => { tree.realTime = !event.target.checked; tree.drawAnew(); });
  document.addEventListener("leave", () => (replay.hidden ? closePane() : endReplay()));
  document.addEventListener("keydown", keyPressed);
  heard.addEventListener("event", grow);
  heard.addEventListener("page", grow);
  replay?.addEventListener("click", (event) => step(event.target.closest("[data-step]")?.dataset.step));
  replay?.querySelector("[data-moment]").addEventListener("input", slid);
}

// Left folds, right unfolds; in a replay they step.
function keyPressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog")) return;
  if (there && zoom.pressed(event)) { event.preventDefault(); return; }
  const step_ = { ArrowLeft: "previous", ArrowRight: "next" }[event.key];
  if (!step_) return;
  if (!replay.hidden) { event.preventDefault(); step(step_); return; }
  const row = scroller.querySelector(".row.here");
  if (!row || !there) return;
  event.preventDefault();
  const open = event.key === "ArrowRight";
  if (row.dataset.lane && tree.foldedLanes.has(row.dataset.lane) === open) { tree.toggleLane(row.dataset.lane); return; }
  const turn = tree.find(Number(row.dataset.seq))[0];
  tree.toggle(turn, open);
  if (!open && turn.element) select(turn.element);
}

function toolPressed(name) {
  if (!name || !there) return;
  if (name === "fold" || name === "unfold") tree.toggleAll(name === "unfold");
  if (name === "zoom-in") zoom.by(2);
  if (name === "zoom-out") zoom.by(0.5);
  if (name === "zoom-reset") zoom.reset();
  if (name === "replay") { if (replay.hidden) beginReplay(); else endReplay(); }
}

// ── what is new ──

let growing = 0; // 2: something came meanwhile, look once more.
async function grow() {
  if (!there) return;
  if (growing) { growing = 2; return; }
  do {
    growing = 1;
    await tree.grow();
  } while (growing === 2);
  growing = 0;
}

// ── details ──

async function show(seq) {
  const row = there ? await tree.reveal(seq) : document.getElementById(`e${seq}`);
  if (row?.hasAttribute("data-row") && Number(row.dataset.seq) === seq) select(row);
  else detail(seq);
}

const choose = (seq) => { if (tree) tree.chosen = seq; };

let asked = 0;
async function detail(seq) {
  const mine = ++asked;
  history.replaceState(null, "", `#e${seq}`);
  if (!replay.hidden) { moment({ seq }); return; }
  await fillPane(`/event/${seq}`, mine);
}

async function fillPane(address, mine) {
  const answer = await fetch(address);
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".detail, .empty");
  if (mine !== asked || !fresh) return null;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "close plain";
  close.dataset.close = "";
  close.setAttribute("aria-label", "Close the details");
  close.textContent = "×";
  const wide = pane.hidden;
  pane.replaceChildren(close, document.importNode(fresh, true));
  pane.hidden = false;
  document.querySelector(".waterfall").classList.add("split");
  pane.scrollTop = 0;
  if (wide && pane.offsetTop > scroller.offsetTop) pane.scrollIntoView({ block: "end" }); // A narrow page has it below.
  if (wide && there) requestAnimationFrame(() => { scroller.querySelector(".here")?.scrollIntoView({ block: "nearest" }); tree.fill(); });
  return pane.querySelector(".detail");
}

function pressedInPane(event) {
  if (event.target.closest("[data-close]")) closePane();
  const step_ = event.target.closest("[data-steps] a[rel]");
  if (step_ && !replay.hidden) { event.preventDefault(); step(step_.rel === "prev" ? "previous" : "next"); }
}

function closePane() {
  asked++;
  pane.hidden = true;
  pane.replaceChildren();
  document.querySelector(".waterfall").classList.remove("split");
  scroller.querySelector(".here")?.classList.remove("here");
  choose(0);
  history.replaceState(null, "", location.pathname + location.search);
  scroller.focus({ preventScroll: true });
}

// ── replay: one event after the other, with the state of the session right after it ──

let current = null; // The moment that is shown: {seq, previous, next}.
let playing = 0;
let sliding = 0;

function beginReplay() {
  replay.hidden = false;
  document.querySelector("[data-tree=replay]").setAttribute("aria-pressed", "true");
  const chosen = Number(scroller.querySelector(".row.here")?.dataset.seq ?? 0);
  replay.querySelector("[data-moment]").max = Math.max(0, tree.rows - 1);
  moment(chosen ? { seq: chosen } : tree.nth(0));
}

function endReplay() {
  stop();
  current = null;
  replay.hidden = true;
  document.querySelector("[data-tree=replay]").setAttribute("aria-pressed", "false");
  dim(scroller);
  closePane();
}

function step(name) {
  if (!name || (!current && name !== "close")) return;
  if (name === "close") { endReplay(); return; }
  if (name === "play") { if (playing) stop(); else play(); return; }
  stop();
  if (name === "first") moment(tree.nth(0));
  if (name === "last") moment({});
  if (name === "previous" && current.previous) moment({ seq: current.previous });
  if (name === "next" && current.next) moment({ seq: current.next });
}

function play() {
  setPlaying(1);
  (async () => {
    while (playing && current?.next) {
      const began = Date.now();
      if (!await moment({ seq: current.next })) break;
      await new Promise((later) => setTimeout(later, Math.max(0, began + 700 - Date.now())));
    }
    stop();
  })();
}

const stop = () => setPlaying(0);
function setPlaying(on) {
  playing = on;
  const button = replay.querySelector("[data-step=play]");
  button.setAttribute("aria-pressed", String(Boolean(on)));
  button.textContent = on ? "❚❚" : "▶";
}

function slid(event) {
  clearTimeout(sliding);
  stop();
  const place = tree.nth(Number(event.target.value));
  if (place) sliding = setTimeout(() => moment(place), 80);
}

async function moment(where) {
  const mine = ++asked;
  const wanted = new URLSearchParams({ ...where, only: scroller.dataset.only });
  const shown = await fillPane(`/moment/${encodeURIComponent(scroller.dataset.id)}?${wanted}`, mine);
  if (!shown?.dataset.seq) return false;
  current = { seq: Number(shown.dataset.seq), previous: Number(shown.dataset.previous), next: Number(shown.dataset.next) };
  history.replaceState(null, "", `#e${current.seq}`);
  choose(current.seq);
  const row = await tree.reveal(current.seq);
  scroller.querySelector(".here")?.classList.remove("here");
  row?.classList.add("here");
  dim(scroller);
  const slider = replay.querySelector("[data-moment]"), at = tree.indexOf(current.seq);
  if (document.activeElement !== slider) slider.value = at;
  replay.querySelector("[data-where]").value = `${(at + 1).toLocaleString("en")} of ${tree.rows.toLocaleString("en")}`;
  return true;
}

// What has not happened yet at the moment shown is pale.
function dim(within) {
  const rows = within.matches?.("[data-seq]") ? [within] : within.querySelectorAll("[data-seq]");
  for (const row of rows) row.classList.toggle("later", Boolean(current) && Number(row.dataset.seq) > current.seq);
}

begin();
