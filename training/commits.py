"""Pairs from the history of repositories: `python training/commits.py CLONES OUT.jsonl`. A commit's subject ↔ what it changed.

People write a subject much as they ask for a change ("retry the upload when the server answers 503"), which docstrings
never teach. Only commits that change few files count, of each at most two places, tests and generated files left out.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from functions import is_test

from holdfast.analysis.search import languages
from holdfast.analysis.search.languages import CODE, CONFIGURATION, role_of

MOST_COMMITS = 3_000
MOST_FILES = 5
PLACES = 2
CONTEXT = 12
LEAST_WORDS, MOST_WORDS = 4, 25
LONGEST_BODY = 6_000

_NOISE = re.compile(
    r"(?i)^(?:merge|revert|bump|release|prepare|version|wip|chore|ci\b|build\(|deps|update dependenc|upgrade|typo|lint|format|"
    r"cleanup|clean up|refactor|rename|move|translat|fix (?:typo|lint|test|build|ci|flak)|tests?\b|docs?\b|changelog|"
    r"rubocop|style|backport|cherry)|\bchangelog\b|\bcopyright\b|\bv?\d+\.\d+\.\d+"
)
_PREFIX = re.compile(r"^(?:\[[^\]]{1,30}\]\s*|[\w/.*-]{1,30}(?:\([^)]{1,40}\))?!?:\s+|:\w+:\s*)+")
_TAIL = re.compile(r"\s*\(?(?:#|GH-|gh-)\d+\)?|\s*\[[^\]]*\]$|\s*\((?:close|fix)[^)]*\)", re.IGNORECASE)
_HUNK = re.compile(r"^@@ [^@]* @@ ?(.*)$")


def subject_of(text: str) -> str:
    """What the subject says, without ticket numbers and prefixes; empty where it says nothing about code."""
    text = text.strip()
    if _NOISE.search(text):
        return ""
    bare = _TAIL.sub("", _PREFIX.sub("", text)).strip(" .")
    words = bare.split()
    if not LEAST_WORDS <= len(words) <= MOST_WORDS or _NOISE.search(bare):
        return ""
    letters = sum(c.isascii() and (c.isalpha() or c == " ") for c in bare)
    return bare if letters >= 0.75 * len(bare) else ""


def commits(repository: Path) -> Iterator[tuple[str, list[str]]]:
    """(subject, the lines of its diff)"""
    argv = ["git", "-C", str(repository), "log", "--no-merges", f"--max-count={MOST_COMMITS}", f"-U{CONTEXT}", "--no-color",
            "--no-renames", "--diff-filter=AM", "--format=%x01%s", "-p"]  # fmt: skip
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, errors="replace") as running:
        assert running.stdout
        subject, lines, size = "", [], 0
        for line in running.stdout:
            if line.startswith("\x01"):
                if subject and lines:
                    yield subject, lines
                subject, lines, size = subject_of(line[1:]), [], 0
            elif subject and size < 400_000:
                lines.append(line.rstrip("\n"))
                size += len(line)
        if subject and lines:
            yield subject, lines


def places(lines: list[str]) -> Iterator[tuple[str, str, str, int]]:
    """(path, name after the @@, text after the change, how many lines changed)"""
    path, name, body, changed = "", "", [], 0
    for line in lines:
        hunk = _HUNK.match(line)
        if line.startswith("diff --git") or hunk:
            if body:
                yield path, name, "\n".join(body), changed
            body, changed = [], 0
        if line.startswith("+++ b/"):
            path = line[6:]
        elif hunk:
            name = hunk[1]
        elif line.startswith("+") and not line.startswith("+++"):
            body.append(line[1:])
            changed += 1
        elif line.startswith(" "):
            body.append(line[1:])
        elif line.startswith("-") and not line.startswith("---"):
            changed += 1
    if body:
        yield path, name, "\n".join(body), changed


def pairs(repository: Path) -> Iterator[dict[str, str]]:
    package = repository.name.removesuffix(".git")
    for subject, lines in commits(repository):
        if sum(line.startswith("diff --git") for line in lines) > 2 * MOST_FILES:
            continue
        found = [one for one in places(lines) if _counts(one[0]) and one[3] > 1 and len(one[2]) <= LONGEST_BODY]
        if len({one[0] for one in found}) > MOST_FILES:
            continue
        for path, name, body, _ in sorted(found, key=lambda one: -one[3])[:PLACES]:
            yield {"g": "commits", "k": package, "q": subject, "b": body, "n": name[:80], "p": path}


def _counts(path: str) -> bool:
    return role_of(path) in (CODE, CONFIGURATION) and bool(languages.language_of_path(path)) and not is_test(path, "")


def write(repository: Path, out: Path) -> str:
    count = 0
    with (out / f"{repository.name}.jsonl").open("w") as log:
        for one in pairs(repository):
            log.write(json.dumps(one) + "\n")
            count += 1
    return f"{repository.name} {count}"


def main() -> None:
    clones, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        for told in pool.map(lambda one: write(one, out), sorted(p for p in clones.iterdir() if p.is_dir())):
            print(told, flush=True)


if __name__ == "__main__":
    main()
