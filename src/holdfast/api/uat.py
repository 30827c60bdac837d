"""Calls `holdfast.api.uat_session` from a shell: `python -m holdfast.api.uat get_session_context SESSION`.

Prints the result (a path as it is, anything else as JSON) and exits 1 if the function fails.
"""

import json
import os
import sys
from typing import Any

from holdfast.api import uat_session
from holdfast.api.uat_session import *  # noqa: F403 - the same names under this module's

NEVER_FAILS = ("release_session_lock", "get_hook_signal")
LOCKS = ("acquire_session_lock", "release_session_lock")


def main(words: list[str]) -> int:
    name, *arguments = words or [""]
    if name not in uat_session.__all__:
        print(f"one of: {', '.join(uat_session.__all__)}", file=sys.stderr)
        return 2
    # The lock belongs to the calling shell, because this process ends in a moment.
    owner = {"owner": os.getppid()} if name in LOCKS else {}
    try:
        answer = getattr(uat_session, name)(*(_parse_argument(word) for word in arguments), **owner)
    except TypeError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 0 if name in NEVER_FAILS else 2
    return _print_answer(name, answer)


def _print_answer(name: str, answer: Any) -> int:
    if isinstance(answer, str):
        print(answer)
    elif not isinstance(answer, bool) and (answer is not None or name == "get_hook_signal"):
        print(json.dumps(answer))
    failed = answer is False or answer is None
    return 1 if failed and name not in NEVER_FAILS else 0


def _parse_argument(word: str) -> Any:
    """Parse objects and lists as JSON; anything else is a string."""
    try:
        return json.loads(word) if word[:1] in ("{", "[") else word
    except ValueError:
        return word


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
