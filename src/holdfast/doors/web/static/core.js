// Everything a page does besides being read. Without this file the pages are complete, only still.
import { keepTimes } from "./times.js";
import { followLog } from "./live.js";
import { notifyWhenHidden } from "./notify.js";
import { listenToKeys } from "./keys.js";
import { listenToActs } from "./act.js";
import { listenToPalette } from "./palette.js";

keepTimes();
listenToKeys();
listenToActs();
listenToPalette();
followLog();
notifyWhenHidden();
document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); // On a phone the menu is one line.
