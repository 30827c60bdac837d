// Makes one tree like another with as few changes as possible. Elements with an id are known by it; what carries
// data-keep is left alone (something is being typed or drawn there), and so is a field that has the focus.
export function morph(old, fresh) {
  if (!old || !fresh || old.hasAttribute("data-keep")) return;
  attributes(old, fresh);
  children(old, fresh);
}

function attributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    if (name === "open" && old.tagName === "DETAILS") continue;
    if (old.getAttribute(name) !== value && !kept(old, name)) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !kept(old, name)) old.removeAttribute(name);
  }
}

// What scripts put there themselves.
const kept = (element, name) =>
  (name === "class" && (element.classList.contains("here") || element.hasAttribute("data-keep-class"))) || name === "style" || name === "aria-selected"
  || (name === "open" && element.tagName === "DETAILS");

function children(old, fresh) {
  const known = new Map();
  for (const child of old.children) if (child.id) known.set(child.id, child);
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const match = wanted.id ? known.get(wanted.id) : at && alike(at, wanted) ? at : null;
    if (!match) {
      const added = document.importNode(wanted, true);
      if (added.nodeType === 1 && added.hasAttribute("data-row")) added.classList.add("fresh");
      old.insertBefore(added, at);
      continue;
    }
    if (match !== at) old.insertBefore(match, at);
    else at = at.nextSibling;
    if (match.nodeType === 1) { if (match !== document.activeElement || !match.matches("input, textarea, select")) morph(match, wanted); }
    else if (match.data !== wanted.data) match.data = wanted.data;
  }
  while (at) { const next = at.nextSibling; at.remove(); at = next; }
}

function alike(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && !a.id && !b.id;
}
