// Text below WCAG AA against what lies behind it.
() => {
  const parse = (c) => { const n = c.match(/[\d.]+/g).map(Number); return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1]; };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (c) => { const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
    return .2126 * r + .7152 * g + .0722 * b; };
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
  const behind = (el) => { const layers = []; for (let e = el; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    const paper = getComputedStyle(document.documentElement).backgroundColor;
    return layers.reverse().reduce((below, layer) => over(layer, below), over(parse(paper), [255, 255, 255, 1])); };
  const weak = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const el = node.parentElement, style = getComputedStyle(el);
    if (!node.data.trim() || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION", "TITLE"].includes(el.tagName) || el.closest("svg, [aria-hidden=true]")) continue;
    if (style.visibility === "hidden" || !el.getClientRects().length || el.closest("dialog:not([open])")) continue;
    let opacity = 1; for (let e = el; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
    if (opacity === 0) continue;
    const back = behind(el), ink = parse(style.color); ink[3] *= opacity;
    const size = parseFloat(style.fontSize), big = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const found = ratio(over(ink, back), back);
    if (found < (big ? 3 : 4.5) - .01) weak.set(el.className + " " + el.tagName, node.data.trim().slice(0, 40) + " " + found.toFixed(2));
  }
  return [...weak].map(([where, what]) => where + ": " + what);
}
