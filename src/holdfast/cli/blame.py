"""`holdfast blame FILE:LINE` or `holdfast blame COMMIT`: the session, turn, prompt and reason behind it."""

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from holdfast import client
from holdfast.cli import render
from holdfast.cli.options import Json
from holdfast.core import git
from holdfast.core.errors import CommandRefused

PATIENCE_S = 30.0
# FILE:LINE; a commit has no colon.
_LINE = re.compile(r"^(?P<file>.+):(?P<line>\d{1,9})$", re.DOTALL)
_COMMIT = re.compile(r"^[0-9a-f]{40,64}$")


class BlamedLine(msgspec.Struct):
    """What git says. `commit` is empty for a line that is not committed."""

    commit: str = ""
    path: str = ""
    text: str = ""
    subject: str = ""
    author: str = ""


def register(app: typer.Typer) -> None:
    app.command()(blame)


def blame(
    what: Annotated[str, typer.Argument(help="FILE:LINE, or a commit.")],
    json: Json = False,
) -> None:
    """Which session wrote this line or made this commit, on which prompt, and why."""
    match = _LINE.match(what)
    blamed = _blame_line(match["file"], int(match["line"])) if match else _blame_commit(what)
    answer = client.ask_view("project.origin", commit=blamed.commit, path=blamed.path, text=blamed.text)
    if json:
        render.json_line({"line": blamed, "origin": answer})
        return
    _show_blame(what, blamed, answer)


def _show_blame(what: str, blamed: BlamedLine, answer: dict[str, Any]) -> None:
    if blamed.text:
        render.out.print(f"{render.clean_line(what, 120)}  {render.clean_line(blamed.text.strip(), 100)}")
    commit = f"{blamed.commit[:12]} {blamed.subject} ({blamed.author})" if blamed.commit else "not committed yet"
    _print_row("commit", commit)
    turn = answer["turn"]
    if not turn:
        _print_row("session", f"unknown: {answer['why_unknown']}" if answer["why_unknown"] else "unknown")
        return
    how = "wrote this line" if answer["how"] == "edit" else "made the commit"
    when = render.time_ago(turn["at"]) if turn["at"] else "at an unknown time"
    _print_row(
        "session",
        f"{turn['session']} ({turn['agent'] or 'unknown agent'}), turn {turn['number'] or '–'}, {when}, {how}",
    )
    _print_row("prompt", turn["prompt"] or "–")
    _print_row("reason", turn["reason"] or "– (no answer on record)")
    for work in answer["work"]:
        _print_row("work", f"turn {work['number']}: {work['prompt']}")
    _print_row("more", f"holdfast session show {turn['session'][:8]}")


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
    # git names lines that are not committed by a commit of zeros.
    blamed.commit = sha if _COMMIT.match(sha) and set(sha) != {"0"} else ""
    for row in output.splitlines():
        name, _, value = row.partition(" ")
        if row.startswith("\t"):
            blamed.text = row[1:]
        elif name in ("author", "summary"):
            setattr(blamed, {"summary": "subject"}.get(name, name), value)
    return blamed


def _blame_commit(name: str) -> BlamedLine:
    if Path(name).is_file():
        raise CommandRefused(f"{name} is a file", fix=f"Name the line, too: holdfast blame {name}:1")
    # A name that begins with a dash would be an option of git.
    if name.startswith("-"):
        raise CommandRefused(f"{name!r} is no commit", fix="holdfast blame FILE:LINE, or a commit's id.")
    fields = _run_git(Path(), "log", "-1", "--format=%H%x00%s%x00%an", name, "--").rstrip("\n").split("\0")
    if len(fields) != 3:
        raise CommandRefused(f"there is no commit {name!r}", fix="holdfast blame FILE:LINE, or a commit's id.")
    return BlamedLine(commit=fields[0], subject=fields[1], author=fields[2])


def _git_filters(root: str) -> list[str]:
    """Programs that the repository's own config names for its files: none of them runs for a question."""
    return git.own_filters(_git_output(Path(root), git.config_names()).encode())


def _run_git(folder: Path, *words: str, filters: Iterable[str] = ()) -> str:
    return _git_output(folder, git.git_argv(*words, filters=filters))


def _git_output(folder: Path, command: list[str]) -> str:
    try:
        ran = subprocess.run(
            command, cwd=folder, env=git.git_environment(os.environ), capture_output=True, timeout=PATIENCE_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandRefused(f"git does not answer: {error}") from error
    if ran.returncode:
        problem = " ".join(ran.stderr.decode("utf-8", "replace").split())[:200]
        raise CommandRefused(problem.removeprefix("fatal: ") or "git failed", fix="Run it in a git repository.")
    return ran.stdout.decode("utf-8", "replace")
