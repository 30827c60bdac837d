// The tree of a session: turns that fold, blocks of rows under them. The outline says how many rows each turn has, so
// the scroll bar is right from the start; only what is seen is fetched and in the page.
import { span } from "./times.js";

const ROW = 28;
const OVERSCAN = 400;
const OPEN_UP_TO = 2000; // Rows: in a longer session only the last turn is open at first.
const GROWING = 500;

export class Tree extends EventTarget {
  constructor(scroller) {
    super();
    this.scroller = scroller;
    ({ id: this.id, only: this.only } = scroller.dataset);
    this.turns = [];
    this.foldedLanes = new Set();
    this.realTime = false;
    this.nodes = document.createElement("div");
    this.nodes.className = "blocks";
    this.shown = new Map();
    this.waits = 0;
    this.folded = false; // So long that it began folded.
    this.lastTop = 0;
    this.following = false; // At the end: what is new is scrolled to.
    this.chosen = 0; // The event whose row is chosen: it stays so when its row is drawn anew.
  }

  async load() {
    const told = await this.outline();
    if (!told?.rows) return false;
    this.take(told.turns);
    const few = told.rows <= OPEN_UP_TO;
    this.folded = !few;
    this.turns.forEach((turn, n) => { turn.open = few || n === this.turns.length - 1; });
    this.layout();
    this.scroller.replaceChildren(this.nodes);
    this.scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.scroller.addEventListener("click", (event) => this.clicked(event));
    new ResizeObserver(() => this.fill()).observe(this.scroller);
    return true;
  }

  async outline(turn = 0) {
    const wanted = new URLSearchParams({ only: this.only, turn });
    const answer = await fetch(`/api/v1/sessions/${encodeURIComponent(this.id)}/outline?${wanted}`);
    return answer.ok ? (await answer.json()).data : null;
  }

  // Blocks that are known already keep what they have, unless more has come into them.
  take(listed) {
    const old = new Map(this.turns.filter((turn) => listed.some((one) => (one.n ?? 0) === turn.n)).map((turn) => [turn.n, turn]));
    for (const one of listed) {
      one.n ??= 0;
      const turn = { ...one, open: old.get(one.n)?.open ?? true, blocks: blocksOf(one) };
      const at = this.turns.findIndex((known) => known.n === one.n);
      if (at < 0) this.turns.push(turn);
      else this.turns[at] = turn;
    }
    for (let n = 0; n < this.turns.length; n++) {
      const next = this.turns[n + 1]?.first ?? 0;
      const { blocks } = this.turns[n];
      blocks.forEach((block, k) => { block.before = blocks[k + 1]?.start ?? next; });
    }
    for (const turn of old.values()) inherit(turn, this.turns.find((known) => known.n === turn.n));
  }

  get rows() { return this.turns.reduce((sum, turn) => sum + (turn.rows ?? 0), 0); }

  layout() {
    let top = 0;
    for (const turn of this.turns) {
      turn.top = top;
      top += ROW;
      for (const block of turn.blocks) {
        block.top = top;
        if (turn.open) top += block.height;
        if (block.element) block.element.style.top = `${block.top}px`;
      }
      turn.bottom = top;
      if (turn.element) turn.element.style.top = `${turn.top}px`;
    }
    this.nodes.style.height = `${top}px`;
    this.height = top;
    this.dispatchEvent(new Event("laid"));
  }

  // Who drags the bar across thousands of rows wants to see where it stops, not everything between.
  scrolled() {
    const far = Math.abs(this.scroller.scrollTop - this.lastTop) > 2 * this.scroller.clientHeight;
    if (this.height - this.scroller.scrollTop - this.scroller.clientHeight < 2 * ROW) this.following = true;
    else if (this.scroller.scrollTop < this.lastTop) this.following = false;
    this.lastTop = this.scroller.scrollTop;
    clearTimeout(this.waits);
    if (far) this.waits = setTimeout(() => this.fill(), 60);
    else requestAnimationFrame(() => this.fill());
  }

  fill() {
    const from = this.scroller.scrollTop - OVERSCAN, to = this.scroller.scrollTop + this.scroller.clientHeight + OVERSCAN;
    const wanted = new Map();
    for (let n = this.turnAt(from); n < this.turns.length && this.turns[n].top < to; n++) {
      const turn = this.turns[n];
      if (turn.top + ROW > from) wanted.set(`t${turn.n}`, () => this.head(turn));
      if (!turn.open) continue;
      for (const block of turn.blocks) {
        if (block.top < to && block.top + block.height > from) wanted.set(`b${block.start}`, () => this.block(turn, block));
      }
    }
    for (const [name, drop] of this.shown) if (!wanted.has(name)) { drop(); this.shown.delete(name); }
    for (const make of wanted.values()) make();
  }

