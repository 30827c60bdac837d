// What does not belong into a page of ours: code that ran, handlers, scripts and elements of others, characters that hide.
() => {
  const all = [...document.querySelectorAll("*")];
  const ours = (e) => e.tagName === "IMG" && e.src.startsWith(location.origin);
  const others = "iframe, object, embed, base, style, math, template, x, img, form[action^='//'], meta[http-equiv], "
    + "a[href^='javascript:'], a[href^='data:']";
  const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
  return {
    pwned: window.pwned ?? null,
    handlers: all.flatMap((e) => [...e.attributes].filter((a) => a.name.startsWith("on")).map((a) => `${e.tagName} ${a.name}`)),
    scripts: [...document.scripts].filter((s) => !s.src.startsWith(`${location.origin}/static/`)).length,
    foreign: [...document.querySelectorAll(others)].filter((e) => !ours(e)).map((e) => e.outerHTML.slice(0, 80)),
    hidden: document.body.innerText.match(hidden)?.length ?? 0,
  };
}
