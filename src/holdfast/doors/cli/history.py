"""`history`, `event` and `blame`: what happened, in all sessions of all agents, and who was behind a line or a commit."""

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from holdfast import client
from holdfast.core import git
from holdfast.core.errors import CommandRefused
from holdfast.core.ids import session_alias
from holdfast.core.times import format_bytes, now_ms, parse_moment, time_ago
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json, OfAgent, OfProject, OfThisProject

# `holdfast history QUERY`: everything that happened, in all sessions of all agents.

BEHIND = 200
"""Events that are not indexed yet before it is worth a word: the last few always come a moment later."""


def register(app: typer.Typer) -> None:
    app.command()(history)
    app.command()(blame)
    app.add_typer(event_app, name="event")


def history(
    query: Annotated[list[str] | None, typer.Argument(help='Words, a name, a path; "in quotes" one phrase.')] = None,
    project: OfProject = "",
    here: OfThisProject = False,
    agent: OfAgent = "",
    session: Annotated[str, typer.Option("--session", help="Only of this session: its id, or how it begins.")] = "",
    tool: Annotated[str, typer.Option("--tool", help="Only calls of this tool, e.g. Bash.")] = "",
    file: Annotated[str, typer.Option("--file", help="Only what touched this file: a path or its end.")] = "",
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only this kind of event, e.g. prompt.submitted.")] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only what failed or was refused.")] = False,
    since: Annotated[str, typer.Option("--since", help="2026-11-01, 10:45, 2h, 3d.")] = "",
    before: Annotated[int, typer.Option("--before", help="Only events before this number: the next page.")] = 0,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 20,
    json: Json = False,
) -> None:  # fmt: skip
    """Prompts, answers, commands, outputs, files, errors and commits, newest first."""
    filters: dict[str, Any] = {
        "project": _project_filter(project, here), "agent": agent, "session": session, "tool": tool, "file": file,
        "kinds": kind or [], "failed": failed, "since": parse_moment(since, now_ms()) if since else 0, "before": before,
    }  # fmt: skip
    answer = client.ask_view("log.history", query=" ".join(query or ()), limit=limit, **filters)
    if json:
        render.json_line(answer)
        return
    for hit in answer["hits"]:
        _show_hit(hit, answer["words"])
    _show_footer(answer, is_narrowed=any(filters.values()))


def _project_filter(project: str, here: bool) -> str:
    if here:
        return client.current_project()
    return str(Path(project).expanduser().absolute()) if project else ""


def _show_hit(hit: dict[str, Any], words: list[str]) -> None:
    line = Text(f"{hit['seq']:>7}  {render.day_and_clock(hit['at'])}  ", style="dim")
    line.append(
        f"{hit['kind']:<17} ", style="red" if hit["failed"] else render.STYLES.get(hit["kind"].partition(".")[0], "")
    )
    line.append(f"{render.clean_line(session_alias(hit['session'])):<8} ", style="cyan")
    line.append(f"{render.clean_line(Path(hit['project']).name, 24)} {render.clean_line(hit['agent'])} ", style="dim")
    snippet = Text(f"{render.clean_line(hit['tool'])}: " if hit["tool"] else "") + Text(
        render.clean_line(hit["snippet"], 300)
    )
    snippet.highlight_words(words, "bold yellow", case_sensitive=False)
    render.out.print(line + snippet)


def _show_footer(answer: dict[str, Any], is_narrowed: bool) -> None:
    if not answer["hits"] and is_narrowed:
        render.out.print("No results with these filters. Without them, every session on record is searched.")
    elif not answer["hits"]:
        render.out.print("No results in any session on record.")
    elif answer["partly"]:
        render.err.print(Text("No event has all of these words; those with the most of them come first.", style="dim"))
    elif answer["next"]:
        render.err.print(Text(f"older: the same with --before {answer['next']}", style="dim"))
    if answer["head"] - answer["indexed"] > BEHIND:
        render.err.print(
            Text(
                f"Still being indexed: {answer['indexed']:,} of {answer['head']:,} events can be found so far.",
                style="yellow",
            )
        )


