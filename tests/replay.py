"""`python -m tests.replay DATABASE…`: prints each document that the log, replayed in this process, makes otherwise (P5)."""

import sys
from collections.abc import Iterable
from pathlib import Path

from holdfast.app import all_features
from holdfast.core.replay import Rebuild, outdated_features
from holdfast.stores.sqlite_reader import SqliteReader


def differences(database: Path) -> list[str]:
    reader = SqliteReader(database)
    try:
        behind = outdated_features(all_features(), reader)
        work = Rebuild([feature for feature in all_features() if feature not in behind], reader)
        work.read()
        return work.differences()
    finally:
        reader.close()


def main(databases: Iterable[str]) -> None:
    for name in databases:
        for line in differences(Path(name)):
            print(f"{name}: {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
