"""Reads from the log what changed in a worktree, call by call, and chooses what an undo is about. Pure of the disk."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event
from holdfast.core.kinds import ToolPayload
from holdfast.core.kinds.workspace_events import FileChange, WorkspaceChanged
from holdfast.core.ports import EventQuery, Reader
from holdfast.core.times import DAY, parse_moment

PAGE, MOST_EVENTS = 500, 50_000


class Step(msgspec.Struct, frozen=True):
    """What happened to files, by one call, one undo, or somebody else."""

    seq: int
    at: int
    session: str
    by: str
    of: str
    call: str
    tool: str
    since: str
    files: tuple[FileChange, ...]


class Request(msgspec.Struct, kw_only=True, frozen=True):
    """What somebody wants to take back. Without anything: the last call that changed files."""

    call: str = ""
    """A call's id, or the number of one of its events."""
    session: str = ""
    turn: bool = False
    """Only the session's latest turn."""
    to: str = ""
    """A time, or the number of an event: everything since then."""
    paths: tuple[str, ...] = ()
    """Relative to the root; files and folders."""
    own: str = ""
    """The session of the agent that asks."""


class Chosen(msgspec.Struct, frozen=True):
    what: str
    session: str
    """Whose calls these are, if they are one session's."""
    steps: tuple[Step, ...]
    later: tuple[Step, ...]
    """What happened since the first of them and is not chosen."""


class Target(msgspec.Struct, frozen=True):
    path: str
    id: str
    mode: int
    later: tuple[str, ...] = ()
    """Who changed the file again afterwards."""
    runs: tuple[tuple[str, str], ...] = ()
    """The file before and after each run of chosen changes, oldest first."""


def read_steps(reader: Reader, root: str, now: int, days: int) -> list[Step]:
    """Oldest first."""
    return list(_merged(_changes(reader, root, now - days * DAY)))


