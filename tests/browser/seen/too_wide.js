// What sticks out to the right, when the page scrolls sideways.
() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > wide + 1)
    .map((e) => e.tagName + "." + e.className + " " + Math.round(e.getBoundingClientRect().right)).slice(-6);
}
