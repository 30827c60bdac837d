"""Which session and turn made a commit or a line: by what git showed when it was made, and by what edits wrote."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.feature import Call
from holdfast.core.kinds import TURN_ENDS
from holdfast.core.kinds.agent_events import PromptSubmitted
from holdfast.core.kinds.check_events import GitActed
from holdfast.core.ports import EventQuery, Reader
from holdfast.features.project.state import COMMIT, CommitOrigin

MADE_BY = frozenset(("commit", "cherry-pick", "revert", "am", "rebase"))
"""A merge or a pull may only bring in commits of others."""
# Events in a page, pages, turns, characters of a text, turns of work shown.
PAGE, MAX_PAGES, MAX_TURNS, MAX_TEXT, MAX_WORK = 500, 20, 5_000, 2_000, 5
SHORTEST_LINE = 4
"""A bracket or a `pass` is written everywhere: it says nothing."""
DEEPEST = 6
INPUTS = ("tool_input", "toolArgs", "tool_args", "args", "input", "parameters")
OLD_TEXTS = frozenset(("old_string", "old_str", "oldString", "oldText", "old_text"))


def commits_of(event: Event) -> list[str]:
    data: GitActed = event.data
    return data.commits if data.verb in MADE_BY else []


def reduce_commit(doc: CommitOrigin | None, event: Event, sha: str) -> CommitOrigin:
    """The first to show it made it: later ones only met it."""
    data: GitActed = event.data
    return doc or CommitOrigin(
        sha=sha, project=event.project, at=event.at, seq=data.of or event.seq, verb=data.verb,
        session="" if data.outside else event.session, branch=data.after.branch,
    )  # fmt: skip


class Turn(msgspec.Struct, kw_only=True):
    """`reason` is what the agent said at the turn's end; empty where it did not come to that."""

    session: str
    agent: str = ""
    number: int = 0
    at: int = 0
    prompt: str = ""
    reason: str = ""


class Origin(msgspec.Struct, kw_only=True):
    """`how`: `edit` (a recorded edit wrote this very line), `commit` (the turn that committed it), or empty: unknown."""

    how: str = ""
    turn: Turn | None = None
    commit: CommitOrigin | None = None
    work: list[Turn] = []
    """Turns that edited what went into the commit, where it is asked for and others than the one that made it."""
    why_unknown: str = ""


def show_origin(call: Call) -> dict[str, Any]:
    """Of a commit (`commit`: its whole id), and of a line of it or of the work at hand (`path`, its name in the commit
    as `was`, `text`)."""
    sha, path, was, text = (str(call.args.get(name) or "") for name in ("commit", "path", "was", "text"))
    if not (sha or path):
        raise CommandRefused("there is neither a commit nor a file", fix="holdfast blame FILE:LINE")
    paths = [name for name in dict.fromkeys((path, was)) if name]
    origin: dict[str, Any] = msgspec.to_builtins(find_origin(call.reader, call.project, sha, paths, text))
    return origin


def find_origin(reader: Reader, project: str, sha: str, paths: Sequence[str], text: str) -> Origin:
    commit = COMMIT.load(reader, sha) if sha else None
    if edit := _edit_of(reader, project, paths, text.strip(), commit):
        return Origin(how="edit", turn=turn_at(reader, edit), commit=commit)
    if commit is None or not commit.session:
        return Origin(commit=commit, why_unknown=_why_unknown(sha, commit))
    event = reader.event(commit.seq)
    turn = turn_at(reader, event) if event else None
    # The committing turn itself is shown already.
    work = [one for one in _work_before(reader, commit) if turn is None or one.number != turn.number]
    return Origin(how="commit", turn=turn, commit=commit, work=work)


def _work_before(reader: Reader, commit: CommitOrigin) -> list[Turn]:
    """The session's turns with edits since its commit before this one, oldest first."""
    kinds = ("tool.finished", GitActed.KIND)
    query = EventQuery(session=commit.session, kinds=kinds, before=commit.seq, newest=True, limit=PAGE)
    turns: dict[int, Turn] = {}
    for event in sorted(reader.events(query), key=lambda one: -one.seq):
        # Work before the session's previous commit went into that one.
        if event.kind == GitActed.KIND and commits_of(event):
            break
        if event.kind != GitActed.KIND and event.data.action == "edit" and len(turns) < MAX_WORK:
            turn = turn_at(reader, event)
            turns.setdefault(turn.number, turn)
    return [turns[number] for number in sorted(turns)]


