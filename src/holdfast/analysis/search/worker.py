"""Runs one index build in its own process; the task is JSON on stdin, the result JSON on stdout."""

import os
import sys

import msgspec

from holdfast.analysis.search.index.build import Result, Task, run_build


def main() -> int:
    # The index contains source text, and so do the files that SQLite writes next to it.
    os.umask(0o077)
    try:
        task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    except msgspec.DecodeError as error:
        result = Result(status="failed", reason=f"the task cannot be read: {error}")
    else:
        result = run_build(task)
    sys.stdout.buffer.write(msgspec.json.encode(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