  turnAt(top) {
    let low = 0, high = this.turns.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.turns[middle].bottom <= top) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low);
  }

  head(turn) {
    if (turn.element) return;
    turn.element = turnHead(turn);
    turn.element.style.top = `${turn.top}px`;
    if (turn.n && this.chosen === turn.first) turn.element.classList.add("here");
    this.insert(turn.element, turn.top);
    this.shown.set(`t${turn.n}`, () => { const known = this.turns.find((one) => one.n === turn.n); known?.element?.remove(); if (known) known.element = null; });
    this.dispatchEvent(new CustomEvent("drawn", { detail: turn.element }));
  }

  async block(turn, block, anew = false) {
    if ((block.element && !block.stale && !anew) || block.asked) return block.element;
    block.asked = true;
    try {
      const wanted = new URLSearchParams({ id: this.id, only: this.only, start: block.start, limit: block.before ? 200 : GROWING });
      if (block.before) wanted.set("before", block.before);
      if (this.realTime) wanted.set("idle", "real");
      const answer = await fetch(`/rows?${wanted}`);
      if (!answer.ok) return null;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("ol");
      if (!this.turns.includes(turn)) return null; // The turn has grown meanwhile: others hold its rows now.
      this.place(turn, block, document.importNode(fresh, true));
      return block.element;
    } finally { block.asked = false; }
  }

  place(turn, block, element) {
    block.element?.remove();
    block.element = element;
    block.stale = false;
    element.dataset.turn = turn.n;
    for (const lane of this.foldedLanes) foldLane(element, lane, true);
    this.insert(element, block.top);
    this.shown.set(`b${block.start}`, () => this.drop(block.start));
    if (this.chosen) element.querySelector(`#e${this.chosen}`)?.classList.add("here");
    this.measure(block);
    this.dispatchEvent(new CustomEvent("drawn", { detail: element }));
  }

  drop(start) {
    const block = this.find(start)[1];
    block?.element?.remove();
    if (block) block.element = null;
  }

  insert(element, top) {
    element.style.top = `${top}px`;
    const next = [...this.nodes.children].find((other) => parseFloat(other.style.top) > top);
    this.nodes.insertBefore(element, next ?? null);
  }

  // How many rows there really are is known once they are here; what is in view stays where it is.
  measure(block) {
    const height = [...block.element.children].filter((row) => !row.hidden).length * ROW;
    if (height === block.height) return;
    const above = block.top + block.height <= this.scroller.scrollTop;
    const grown = height - block.height;
    block.height = height;
    this.layout();
    if (this.following) this.toEnd();
    else if (above) { this.lastTop += grown; this.scroller.scrollTop += grown; }
    this.fill();
  }

  clicked(event) {
    const lane = event.target.closest("[data-fold-lane]");
    const turn = event.target.closest("[data-fold-turn]");
    if (!lane && !turn) return;
    event.preventDefault();
    event.stopPropagation();
    if (turn) this.toggle(this.turns.find((one) => one.n === Number(turn.dataset.foldTurn)));
    else this.toggleLane(lane.closest("[data-lane]").dataset.lane);
  }

  toEnd() {
    this.following = true;
    this.scroller.scrollTop = this.lastTop = Math.max(0, this.height - this.scroller.clientHeight);
  }

  toggle(turn, open = !turn.open) {
    if (!turn || turn.open === open) return;
    this.following = false;
    turn.open = open;
    mark(turn);
    this.layout();
    this.fill();
  }

  toggleAll(open) {
    this.following = false;
    const first = this.turns[this.turnAt(this.scroller.scrollTop)];
    for (const turn of this.turns) { turn.open = open; mark(turn); }
    this.layout();
    if (first) this.scroller.scrollTop = first.top;
    this.fill();
  }

  toggleLane(lane) {
    const fold = !this.foldedLanes.has(lane);
    if (fold) this.foldedLanes.add(lane);
    else this.foldedLanes.delete(lane);
    for (const turn of this.turns) for (const block of turn.blocks) {
      if (block.element && foldLane(block.element, lane, fold)) this.measure(block);
    }
  }

  drawAnew() {
    for (const turn of this.turns) for (const block of turn.blocks) if (block.element) block.stale = true;
    this.fill();
  }

  find(seq) {
    const turn = this.turns.findLast((one) => one.first <= seq) ?? this.turns[0];
    return [turn, turn?.blocks.findLast((one) => one.start <= seq) ?? turn?.blocks[0]];
  }

  // The row of an event, fetched and scrolled to; null where it has none of its own.
  async reveal(seq) {
    const [turn, block] = this.find(seq);
    if (!turn) return null;
    this.toggle(turn, true);
    if (turn.first !== seq && block) {
      const element = block.element ?? await this.block(turn, block);
      const row = element?.querySelector(`#e${seq}`);
      if (row?.hidden) this.toggleLane(row.dataset.under);
      if (row) { this.center(block.top + [...element.children].filter((one) => !one.hidden).indexOf(row) * ROW); return row; }
    }
    this.center(turn.top);
    this.head(turn);
    return turn.element;
  }

  center(top) {
    this.following = false;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop + ROW || top > scrollTop + clientHeight - 2 * ROW) this.scroller.scrollTop = Math.max(0, top - clientHeight / 3);
    this.lastTop = this.scroller.scrollTop;
    this.fill();
  }

  // The n-th row in order of time, as the place where it is looked for.
  nth(n) {
    for (const turn of this.turns) {
      if (n < (turn.rows ?? 0)) return { start: turn.blocks[Math.floor(n / 200)].start, offset: n % 200 };
      n -= turn.rows ?? 0;
    }
    return null;
  }

  // About the place of an event among the rows: exact at the beginning of each block.
  indexOf(seq) {
    let before = 0;
    for (const turn of this.turns) {
      if (turn.first > seq) break;
      const n = turn.blocks.findLastIndex((one) => one.start <= seq);
      if (turn === this.find(seq)[0]) return before + Math.max(0, n) * 200 + rowsBefore(turn.blocks[n]?.element, seq) + (turn.n && n === 0 && seq > turn.first ? 1 : 0);
      before += turn.rows ?? 0;
    }
    return before;
  }

  // What is new is in the last turn, or after it.
  async grow() {
    const last = this.turns.at(-1);
    const told = await this.outline(last?.n || 0);
    if (!told) return;
    this.take(told.turns);
    this.layout();
    if (this.following) this.toEnd();
    this.fill();
  }
}

