// The overview of a session as a minimap: what the tree shows of it is framed, and a drag moves the tree.
import { swallowClick } from "./zoom.js";

const LEAST_DRAG = 4;

export function frameOnMap(tree, find) {
  const draw = () => requestAnimationFrame(() => drawFrame(tree, find()));
  for (const name of ["laid", "drawn"]) tree.addEventListener(name, draw);
  tree.scroller.addEventListener("scroll", draw, { passive: true });
  addEventListener("resize", draw);
  document.addEventListener("pointerdown", (event) => {
    const map = event.target.closest?.("[data-minimap]");
    if (map && !event.button) beginDrag(tree, map, event);
  });
  document.addEventListener("dragstart", (event) => { if (event.target.closest?.("[data-minimap]")) event.preventDefault(); });
  draw();
}

function drawFrame(tree, map) {
  const frame = map?.querySelector("[data-frame]");
  if (!frame) return;
  const { scrollTop, clientHeight } = tree.scroller, turns = placesOf(map);
  const from = placeOf(tree, turns, scrollTop), to = placeOf(tree, turns, Math.min(tree.height, scrollTop + clientHeight) - 1);
  frame.hidden = tree.height <= clientHeight;
  Object.assign(frame.style, { left: `${from / 10}%`, width: `max(6px, ${(to - from) / 10}%)` });
}

const placesOf = (map) => new Map([...map.querySelectorAll("a[data-seq] .turn")].map((turn) => [
  Number(turn.closest("a").dataset.seq), { x: Number(turn.getAttribute("x")), width: Number(turn.getAttribute("width")) },
]));

// Where on the map, in thousandths, is what lies at this height of the tree.
function placeOf(tree, turns, top) {
  const turn = tree.turns[tree.turnAt(top)], place = turns.get(turn?.first);
  return place ? place.x + Math.min(1, Math.max(0, (top - turn.top) / (turn.bottom - turn.top))) * place.width : 0;
}

function heightAt(tree, turns, x) {
  const turn = tree.turns.findLast((one) => (turns.get(one.first)?.x ?? 0) <= x) ?? tree.turns[0], place = turns.get(turn.first);
  return turn.top + (place ? Math.min(1, (x - place.x) / place.width) * (turn.bottom - turn.top) : 0);
}

// A press without a drag stays a click on the turn.
function beginDrag(tree, map, event) {
  const box = map.getBoundingClientRect(), turns = placesOf(map), from = event.clientX;
  let drags = false;
  const moved = (one) => {
    drags ||= Math.abs(one.clientX - from) > LEAST_DRAG;
    if (!drags) return;
    tree.following = false;
    tree.scroller.scrollTop = heightAt(tree, turns, ((one.clientX - box.left) / box.width) * 1000) - tree.scroller.clientHeight / 2;
  };
  const ended = () => {
    removeEventListener("pointermove", moved);
    if (drags) swallowClick();
  };
  addEventListener("pointermove", moved);
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, ended, { once: true });
}
