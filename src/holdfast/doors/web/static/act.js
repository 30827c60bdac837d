// What the user does here: a button or a form with data-command posts one command of a feature, then the page is looked at anew.
import { refresh } from "./live.js";

const csrf = document.querySelector('meta[name="csrf"]')?.content ?? "";

export function listenToActs() {
  document.addEventListener("click", (event) => {
    copy(event.target.closest("[data-copy], [data-copy-link]"));
    const button = event.target.closest("button[data-command]");
    if (button && !button.closest("form[data-command]")) act(button, JSON.parse(button.dataset.args || "{}"));
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-command]");
    if (!form) return;
    event.preventDefault();
    const given = Object.fromEntries(new FormData(form));
    act(form, { ...JSON.parse(form.dataset.args || "{}"), ...given }).then((done) => done && form.reset());
  });
}

// The text beside the button, or an address of ours that leads back to what is shown.
async function copy(button) {
  if (!button) return;
  const text = button.dataset.copyLink ? new URL(button.dataset.copyLink, location.href).href : button.parentElement.querySelector("pre")?.innerText ?? "";
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch { toast("The browser does not let this page copy.", "bad"); }
}

export async function act(element, args) {
  const { command, project = "", session = "", confirm: question } = element.dataset;
  if (question && !window.confirm(question)) return false;
  element.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`/api/v1/commands/${encodeURIComponent(command)}`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-holdfast-csrf": csrf },
      body: JSON.stringify({ args, project, session }),
    });
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.error?.message ?? `it was refused (${answer.status})`);
    toast(element.dataset.done || "Done.");
    refresh();
    return true;
  } catch (error) {
    toast(error.message, "bad");
    return false;
  } finally { element.removeAttribute("aria-busy"); }
}

export function toast(words, kind = "") {
  const shown = document.createElement("div");
  shown.className = `toast ${kind}`;
  shown.textContent = words;
  document.querySelector("[data-toasts]").append(shown);
  setTimeout(() => shown.remove(), kind ? 9000 : 3500);
}
