"""Fields of a payload: `ours=theirs:cleaner` as `agent.toml` writes them, and the cleaners by name."""

from collections.abc import Callable
from typing import Any

from holdfast.agents import normalise
from holdfast.agents.normalise import mapping_or_empty, number_or_none, one_path, text_cleaner, true_or_none

Cleaner = Callable[[Any], Any]
Fields = tuple[tuple[str, str, Cleaner], ...]
"""(our name, the agent's name, cleaner)"""

MAX_CALLS, MAX_PARTS, MAX_COUNTS = 100, 100, 12

clean_prompt, clean_error = text_cleaner(normalise.PROMPT), text_cleaner(normalise.ERROR)


def list_length(value: Any) -> int | None:
    return len(value) if isinstance(value, list) else None


def problem_text(value: Any) -> str | None:
    """An error as a text, or with its message at one of the usual places."""
    details = mapping_or_empty(value)
    message = details.get("message") or mapping_or_empty(details.get("data")).get("message") or details.get("name")
    return clean_error(message or value)


def parts_text(value: Any) -> str | None:
    """A prompt in parts, without those that the agent added itself."""
    parts = value if isinstance(value, list) else [{"text": value}]
    texts = [part.get("text") for part in map(mapping_or_empty, parts[:MAX_PARTS]) if not part.get("synthetic")]
    return clean_prompt("\n".join(text for text in texts if isinstance(text, str)))


def tool_calls(value: Any) -> list[dict[str, Any]] | None:
    if not isinstance(value, list):
        return None
    return [normalise.pick_fields(mapping_or_empty(call), _CALL) for call in value[:MAX_CALLS]]


def token_counts(value: Any) -> dict[str, Any] | None:
    counts = {key: n for key, n in mapping_or_empty(value).items() if number_or_none(n) is not None}
    return dict(list(counts.items())[:MAX_COUNTS]) or None


CLEANERS: dict[str, Cleaner] = {
    "name": text_cleaner(normalise.NAME),
    "message": text_cleaner(normalise.MESSAGE),
    "prompt": clean_prompt,
    "error": clean_error,
    "command": text_cleaner(normalise.COMMAND),
    "description": text_cleaner(2_000),
    "path": one_path,
    "number": number_or_none,
    "flag": true_or_none,
    "length": list_length,
    "problem": problem_text,
    "parts": parts_text,
    "calls_list": tool_calls,
    "tokens": token_counts,
}
_USUAL = {
    **dict.fromkeys(("message", "instructions", "subject", "args"), "message"),
    **dict.fromkeys(("prompt", "summary"), "prompt"),
    **dict.fromkeys(("cwd", "transcript", "lane_transcript", "path"), "path"),
    **dict.fromkeys(("ms", "idle_s", "index", "calls"), "number"),
    **dict.fromkeys(("again", "interrupted", "final"), "flag"),
    **{name: name for name in ("error", "command", "description", "tokens")},
    "background": "length",
}
"""Our fields that are no short names → their cleaner, where the table names none."""


def parse_fields(text: str) -> Fields:
    return tuple(map(_parse_field, text.split()))


def _parse_field(word: str) -> tuple[str, str, Cleaner]:
    names, _, cleaner = word.partition(":")
    ours, _, theirs = names.partition("=")
    return ours, theirs or ours, CLEANERS[cleaner or _USUAL.get(ours, "name")]


_CALL = parse_fields("call=tool_use_id tool=tool_name")
