// The time axis of the bars: zoomed by a drag over them, the wheel, keys and buttons, and labelled with the times of the rows in view.
const MOST = 200;
const LEAST_DRAG = 6;

export class Zoom {
  constructor(tree, times, factor) {
    Object.assign(this, { tree, times, shown: factor, scroller: tree.scroller, factor: 1, pan: 0 }); // `pan` is the left edge, in widths of the column.
  }

  listen() {
    this.scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.scroller.addEventListener("pointerdown", (event) => this.dragged(event));
    this.scroller.addEventListener("dragstart", (event) => { if (event.target.closest?.("a")) event.preventDefault(); });
    this.scroller.addEventListener("scroll", () => requestAnimationFrame(() => this.label()), { passive: true });
    this.tree.addEventListener("drawn", () => this.label());
  }

  by(times, at = 0.5) {
    const next = Math.min(MOST, Math.max(1, this.factor * times));
    this.pan = (this.pan + at) * (next / this.factor) - at;
    this.factor = next;
    this.set();
  }

  reset() { this.by(0); }

  move(widths) { this.pan += widths; this.set(); }

  pressed(event) {
    const does = event.shiftKey && { ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25) }[event.key]
      || { "+": () => this.by(2), "=": () => this.by(2), "-": () => this.by(0.5), 0: () => this.reset() }[event.key];
    does?.();
    return Boolean(does);
  }

  set() {
    this.pan = Math.min(this.factor - 1, Math.max(0, this.pan));
    this.scroller.style.setProperty("--zoom", this.factor);
    this.scroller.style.setProperty("--pan", this.pan);
    this.shown.value = `${this.factor < 10 ? +this.factor.toFixed(1) : Math.round(this.factor)}×`;
    this.label();
  }

  wheel(event) {
    const bars = event.target.closest?.(".row .w");
    if (!bars || !(event.ctrlKey || event.shiftKey)) return;
    event.preventDefault();
    const box = bars.getBoundingClientRect();
    if (event.ctrlKey) this.by(event.deltaY < 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
    else this.move((event.deltaY || event.deltaX) / box.width);
  }

  // What is dragged over fills the column afterwards. A press without a drag stays a click.
  dragged(event) {
    const bars = event.target.closest?.(".row:not(.turn-head) .w");
    if (!bars || event.button || event.pointerType === "touch") return;
    const box = bars.getBoundingClientRect(), frame = this.scroller.getBoundingClientRect(), from = event.clientX;
    const area = document.createElement("div");
    area.className = "range";
    const place = (one) => Math.min(box.right, Math.max(box.left, one.clientX));
    const moved = (one) => {
      Object.assign(area.style, { left: `${Math.min(from, place(one))}px`, width: `${Math.abs(place(one) - from)}px`, top: `${frame.top}px`, height: `${frame.height}px` });
      if (!area.isConnected && Math.abs(place(one) - from) > LEAST_DRAG) document.body.append(area);
    };
    const ended = (one) => {
      for (const [name, handler] of [["pointermove", moved], ["pointerup", ended], ["pointercancel", ended]]) removeEventListener(name, handler);
      if (!area.isConnected) return;
      area.remove();
      if (one.type === "pointercancel") return;
      swallowClick();
      const [left, right] = [from, place(one)].sort((a, b) => a - b).map((x) => (x - box.left) / box.width);
      this.by(1 / (right - left), left / (1 - (right - left)));
    };
    for (const [name, handler] of [["pointermove", moved], ["pointerup", ended], ["pointercancel", ended]]) addEventListener(name, handler);
  }

  // ── labels: the rows of a block share an axis, on which idle time may be folded ──

  label() {
    const points = pointsOf(this.blockInView());
    if (!points.length) return;
    const times = [0, 0.5, 1].map((at) => timeAt(points, ((this.pan + at) / this.factor) * 1000));
    times.forEach((at, n) => { this.times.children[n].textContent = clock(at, times[2] - times[0]); });
  }

  // The block that takes most of the view.
  blockInView() {
    const top = this.scroller.scrollTop, bottom = top + this.scroller.clientHeight;
    const seen = (block) => Math.min(bottom, block.top + block.height) - Math.max(top, block.top);
    const blocks = this.tree.turns.filter((turn) => turn.open && turn.top < bottom && turn.bottom > top).flatMap((turn) => turn.blocks);
    return blocks.filter((block) => block.element).sort((one, other) => seen(other) - seen(one))[0]?.element;
  }
}

// The click that ends a drag chooses nothing.
export function swallowClick() {
  const swallow = (click) => { click.preventDefault(); click.stopPropagation(); };
  addEventListener("click", swallow, { capture: true, once: true });
  setTimeout(() => removeEventListener("click", swallow, { capture: true }));
}

const pointsOf = (element) => [...element?.querySelectorAll("[data-at] rect.b") ?? []]
  .map((bar) => [Number(bar.getAttribute("x")), Number(bar.closest("[data-at]").dataset.at), Number(bar.getAttribute("width")), Number(bar.dataset.ms)])
  .flatMap(([x, at, width, ms]) => (ms ? [[x, at], [x + width, at + ms]] : [[x, at]]))
  .sort((a, b) => a[0] - b[0] || a[1] - b[1]);

function timeAt(points, x) {
  const next = points.findIndex((one) => one[0] >= x);
  if (next <= 0) return points[next < 0 ? points.length - 1 : 0][1];
  const [[x0, t0], [x1, t1]] = [points[next - 1], points[next]];
  return t0 + ((x - x0) / Math.max(0.001, x1 - x0)) * (t1 - t0);
}

const two = (n) => String(n).padStart(2, "0");
// As exact as the stretch in view asks for.
function clock(at, stretch) {
  const time = new Date(at);
  const words = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  if (stretch > 86400000) return `${time.getMonth() + 1}-${two(time.getDate())} ${words.slice(0, 5)}`;
  return stretch < 10000 ? `${words}.${String(time.getMilliseconds()).padStart(3, "0").slice(0, 2)}` : words;
}