# `holdfast event …`: the log, for people.

event_app = typer.Typer(help="Look at the log.", no_args_is_help=True)

Session = Annotated[
    str, typer.Option("--session", help="Only this session: its id, the beginning of it, or its alias.")
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000)]


@event_app.command("list")
def list_events(
    session: Session = "",
    limit: Limit = 40,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Only this kind; may be given several times.")
    ] = None,
    before: Annotated[int, typer.Option("--before", help="Only events before this number.")] = 0,
    json: Json = False,
) -> None:
    """The newest events, oldest of them first."""
    session = _full_id(session)
    page = client.ask_view("log.events", session=session, limit=limit, before=before, kinds=kind or [])
    if json:
        render.json_line(page)
        return
    for event in page["events"]:
        render.out.print(render.event_line(event))
    if not page["events"]:
        render.out.print(_nothing_found(session, kind or [], before))
    elif page["next"]:
        only = f" --session {session}" if session else ""
        more = f"older: holdfast event list{only} --before {page['next']['before']}"
        render.out.print(Text(render.clean_line(more), style="dim"))


@event_app.command()
def tail(
    session: Session = "",
    limit: Limit = 10,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", "-f", help="Go on as events come.")] = True,
    json: Json = False,
) -> None:
    """The last events, and then each new one as it happens."""
    session = _full_id(session)
    page = client.ask_view("log.events", session=session, limit=limit)["events"]
    for event in page:
        _show_event(event, json)
    if not follow:
        return
    # Events between the page and the stream are not missed: the stream begins behind the page.
    after = page[-1]["seq"] if page else 0
    for line in client.stream_replies("tail", after=after, session=session):
        if "event" in line:
            _show_event(line["event"], json)


@event_app.command()
def show(seq: int, json: Json = False) -> None:
    """One event with all its fields."""
    event = client.ask_view("log.event", seq=seq)
    if json:
        render.json_line(event)
        return
    render.out.print(render.event_line(event))
    for name, value in event["data"].items():
        render.out.print(Text(f"  {name:<12} ", style="dim") + Text(render.clean_line(value, 2000)))
    if event["body"]:
        size_note = "" if not event["body_hash"] else f" (cut down from {format_bytes(event['body_size'])})"
        render.out.print(Text(f"  body{size_note}:", style="dim"))
        render.out.print(Text("  " + render.clean_line(event["body"], 4000)))


def _full_id(session: str) -> str:
    """The id that a beginning or an alias stands for. What may be several sessions is refused with their names."""
    return str(client.ask_view("sessions.find", id=session)["id"]) if session else ""


def _nothing_found(session: str, kinds: list[str], before: int) -> str:
    """What is true of an empty page."""
    if not (session or kinds or before):
        return "No events yet. Put the hooks in with: holdfast install"
    of_kind = f" of kind {', '.join(kinds)}" if kinds else ""
    in_session = f" in session {session}" if session else ""
    return render.clean_line(f"No events{of_kind}{in_session}{f' before {before}' if before else ''}.")


def _show_event(event: dict[str, Any], json: bool) -> None:
    if json:
        render.json_line(event)
    else:
        render.out.print(render.event_line(event))


# `holdfast blame FILE:LINE` or `holdfast blame COMMIT`: the session, turn, prompt and reason behind it.

PATIENCE_S = 30.0
# FILE:LINE; a commit has no colon.
_LINE = re.compile(r"^(?P<file>.+):(?P<line>\d{1,9})$", re.DOTALL)
_COMMIT = re.compile(r"^[0-9a-f]{40,64}$")
# Commits with the same author and time that are asked about.
MOST_REWRITTEN = 5


class BlamedLine(msgspec.Struct):
    """What git says. `commit` is empty for a line that is not committed."""

    commit: str = ""
    path: str = ""
    was: str = ""
    """The file's name in that commit, where it was renamed since."""
    number: int = 0
    """The number of the line in that commit."""
    text: str = ""
    subject: str = ""
    author: str = ""