const blocksOf = (turn) => (turn.blocks ?? []).map((start, n, all) => {
  const rows = n === all.length - 1 ? (turn.rows ?? 0) - n * 200 : 200;
  return { start, height: Math.max(0, rows - (n === 0 && start === turn.first && turn.n ? 1 : 0)) * ROW, element: null };
});

function inherit(old, turn) {
  for (const block of old.blocks) {
    const same = turn.blocks.find((one) => one.start === block.start);
    if (!same) { block.element?.remove(); continue; }
    same.element = block.element;
    if (block.before && block.before === same.before) same.height = block.height;
    else same.stale = true;
  }
  old.element?.remove();
}

const rowsBefore = (element, seq) => (element ? [...element.children].filter((row) => Number(row.dataset.seq) < seq).length : 0);

function foldLane(element, lane, fold) {
  let found = false;
  for (const row of element.children) {
    if (row.dataset.under === lane) { row.hidden = fold; found = true; }
    if (row.dataset.lane === lane) row.querySelector(".twist")?.setAttribute("aria-expanded", String(!fold));
  }
  return found;
}

function mark(turn) {
  turn.element?.querySelector(".twist").setAttribute("aria-expanded", String(turn.open));
  turn.element?.classList.toggle("folded", !turn.open);
}

function part(name, text, className) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

const two = (n) => String(n).padStart(2, "0");
const clock = (at) => { const day = new Date(at); return `${two(day.getHours())}:${two(day.getMinutes())}:${two(day.getSeconds())}`; };
const amount = (n) => (n < 10000 ? n.toLocaleString("en") : n < 1e6 ? `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)} k` : `${(n / 1e6).toFixed(1)} M`);

function turnHead(turn) {
  const row = document.createElement("div");
  row.className = `row turn-head${turn.open ? "" : " folded"}${["failed", "lost"].includes(turn.how) ? " failed" : ""}`;
  row.id = turn.n ? `e${turn.first}` : "start";
  Object.assign(row.dataset, turn.n ? { row: "", seq: turn.first, turn: turn.n } : { turn: 0 });
  const twist = part("button", "", "twist");
  twist.type = "button";
  twist.dataset.foldTurn = turn.n;
  twist.setAttribute("aria-expanded", String(turn.open));
  twist.setAttribute("aria-label", turn.n ? `Turn ${turn.n}` : "Before the first turn");
  const go = part(turn.n ? "a" : "span", "", "go");
  if (turn.n) go.href = `/event/${turn.first}`;
  const figures = [
    (turn.tools && `${turn.tools} ${turn.tools === 1 ? "call" : "calls"}`), (turn.failed && `${turn.failed} failed`),
    (turn.tokens && `${amount(turn.tokens)} tokens`), turn.cost_text,
  ].filter(Boolean).join(" · ");
  go.append(
    part("time", turn.at ? clock(turn.at) : "", "t"), part("span", turn.n ? `Turn ${turn.n}` : "Start", "k"),
    part("span", turn.prompt ?? "", "x"), part("span", turn.end > turn.at ? span(turn.end - turn.at) : "", "d"),
    part("span", figures, "w"),
  );
  row.append(twist, go);
  return row;
}