def _why_unknown(sha: str, commit: CommitOrigin | None) -> str:
    if commit:
        return "the commit was made outside of a session, in a terminal or by another program"
    return "no session on record made this commit" if sha else "no session on record wrote this line"


def turn_at(reader: Reader, event: Event) -> Turn:
    """The turn an event happened in."""
    turn = Turn(session=event.session, agent=event.agent)
    query = EventQuery(session=event.session, kinds=(PromptSubmitted.KIND,), before=event.seq, limit=MAX_TURNS)
    prompts = [one for one in reader.events(query) if not one.data.synthetic and not one.data.lane]
    if not prompts:
        return turn
    last = prompts[-1]
    turn.agent = turn.agent or last.agent
    turn.number, turn.at, turn.prompt = len(prompts), last.at, last.data.prompt[:MAX_TEXT]
    turn.reason = _end_message(reader, event)
    return turn


def _end_message(reader: Reader, event: Event) -> str:
    """Of this turn only: after the next prompt it is another one's."""
    kinds = (*TURN_ENDS, PromptSubmitted.KIND)
    for one in reader.events(EventQuery(session=event.session, kinds=kinds, after=event.seq, limit=20)):
        if one.kind == PromptSubmitted.KIND and not one.data.synthetic and not one.data.lane:
            return ""
        if one.kind in TURN_ENDS and not one.data.get("lane"):
            return str(one.data.get("message") or "")[:MAX_TEXT]
    return ""


# ── which edit wrote a line ──────────────────────────────────────────────────────────────────────────────────────────


def _edit_of(
    reader: Reader, project: str, paths: Sequence[str], text: str, commit: CommitOrigin | None
) -> Event | None:
    """The newest edit that added the line; where files were only ever written whole, the oldest that has it."""
    if not paths or len(text) < SHORTEST_LINE:
        return None
    whole = None
    for event in _edits_of_file(reader, project, paths, commit.seq + 1 if commit else 0):
        added, replaced = written_texts(event.body)
        if not any(text in one for one in added):
            continue
        if replaced is None:
            # Going back in time: the last one kept here is the oldest whole write that has the line.
            whole = event
        elif not any(text in one for one in replaced):
            return event
    return whole


def _edits_of_file(reader: Reader, project: str, paths: Sequence[str], before: int) -> Iterator[Event]:
    for _ in range(MAX_PAGES):
        query = EventQuery(
            project=project, kinds=("tool.finished",), before=before, newest=True, limit=PAGE, bodies=True
        )
        page = sorted(reader.events(query), key=lambda event: -event.seq)
        yield from (e for e in page if e.data.action == "edit" and _concerns_file(e, project, paths))
        if len(page) < PAGE:
            return
        before = page[-1].seq


def _concerns_file(event: Event, project: str, paths: Sequence[str]) -> bool:
    names = {name for path in paths for name in (path, f"{project.rstrip('/')}/{path}")}
    return not names.isdisjoint(event.data.paths)


def written_texts(body: bytes) -> tuple[list[str], list[str] | None]:
    """(what an edit wrote, what it replaced); None where it wrote the file whole."""
    payload = _decoded(body)
    named = (payload.get(name) for name in INPUTS) if isinstance(payload, Mapping) else ()
    tool_input = next(filter(None, named), None)
    # Some agents send the arguments as JSON within JSON.
    if isinstance(tool_input, str) and tool_input.startswith("{"):
        tool_input = _decoded(tool_input)
    texts = _Texts()
    texts.collect(tool_input)
    return texts.added, texts.replaced if texts.replaced or texts.is_patch else None


def _decoded(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class _Texts:
    """The texts in the arguments of an edit; of a patch only the lines with a plus count."""

    def __init__(self) -> None:
        self.added: list[str] = []
        self.replaced: list[str] = []
        self.is_patch = False

    def collect(self, value: Any, name: str = "", depth: int = 0) -> None:
        if isinstance(value, str):
            self._add_text(value, name)
        elif depth < DEEPEST:
            parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
            for key, inner in parts:
                self.collect(inner, str(key), depth + 1)

    def _add_text(self, text: str, name: str) -> None:
        if "*** Begin Patch" in text or text.startswith(("--- ", "diff ")):
            self.added += [line[1:] for line in text.splitlines() if line.startswith("+")]
            self.is_patch = True
        else:
            (self.replaced if name in OLD_TEXTS else self.added).append(text)
