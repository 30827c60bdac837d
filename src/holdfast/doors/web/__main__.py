"""The background web server that `holdfast dashboard` starts; a failed start writes its reason to run/web.failed."""

import contextlib
import os
import sys
from pathlib import Path

from holdfast.core.errors import HoldfastError
from holdfast.paths import Paths, write_atomically

POLITE = 10
"""On a busy machine hooks take precedence over pages."""


def main(words: list[str]) -> int:
    paths = Paths(Path(words[words.index("--state") + 1]).absolute())
    port = int(words[words.index("--port") + 1])
    failed = paths.run / "web.failed"
    try:
        from holdfast.doors.web import server

        failed.unlink(missing_ok=True)
        # Not in the project from which it was started.
        os.chdir(paths.state)
        os.nice(POLITE)
        server.serve_dashboard(paths, port, or_another=True)
    except Exception as error:
        with contextlib.suppress(OSError):
            message = error.message if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}"
            write_atomically(failed, message.encode("utf-8", "replace"))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
