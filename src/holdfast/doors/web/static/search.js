// What is found is shown while it is typed: the page is asked for anew when the typing stops for a moment.
import { refresh } from "./live.js";

const PAUSE = 250;
let waits = 0;

document.querySelector("main").addEventListener("input", (event) => {
  const form = event.target.closest("form.ask");
  if (!form) return;
  clearTimeout(waits);
  waits = setTimeout(() => {
    const asked = new URLSearchParams(new FormData(form));
    history.replaceState(null, "", `/search?${asked}`);
    refresh();
  }, PAUSE);
});