def blame(
    what: Annotated[str, typer.Argument(help="FILE:LINE, or a commit.")],
    json: Json = False,
) -> None:
    """Which session wrote this line or made this commit, on which prompt, and why."""
    match = _LINE.match(what)
    blamed = _blame_line(match["file"], int(match["line"])) if match else _blame_commit(what)
    answer = _origin_of(blamed, blamed.commit)
    if not answer["turn"] and blamed.commit:
        answer = _earlier_origin(blamed) or answer
    if json:
        render.json_line({"line": blamed, "origin": answer})
        return
    _show_blame(what, blamed, answer)


def _origin_of(blamed: BlamedLine, commit: str) -> dict[str, Any]:
    answer: dict[str, Any] = client.ask_view(
        "project.origin", commit=commit, path=blamed.path, was=blamed.was, text=blamed.text
    )
    return answer


def _earlier_origin(blamed: BlamedLine) -> dict[str, Any] | None:
    """Somebody amended, rebased, picked or squashed a session's commits outside of it: then the one that was there is told."""
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
    how = "wrote this line" if answer["how"] == "edit" else "made the commit"
    if answer.get("rewritten_from") and answer["how"] != "edit":
        how = f"made it as {answer['rewritten_from'][:12]}; rewritten outside of a session since"
    when = time_ago(turn["at"]) if turn["at"] else "at an unknown time"
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
    # A name that begins with a dash would be an option of git.
    if name.startswith("-"):
        raise CommandRefused(f"{name!r} is no commit", fix="holdfast blame FILE:LINE, or a commit's id.")
    fields = _run_git(Path(), "log", "-1", "--format=%H%x00%s%x00%an", name, "--").rstrip("\n").split("\0")
    if len(fields) != 3:
        raise CommandRefused(f"there is no commit {name!r}", fix="holdfast blame FILE:LINE, or a commit's id.")
    return BlamedLine(commit=fields[0], subject=fields[1], author=fields[2])


def _rewritten_from(blamed: BlamedLine) -> list[str]:
    """Commits git still has with the same author and the same time of authorship, which a rewrite keeps; the oldest first.
    Several of one second are told apart by their subject."""
    about = _run_git(Path(), "log", "-1", "--format=%at %ae", blamed.commit, "--").strip()
    # A commit is never committed before it was authored; a minute for clocks.
    since = int(about.partition(" ")[0] or 0) - 60
    listed = _run_git(
        Path(), "log", "--all", "--reflog", f"--since={since}", "--reverse", "--format=%H%x00%at %ae%x00%s"
    )
    rows = [row.split("\0") for row in listed.splitlines() if row.count("\0") == 2]
    alike = {sha: subject for sha, whose, subject in rows if whose == about and sha != blamed.commit}
    named = [sha for sha, subject in alike.items() if subject == blamed.subject]
    return named or (list(alike) if len(alike) == 1 else [])


def _squashed_from(blamed: BlamedLine) -> list[str]:
    """The commits behind the line in a history that git still has, where the file ended with the very same content: of several
    commits that became one, the one that wrote the line."""
    if not blamed.number:
        return []
    root = Path(_run_git(Path(), "rev-parse", "--show-toplevel").strip())
    path = blamed.was or blamed.path
    content = _run_git(root, "rev-parse", f"{blamed.commit}:{path}").strip()
    same = _run_git(root, "log", "--all", "--reflog", f"--find-object={content}", "--format=%H").split()
    lines = (f"-L{blamed.number},{blamed.number}", "--no-textconv", "--porcelain", "-w")
    behind = []
    for commit in [one for one in same if one != blamed.commit][:MOST_REWRITTEN]:
        # A commit that took this content away has another one.
        if _run_git(root, "rev-parse", f"{commit}:{path}", missing_ok=True).strip() == content:
            behind.append(
                _run_git(root, "blame", *lines, commit, "--", path, filters=_git_filters(str(root))).split(" ", 1)[0]
            )
    return list(dict.fromkeys(behind))


def _git_filters(root: str) -> list[str]:
    """Programs that the repository's own config names for its files: none of them runs for a question."""
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
