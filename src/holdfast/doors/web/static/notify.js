// A hidden page keeps a small stream of its own, and shows what a rule sends to the channel "page". It asks for the browser's
// consent only when the button on the page is used.
const shown = new Map();
let source = null;

export function notifyWhenHidden() {
  if (!window.Notification || !window.EventSource) return;
  const button = document.querySelector("[data-notify]");
  if (button) {
    button.hidden = Notification.permission !== "default";
    button.addEventListener("click", async () => { button.hidden = (await Notification.requestPermission()) !== "default"; });
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? begin() : end()));
  if (document.hidden) begin();
}

function begin() {
  if (source || Notification.permission !== "granted") return;
  source = new EventSource("/api/v1/live?away=true&kinds=attention.");
  source.onmessage = look;
}

function end() {
  source?.close();
  source = null;
  shown.forEach((one) => one.close());
  shown.clear();
}

async function look() {
  const answer = await fetch("/api/v1/attention");
  if (!answer.ok) return;
  const needs = (await answer.json()).data.needs.filter((one) => one.sent?.includes("page"));
  for (const [id, one] of shown) if (!needs.some((need) => need.id === id)) { one.close(); shown.delete(id); }
  for (const need of needs.filter((one) => !shown.has(one.id))) {
    const note = new Notification(`${need.agent} ${need.kind}`, { body: need.text.slice(0, 300), tag: need.id });
    note.onclick = () => { window.focus(); location.href = `/answer/${encodeURIComponent(need.session)}`; };
    shown.set(need.id, note);
  }
}
