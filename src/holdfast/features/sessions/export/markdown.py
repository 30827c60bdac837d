"""Markdown. Text of agents and users is quoted or fenced, so that it cannot become the document's own structure."""

import re
from collections.abc import Iterable
from typing import Any

from holdfast.features.sessions.export import words

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def begin(session: dict[str, Any]) -> str:
    lines = [f"# {_plain(session['title'] or session['id'])}", ""]
    lines += [f"- **{name}**: {_plain(value)}" for name, value in words.facts(session)]
    summary = session["summary"]
    lines += ["", "## Summary", "", *(f"{_plain(line)}  " for line in summary["text"].splitlines()), "", "## Timeline"]
    return "\n".join(lines) + "\n"


def body(entries: Iterable[dict[str, Any]]) -> str:
    return "".join(_entry(entry) for entry in entries)


def end() -> str:
    return ""


def _entry(entry: dict[str, Any]) -> str:
    at, text = words.moment(entry["at"]), entry["text"]
    lane = f" [{_plain(entry['lane_type'] or entry['lane'])}]" if entry["lane"] else ""
    if words.is_prompt(entry):
        return f"\n### Turn {entry['turn']} · {at}\n\n{_quoted(text)}\n\n"
    if words.is_tool(entry):
        shown = f"- {at}{lane} **{_plain(entry['tool'])}** {_plain(text)} — {words.outcome(entry)}\n"
        return shown + (f"\n{_fenced(entry['output'])}\n\n" if entry.get("output") else "")
    if entry["kind"] == "turn.ended":
        return f"\n{at}{lane}\n\n{_quoted(text)}\n\n"
    return f"- {at}{lane} {words.label(entry)} {_plain(text)}\n"


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def _quoted(text: str) -> str:
    return "\n".join(f"> {_SPECIAL.sub(chr(92) + chr(92) + '1', line)}" for line in text.splitlines() or [""])


def _fenced(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"
