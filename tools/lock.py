"""`python tools/lock.py`: write packaging/constraints-hashed.txt, every file of every pinned version by its SHA-256.

The versions are those of packaging/constraints.txt. The index is asked by its simple interface; its
address is the one pip uses and is not written down. `pip install --require-hashes -r packaging/constraints-hashed.txt` then takes
exactly these files, from wherever they come.
"""

import os
import re
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAD = "# Made by tools/lock.py from constraints.txt: names, versions and hashes only.\n"
_FILE = re.compile(r'href="[^"]*?([^/"#]+)#sha256=([0-9a-f]{64})"')


def index_url() -> str:
    if named := os.environ.get("PIP_INDEX_URL"):
        return named.rstrip("/")
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    if not asked.stdout.strip():
        raise SystemExit("no index is named: set PIP_INDEX_URL or `pip config set global.index-url`")
    return asked.stdout.strip().rstrip("/")


def pinned() -> list[tuple[str, str]]:
    lines = (ROOT / "packaging" / "constraints.txt").read_text().splitlines()
    return [
        (name, version) for line in lines if (name := line.partition("==")[0]) and (version := line.partition("==")[2])
    ]


def hashes(index: str, name: str, version: str) -> list[str]:
    """Of the wheels and the source archive of this version."""
    with urllib.request.urlopen(f"{index}/{normal(name)}/", timeout=60) as answer:  # noqa: S310 - the index of pip
        files = _FILE.findall(answer.read().decode())
    starts = re.compile(
        rf"{'[-_.]+'.join(map(re.escape, normal(name).split('-')))}-{re.escape(version)}(?:-|\.tar\.gz$|\.zip$)", re.I
    )
    return sorted({digest for file, digest in files if starts.match(file)})


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    index, wanted = index_url(), pinned()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda one: hashes(index, *one), wanted))
    without = [name for (name, _), known in zip(wanted, found, strict=True) if not known]
    if without:
        print("no files of", *without, file=sys.stderr)
        return 1
    text = "".join(
        f"{name}=={version} \\\n" + " \\\n".join(f"    --hash=sha256:{one}" for one in known) + "\n"
        for (name, version), known in zip(wanted, found, strict=True)
    )
    (ROOT / "packaging" / "constraints-hashed.txt").write_text(HEAD + text)
    print(f"{len(wanted)} packages, {sum(map(len, found))} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
