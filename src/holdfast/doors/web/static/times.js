// "2 min ago" stays true while the page is open. The same words as web/pages.py.
const UNITS = [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]];

export function ago(at, now = Date.now()) {
  for (const [size, unit] of UNITS) if (now - at >= size) return `${Math.floor((now - at) / size)} ${unit} ago`;
  return "now";
}

export function span(ms) {
  ms = Math.max(0, Math.floor(ms));
  const two = (n) => String(n).padStart(2, "0");
  if (ms < 1000) return `${ms} ms`;
  if (ms < 10000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 60000) return `${Math.floor(ms / 1000)} s`;
  if (ms < 3600000) return `${Math.floor(ms / 60000)} min ${two(Math.floor(ms / 1000) % 60)} s`;
  if (ms < 86400000) return `${Math.floor(ms / 3600000)} h ${two(Math.floor(ms / 60000) % 60)} min`;
  return `${Math.floor(ms / 86400000)} d ${Math.floor(ms / 3600000) % 24} h`;
}

export function keepTimes() {
  const all = () => {
    if (document.hidden) return;
    for (const time of document.querySelectorAll("time[data-at]")) set(time, ago(+time.dataset.at));
    for (const time of document.querySelectorAll("time[data-since]")) set(time, span(Date.now() - time.dataset.since));
  };
  setInterval(all, 1000);
  document.addEventListener("visibilitychange", all);
}

function set(element, words) {
  if (element.textContent !== words) element.textContent = words;
}
