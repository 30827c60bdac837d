"""Calls functions of `holdfast.api` from a shell: prints the result, and exits 1 if the function fails."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

NEVER_FAILS = (
    "release_session_lock", "get_hook_signal", "initialize_session_state", "mark_first_prompt_shown", "get_session_id",
)  # fmt: skip
LOCKS = ("acquire_session_lock", "release_session_lock")


def main(words: list[str], functions: Mapping[str, Callable[..., Any]]) -> int:
    name, *arguments = words or [""]
    if name not in functions:
        print(f"one of: {', '.join(functions)}", file=sys.stderr)
        return 2
    # The lock belongs to the calling shell, because this process ends in a moment.
    owner = {"owner": os.getppid()} if name in LOCKS else {}
    try:
        answer = functions[name](*(_parse_argument(word) for word in arguments), **owner)
    except TypeError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 0 if name in NEVER_FAILS else 2
    return _print_answer(name, answer)


def _print_answer(name: str, answer: Any) -> int:
    if isinstance(answer, str):
        print(answer)
    elif not isinstance(answer, bool) and (answer is not None or name == "get_hook_signal"):
        print(json.dumps(answer, default=str))
    failed = answer is False or answer is None
    return 1 if failed and name not in NEVER_FAILS else 0


def _parse_argument(word: str) -> Any:
    """Parse objects and lists as JSON; anything else is a string."""
    try:
        return json.loads(word) if word[:1] in ("{", "[") else word
    except ValueError:
        return word
