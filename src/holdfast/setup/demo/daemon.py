"""The demo's daemon: the ordinary one on the demo's clock."""

import sys
from pathlib import Path

from holdfast.setup.demo.clock import use_demo_clock

LOOK_EVERY_S = 0.02
"""Hours pass in a second: jobs due at a quarter past must not wait until half past."""
FRESH_S = 0.0
"""For the same reason a branch is read again for each hook."""


def main() -> None:
    use_demo_clock(Path(sys.argv.pop(1)))
    from holdfast.core import git_context
    from holdfast.daemon import worker
    from holdfast.daemon.run import main as serve

    worker.LOOK_EVERY_S, git_context.FRESH_S = LOOK_EVERY_S, FRESH_S
    serve()


if __name__ == "__main__":
    main()
