"""Calls `holdfast.api.uat_session` from a shell: `python -m holdfast.api.uat get_session_context SESSION`."""

import sys

from holdfast.api import shell, uat_session
from holdfast.api.uat_session import *  # noqa: F403 - the same names under this module's


def main(words: list[str]) -> int:
    return shell.main(words, {name: getattr(uat_session, name) for name in uat_session.__all__})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
