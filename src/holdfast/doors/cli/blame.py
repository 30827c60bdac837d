"""`holdfast blame`: the session, turn and prompt behind a line or commit."""

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from holdfast import client
from holdfast.core import git
from holdfast.core.errors import CommandRefused
from holdfast.core.times import time_ago
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json

PATIENCE_S = 30.0
# FILE:LINE; a commit has no colon.
_LINE = re.compile(r"^(?P<file>.+):(?P<line>\d{1,9})$", re.DOTALL)
_COMMIT = re.compile(r"^[0-9a-f]{40,64}$")
# Commits with the same author and time that are considered.
MOST_REWRITTEN = 5


class BlamedLine(msgspec.Struct):
    """Git's answer. `commit` is empty for an uncommitted line."""

    commit: str = ""
    path: str = ""
    was: str = ""
    """The file's name in that commit, if it was renamed since."""
    number: int = 0
    """The line number in that commit."""
    text: str = ""
    subject: str = ""
    author: str = ""


def blame(
    what: Annotated[str, typer.Argument(help="FILE:LINE, or a commit.")],
    json: Json = False,
) -> None:
    """Show which session wrote this line or made this commit, on which prompt, and why."""
    match = _LINE.match(what)
    blamed = _blame_line(match["file"], int(match["line"])) if match else _blame_commit(what)
    answer = _origin_of(blamed, blamed.commit)
    if not answer["turn"] and blamed.commit:
        answer = _earlier_origin(blamed) or answer
    render.finish_as_json(json, {"line": blamed, "origin": answer})
    _show_blame(what, blamed, answer)


def _origin_of(blamed: BlamedLine, commit: str) -> dict[str, Any]:
    answer: dict[str, Any] = client.ask_view(
        "project.origin", commit=commit, path=blamed.path, was=blamed.was, text=blamed.text
    )
    return answer


def _earlier_origin(blamed: BlamedLine) -> dict[str, Any] | None:
    """Find the original of a commit that was amended, rebased, picked or squashed outside its session."""
    for commit in (_squashed_from(blamed) + _rewritten_from(blamed))[:MOST_REWRITTEN]:
        answer = _origin_of(blamed, commit)
        if answer["turn"]:
            return {**answer, "rewritten_from": commit}
    return None


def _show_blame(what: str, blamed: BlamedLine, answer: dict[str, Any]) -> None:
    if blamed.text:
        render.out.print(f"{render.clean_line(what, 120)}  {render.clean_line(blamed.text.strip(), 100)}")
    commit = f"{blamed.commit[:12]} {blamed.subject} ({blamed.author})" if blamed.commit else "not committed yet"
    _print_row("commit", commit)
    turn = answer["turn"]
    if not turn:
        _print_row("session", f"unknown: {answer['why_unknown']}" if answer["why_unknown"] else "unknown")
        return
    when = time_ago(turn["at"]) if turn["at"] else "at an unknown time"
    agent, number = turn["agent"] or "unknown agent", turn["number"] or "–"
    _print_row("session", f"{turn['session']} ({agent}), turn {number}, {when}, {_kind_of_proof(answer)}")
    _print_row("prompt", turn["prompt"] or "–")
    _print_row("reason", turn["reason"] or "– (no answer on record)")
    for work in answer["work"]:
        _print_row("work", f"turn {work['number']}: {work['prompt']}")
    _print_row("more", f"holdfast session show {turn['session'][:8]}")


def _kind_of_proof(answer: dict[str, Any]) -> str:
    if answer["how"] == "edit":
        return "wrote this line"
    if commit := answer.get("rewritten_from"):
        return f"made it as {commit[:12]}; rewritten outside of a session since"
    return "made the commit"


def _print_row(label: str, text: str) -> None:
    render.out.print(f"  {label:<8} {render.clean_line(text, 600)}")


# ── what git says ────────────────────────────────────────────────────────────────────────────────────────────────────


