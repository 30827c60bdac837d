// The page behind a link that answers one question. The code is kept in this page only.
const link = location.pathname.split("/")[2];
let code = "";

document.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const given = Object.fromEntries(new FormData(form));
  if ("code" in form.dataset) { code = given.code; return show(); }
  const answer = await send(`/a/${link}`, { ...given, code, verdict: form.dataset.verdict });
  const told = await answer.json();
  if (answer.ok) document.querySelectorAll("form").forEach((one) => one.remove());
  say(answer.ok ? "Sent. The agent goes on." : told.error?.message ?? "It was refused.");
});

async function show() {
  const answer = await send(`/a/${link}/show`, { code });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.body.replaceChildren(...page.body.childNodes);
}

const send = (address, body) => fetch(address, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
});

function say(words) { document.querySelector("[data-told]").textContent = words; }
