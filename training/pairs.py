"""From fetched sources to pairs: `python training/pairs.py SOURCES… OUT`. One JSON line each: sentence, body, name, path.

Tests are left out, so are pairs seen before (the same function ships in many packages), and no package gives more than
MOST, so that none sets the tone.
"""

import hashlib
import json
import multiprocessing
import os
import sys
import tarfile
from pathlib import Path

from functions import functions, is_test, remarks

from holdfast.analysis.search import languages

MOST = int(os.environ.get("MOST", "4000"))


def of_archive(path: str) -> tuple[str, list[str]]:
    found: list[dict] = []
    with tarfile.open(path) as archive:
        for item in archive:
            if len(found) > 3 * MOST:
                break
            file = archive.extractfile(item)
            if file is None:
                continue
            text = file.read().decode("utf-8", "replace")
            try:
                for made in functions(text, languages.of(item.name), item.name):
                    if is_test(made.path, made.name):
                        continue
                    if made.sentence:
                        found.append({"q": made.sentence, "b": made.body, "n": made.symbol, "p": made.path})
                    for said, rest in remarks(made.body):
                        found.append({"q": said, "b": rest, "n": made.symbol, "p": made.path})
            except (RecursionError, ValueError):
                continue
    found.sort(key=_mark)  # A fixed choice that looks random: the whole package, not its first files.
    return path, [json.dumps(one) for one in found[:MOST]]


def _mark(one: dict) -> str:
    return hashlib.blake2b(f"{one['q']}\0{one['b']}".encode(), digest_size=16).hexdigest()


def main() -> None:
    *sources, out = map(Path, sys.argv[1:])
    archives = sorted(str(p) for source in sources for p in source.rglob("*.tar.gz"))
    seen: set[str] = set()
    counts: dict[str, int] = {}
    with multiprocessing.Pool(int(os.environ.get("JOBS", "2"))) as pool, out.open("w") as log:
        for path, lines in pool.imap(of_archive, archives, chunksize=4):
            group, package = Path(path).parent.name, Path(path).name.removesuffix(".tar.gz")
            for line in lines:
                one = json.loads(line)
                marks = {_mark(one)}
                if not marks & seen:
                    log.write(json.dumps({"g": group, "k": package, **one}) + "\n")
                    counts[group] = counts.get(group, 0) + 1
                seen |= marks
    print(counts, sum(counts.values()), "pairs")


if __name__ == "__main__":
    main()
