"""The demo's git repositories."""

import difflib
import os
import subprocess
from pathlib import Path
from typing import Any

AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.invalid", "-c", "init.defaultBranch=main")
# The user's signing key and hooks must not be used here.
NO_SIGNING = ("-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null")
CONTEXT_LINES = 3


class Repo:
    def __init__(self, root: Path, home: Path) -> None:
        self.root, self._home = root, home

    def make(self, files: dict[str, str], at: int) -> None:
        self.root.mkdir(parents=True)
        self.git("init -q", at)
        for path, text in files.items():
            self.write(path, text, at)
        self.git("add -A", at)
        self.git("commit -q -m 'First version'", at)

    def write(self, path: str, text: str, at: int) -> dict[str, Any]:
        """What a tool that wrote it would report about the change."""
        file = self.root / path
        before = file.read_text() if file.exists() else ""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (at / 1000, at / 1000))
        return {"file": str(file), "before": before, "after": text, "hunks": patch_hunks(before, text)}

    def edit(self, path: str, old: str, new: str, at: int) -> dict[str, Any]:
        before = (self.root / path).read_text()
        # The day and its files do not match: better a failure than a wrong demo.
        if old not in before:
            raise LookupError(f"{path} of {self.root.name} does not hold {old!r}")
        return self.write(path, before.replace(old, new, 1), at)

    def git(self, words: str, at: int) -> str:
        """Through a shell, as agents do; the user's git settings are not used."""
        command = " ".join(["git", *map(_quote_word, (*AUTHOR, *NO_SIGNING)), words])
        when = f"{at // 1000} +0000"
        env = {
            "PATH": os.environ["PATH"], "HOME": str(self._home), "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "LANG": "C.UTF-8",
        }  # fmt: skip
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.root, env=env, capture_output=True, text=True, check=False
        )
        return (done.stdout + done.stderr).strip()


def _quote_word(word: str) -> str:
    return f"'{word}'"


def patch_hunks(before: str, after: str) -> list[dict[str, Any]]:
    """As Claude Code writes a patch."""
    old, new = before.splitlines(), after.splitlines()
    groups = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_grouped_opcodes(CONTEXT_LINES)
    return [_patch_hunk(old, new, group) for group in groups]


def _patch_hunk(old: list[str], new: list[str], group: list[tuple[str, int, int, int, int]]) -> dict[str, Any]:
    lines: list[str] = []
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            lines += [f" {line}" for line in old[i1:i2]]
        else:
            lines += [f"-{line}" for line in old[i1:i2]] + [f"+{line}" for line in new[j1:j2]]
    first, last = group[0], group[-1]
    return {
        "oldStart": first[1] + 1, "oldLines": last[2] - first[1],
        "newStart": first[3] + 1, "newLines": last[4] - first[3], "lines": lines,
    }  # fmt: skip


def as_text(path: str, diff: dict[str, Any]) -> str:
    """The same as a unified diff."""
    lines = [f"--- {path}", f"+++ {path}"]
    for hunk in diff["hunks"]:
        lines.append(f"@@ -{hunk['oldStart']},{hunk['oldLines']} +{hunk['newStart']},{hunk['newLines']} @@")
        lines += hunk["lines"]
    return "\n".join(lines) + "\n"