def _changes(reader: Reader, root: str, since: int) -> Iterator[tuple[Event, WorkspaceChanged]]:
    after = 0
    for _page in range(MOST_EVENTS // PAGE):
        query = EventQuery(kinds=(WorkspaceChanged.KIND,), since=since, after=after, limit=PAGE)
        page = reader.events(query)
        for event in page:
            after = event.seq
            if isinstance(event.data, WorkspaceChanged) and event.data.root == root:
                yield event, event.data
        if len(page) < PAGE:
            return


def _merged(changes: Iterable[tuple[Event, WorkspaceChanged]]) -> Iterator[Step]:
    """Several events of one call are one step."""
    step: Step | None = None
    for event, data in changes:
        if step and data.of and step.of == data.of:
            step = msgspec.structs.replace(step, files=(*step.files, *data.files))
            continue
        if step:
            yield step
        files = tuple(data.files)
        step = Step(event.seq, event.at, event.session, data.by, data.of, data.call, event.tool, data.since, files)
    if step:
        yield step


def choose(steps: Sequence[Step], request: Request, reader: Reader, now: int) -> Chosen:
    if request.to or (request.paths and not (request.call or request.session)):
        return _chosen_since(steps, request, reader, now)
    what, wanted = _selector(steps, request, reader)
    chosen = [step for step in steps if wanted(step)]
    if not chosen:
        raise CommandRefused(f"{what} changed no file that Holdfast knows of", fix="See: holdfast undo --list")
    return _as_chosen(what, steps, chosen, request)


def _selector(steps: Sequence[Step], request: Request, reader: Reader) -> tuple[str, Callable[[Step], bool]]:
    if request.call:
        call = _call_of(reader, request.call)
        return f"call {request.call}", lambda step: call in (step.call, step.of, str(step.seq))
    acting = [step for step in steps if step.by != "other" and (not request.own or step.session == request.own)]
    if request.session or request.turn:
        session = request.session or (acting[-1].session if acting else "")
        first = _turn_start(reader, session) if request.turn else 0
        what = f"the latest turn of session {session[:8]}" if request.turn else f"session {session[:8]}"
        # By when the calls began: their changes reach the log a moment later.
        began = reader.seqs_of_keys({step.of for step in steps if step.session == session and step.of})
        return what, lambda step: bool(session) and step.session == session and began.get(step.of, step.seq) > first
    last = acting[-1] if acting else None
    what = "the last undo" if last and last.by == "undo" else "the last call"
    # Another call's changes may lie between its own.
    return what, lambda step: step is last or bool(last and last.of and step.of == last.of)


def _call_of(reader: Reader, named: str) -> str:
    """The id of a call that is named by the number of one of its events."""
    event = reader.event(int(named)) if named.isdecimal() else None
    if event is not None and isinstance(event.data, ToolPayload):
        return event.data.call or named
    if event is not None and isinstance(event.data, WorkspaceChanged):
        return event.data.of or named
    return named


def _turn_start(reader: Reader, session: str) -> int:
    prompts = reader.events(EventQuery(session=session, kinds=("prompt.submitted",), newest=True, limit=1))
    return prompts[-1].seq if prompts else 0


def _chosen_since(steps: Sequence[Step], request: Request, reader: Reader, now: int) -> Chosen:
    if not request.to:
        # One file without a moment: its latest change.
        last = next((one for one in reversed(steps) if _of_paths([one], request.paths)), None)
        if last is None:
            raise CommandRefused("no change of this file is on record", fix="See: holdfast undo --list")
        return _as_chosen("the last change", steps, [last], request)
    since = is_after(request.to, steps, reader, now)
    chosen = [step for step in steps if since(step)]
    return _as_chosen(f"everything since {request.to}", steps, chosen, request)


def is_after(moment: str, steps: Sequence[Step], reader: Reader, now: int) -> Callable[[Step], bool]:
    """Whether a step came after a time, or after an event. Files are captured by another clock than hooks are stamped
    with, so the order of calls decides where it is known."""
    if not moment.isdecimal() or len(moment) > 11:
        at = parse_moment(moment, now)
        return lambda step: step.at > at
    event = reader.event(int(moment))
    if event is None:
        raise CommandRefused(f"there is no event {moment}", fix="See: holdfast event list")
    begun = reader.seqs_of_keys({step.since for step in steps if step.since})
    began_here, seq, at = event.key in begun, event.seq, event.at

    def after(step: Step) -> bool:
        return begun.get(step.since, 0) >= seq or (not began_here and step.at > at)

    return after


def _as_chosen(what: str, steps: Sequence[Step], chosen: Sequence[Step], request: Request) -> Chosen:
    chosen = _of_paths(chosen, request.paths) if request.paths else list(chosen)
    sessions = {step.session for step in chosen}
    first = chosen[0].seq if chosen else 0
    seqs = {step.seq for step in chosen}
    later = tuple(step for step in steps if step.seq > first and step.seq not in seqs)
    named = f" in {', '.join(request.paths)}" if request.paths else ""
    return Chosen(what + named, sessions.pop() if len(sessions) == 1 else "", tuple(chosen), later)


def _of_paths(steps: Iterable[Step], paths: Sequence[str]) -> list[Step]:
    of_paths = []
    for step in steps:
        files = tuple(one for one in step.files if any(_is_in(one.path, path) for path in paths))
        if files:
            of_paths.append(msgspec.structs.replace(step, files=files))
    return of_paths


def _is_in(path: str, folder: str) -> bool:
    return path == folder or folder in ("", ".") or path.startswith(f"{folder.rstrip('/')}/")


def targets(chosen: Chosen) -> list[Target]:
    """How each file was before the first chosen change."""
    made: dict[str, list[tuple[int, FileChange]]] = {}
    for step in chosen.steps:
        for change in step.files:
            made.setdefault(change.path, []).append((step.seq, change))
    others: dict[str, dict[int, str]] = {}
    for step in chosen.later:
        for change in step.files:
            others.setdefault(change.path, {})[step.seq] = step.session or "a person"
    return [_target(path, changes, others.get(path, {})) for path, changes in sorted(made.items())]


def _target(path: str, changes: Sequence[tuple[int, FileChange]], others: Mapping[int, str]) -> Target:
    """`others`: who else changed the file, by the number of the step."""
    runs: list[tuple[int, str, str]] = []
    for seq, change in changes:
        if runs and not any(runs[-1][0] < other < seq for other in others):
            runs[-1] = (seq, runs[-1][1], change.after)
        else:
            runs.append((seq, change.before, change.after))
    later = dict.fromkeys(who for seq, who in others.items() if seq > runs[0][0])
    first = changes[0][1]
    return Target(path, first.before, first.was, tuple(later), tuple((before, after) for _, before, after in runs))


def between(steps: Sequence[Step], first: str, second: str, reader: Reader, now: int) -> list[FileChange]:
    """Each file that differs between two moments, with its content at both; the second may be empty for now."""
    since = is_after(first, steps, reader, now)
    until = is_after(second, steps, reader, now) if second else lambda _step: False
    seen: dict[str, FileChange] = {}
    for step in steps:
        if since(step) and not until(step):
            for change in step.files:
                known = seen.get(change.path, change)
                seen[change.path] = FileChange(
                    path=change.path, before=known.before, was=known.was, after=change.after, mode=change.mode,
                    at=change.at,
                )  # fmt: skip
    return [one for _, one in sorted(seen.items()) if (one.before, one.was) != (one.after, one.mode)]
