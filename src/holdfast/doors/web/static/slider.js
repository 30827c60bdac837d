// The slider of the project's moments: moving it shows the document of that moment, without a jump.
import { refresh } from "./live.js";

document.addEventListener("input", (event) => {
  const slider = event.target.closest("[data-slider] input[type=range]");
  if (!slider) return;
  const wanted = new URLSearchParams(new FormData(slider.form));
  history.replaceState(null, "", `/state?${wanted}`);
  refresh();
});