def _blame_line(file: str, line: int) -> BlamedLine:
    path = Path(file)
    if not path.is_file():
        raise CommandRefused(f"{file}: there is no such file", fix="holdfast blame FILE:LINE")
    root = _run_git(path.parent, "rev-parse", "--show-toplevel").strip()
    where = f"-L{max(1, line)},{max(1, line)}"
    output = _run_git(
        # -w ignores white space, and no program of the repository converts the text.
        path.parent,
        "blame",
        "--no-textconv",
        "--porcelain",
        "-w",
        where,
        "--",
        path.name,
        filters=_git_filters(root),
    )
    blamed = BlamedLine(path=str(path.resolve().relative_to(Path(root).resolve())))
    sha = output.partition(" ")[0]
    # git reports uncommitted lines with a commit of zeros.
    blamed.commit = sha if _COMMIT.match(sha) and set(sha) != {"0"} else ""
    blamed.number = int(output.split(" ", 2)[1])
    for row in output.splitlines():
        name, _, value = row.partition(" ")
        if row.startswith("\t"):
            blamed.text = row[1:]
        elif name in ("author", "summary", "filename"):
            setattr(blamed, {"summary": "subject", "filename": "was"}.get(name, name), value)
    return blamed


def _blame_commit(name: str) -> BlamedLine:
    if Path(name).is_file():
        raise CommandRefused(f"{name} is a file", fix=f"Name the line, too: holdfast blame {name}:1")
    # A leading dash would be read as an option of git.
    if name.startswith("-"):
        raise CommandRefused(f"{name!r} is no commit", fix="holdfast blame FILE:LINE, or a commit's id.")
    fields = _run_git(Path(), "log", "-1", "--format=%H%x00%s%x00%an", name, "--").rstrip("\n").split("\0")
    if len(fields) != 3:
        raise CommandRefused(f"there is no commit {name!r}", fix="holdfast blame FILE:LINE, or a commit's id.")
    return BlamedLine(commit=fields[0], subject=fields[1], author=fields[2])


def _rewritten_from(blamed: BlamedLine) -> list[str]:
    """Existing commits with the same author and authorship time, which a rewrite keeps; oldest first. Several within
    one second are distinguished by subject."""
    about = _run_git(Path(), "log", "-1", "--format=%at %ae", blamed.commit, "--").strip()
    # A commit is never committed before it was authored; one minute of clock tolerance.
    since = int(about.partition(" ")[0] or 0) - 60
    listed = _run_git(
        Path(), "log", "--all", "--reflog", f"--since={since}", "--reverse", "--format=%H%x00%at %ae%x00%s"
    )
    rows = [row.split("\0") for row in listed.splitlines() if row.count("\0") == 2]
    alike = {sha: subject for sha, whose, subject in rows if whose == about and sha != blamed.commit}
    named = [sha for sha, subject in alike.items() if subject == blamed.subject]
    return named or (list(alike) if len(alike) == 1 else [])


def _squashed_from(blamed: BlamedLine) -> list[str]:
    """Commits of another history in which the file ended with the same content: of several squashed commits, the one
    that wrote the line."""
    if not blamed.number:
        return []
    root = Path(_run_git(Path(), "rev-parse", "--show-toplevel").strip())
    path = blamed.was or blamed.path
    content = _run_git(root, "rev-parse", f"{blamed.commit}:{path}").strip()
    same = _run_git(root, "log", "--all", "--reflog", f"--find-object={content}", "--format=%H").split()
    lines = (f"-L{blamed.number},{blamed.number}", "--no-textconv", "--porcelain", "-w")
    behind = []
    for commit in [one for one in same if one != blamed.commit][:MOST_REWRITTEN]:
        # A commit that removed this content has another one.
        if _run_git(root, "rev-parse", f"{commit}:{path}", missing_ok=True).strip() == content:
            behind.append(
                _run_git(root, "blame", *lines, commit, "--", path, filters=_git_filters(str(root))).split(" ", 1)[0]
            )
    return list(dict.fromkeys(behind))


def _git_filters(root: str) -> list[str]:
    """Filter programs from the repository's own config; none of them runs."""
    return git.own_filters(_git_output(Path(root), git.config_names()).encode())


def _run_git(folder: Path, *words: str, filters: Iterable[str] = (), missing_ok: bool = False) -> str:
    return _git_output(folder, git.git_argv(*words, filters=filters), missing_ok=missing_ok)


def _git_output(folder: Path, command: list[str], *, missing_ok: bool = False) -> str:
    try:
        ran = subprocess.run(
            command, cwd=folder, env=git.git_environment(os.environ), capture_output=True, timeout=PATIENCE_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandRefused(f"git does not answer: {error}") from error
    if ran.returncode and missing_ok:
        return ""
    if ran.returncode:
        problem = " ".join(ran.stderr.decode("utf-8", "replace").split())[:200]
        fix = "Run it in a git repository." if "not a git repository" in problem else ""
        raise CommandRefused(problem.removeprefix("fatal: ") or "git failed", fix=fix)
    return ran.stdout.decode("utf-8", "replace")
