"""The impure side: captures before and after calls, watches in the background, and writes changes into the log."""

import os
import re
import threading
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from holdfast.core.agent import known_agent
from holdfast.core.event import Event, own_event
from holdfast.core.feature import ContentParts, Quotes, Settings, Waiting, WatchCall
from holdfast.core.kinds import TOOL_ENDS, HookPayload, ToolPayload
from holdfast.core.kinds.workspace_events import FileChange, WorkspaceChanged
from holdfast.core.ports import Cipher
from holdfast.features.workspace.content_store import ChangeRow, text_of
from holdfast.features.workspace.losses import describe_losses, note_losses
from holdfast.features.workspace.policy import MAY_DISCARD, MOST_ENDANGERED, discarded_files, spares_committed
from holdfast.features.workspace.recorder import CallInfo, Recorder
from holdfast.features.workspace.restore import finish_open
from holdfast.features.workspace.settings import DEFAULTS
from holdfast.features.workspace.watched_root import WatchedRoot

OBSERVED_KINDS = frozenset(("session.started", "prompt.submitted", "tool.started", "turn.ended", *TOOL_ENDS))
TELLING = frozenset(("tool.started", "turn.ended"))
"""Whose answers have room for a notice."""
READING = frozenset(("read", "search", "web", "todo", "plan", "ask"))
"""What tools do that write no file of the worktree."""
MOST_FILES = 200
"""Files named in one event."""
# As hooks of all agents name the tool; without it the call is treated as one that writes.
_TOOL = re.compile(rb'"(?:tool_name|toolName|tool)"\s*:\s*"([^"\\]{1,200})"')

_CALL = re.compile(rb'"(?:tool_use_id|tool_call_id|call_id)"\s*:\s*"([\w.:|-]{1,200})"', re.ASCII)
_FOLDER = re.compile(rb'"(cwd|file_path|notebook_path|path)"\s*:\s*"(/(?:[^"\\\x00-\x1f]|\\.){0,4000})"')
MOST_NAMED = 5


class Workspace:
    """The recorder of this process, opened when it is first needed."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._state_dir = Path()
        self._opening = threading.Lock()

    def recorder(self, state_dir: Path, cipher: Cipher | None = None) -> Recorder:
        # The first hook and the watcher ask at the same time: what one of them notes the other has to know.
        with self._opening:
            if self._recorder is None or self._state_dir != state_dir:
                if self._recorder is not None:
                    self._recorder.close()
                self._recorder, self._state_dir = Recorder(state_dir, cipher), state_dir
            return self._recorder

    # ── hooks ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def before_answer(self, waiting: Waiting) -> bool:
        if _only_reads(waiting.agent, waiting.body):
            return False
        settings = waiting.settings() or DEFAULTS
        if not settings.snapshots:
            return False
        recorder = self.recorder(waiting.state_dir, waiting.cipher)
        if waiting.kind == "turn.ended":
            return recorder.has_loss(waiting.body)
        named = _CALL.search(waiting.body)
        native = named[1].decode() if named else ""
        if waiting.kind in TOOL_ENDS:
            # What happens after the answer is not the call's any more.
            if native:
                recorder.end(native=native)
            return False
        files, folder = _named_paths(waiting.body)
        folders = dict.fromkeys((folder, *map(os.path.dirname, files), waiting.folder))
        roots = {root.root: root for one in folders if one and (root := recorder.root_for(one, settings)) is not None}
        if not roots:
            return False
        recorder.before_call(list(roots.values()), waiting.key, native)
        if MAY_DISCARD.search(waiting.body) and any(one.files for one in roots.values()):
            return True
        return recorder.has_news(waiting.body) or recorder.may_overwrite(roots.values(), files, waiting.body)

    def enrich(self, event: Event, settings: Settings, _parts: ContentParts) -> bool:
        data, recorder = event.data, self._recorder
        settings = settings or DEFAULTS
        if recorder is None or not isinstance(data, HookPayload) or data.imported or not settings.snapshots:
            return False
        if event.kind in TELLING and not data.lane:
            data.discarded = recorder.take_loss(event.session)
        if event.kind == "turn.ended" and not data.lane:
            recorder.end_turn(event.session)
        root = recorder.root_for(data.cwd, settings)
        if root is not None:
            root.project = event.project or root.root
            if isinstance(data, ToolPayload):
                self._note_use(recorder, root, event, data)
            if isinstance(data, ToolPayload) and data.action not in READING:
                self._note_call(recorder, event, data)
                if event.kind in TOOL_ENDS:
                    recorder.end(session=event.session, call=data.call)
        return False

    def _note_use(self, recorder: Recorder, root: WatchedRoot, event: Event, data: ToolPayload) -> None:
        recorder.use(event.session, [path for path in (data.path, *data.paths) if path.startswith("/")])
        if event.kind != "tool.started" or data.action in READING:
            return
        news = recorder.take_news(event.session)
        data.changed_by = {text_of(path): by for path, by in news.items()}
        root.sessions.add(event.session)
        if data.action == "edit" and root.files:
            data.endangered = recorder.overwritten(root, event.session, [data.path, *data.paths])[:MOST_ENDANGERED]
        elif data.action == "shell" and root.files:
            folder = os.path.realpath(data.cwd)
            if named := [_real_path(one) for one in discarded_files(data.command, folder)]:
                data.endangered = recorder.endangered(
                    root, event.session, named=named, new_only=spares_committed(data.command)
                )[:MOST_ENDANGERED]

    def _note_call(self, recorder: Recorder, event: Event, data: ToolPayload) -> None:
        if event.kind == "tool.started":
            paths = [data.path, *data.paths] if data.action == "edit" else []
            facts = {"session": event.session, "call": data.call, "agent": event.agent, "tool": event.tool}
            recorder.begin(event.key, lane=data.lane, paths=[path for path in paths if path], **facts)

    def erase(self, state_dir: Path, cipher: Cipher | None, quotes: Quotes, projects: Sequence[str]) -> int:
        return self.recorder(state_dir, cipher).erase(quotes, projects)

    # ── in the background ──────────────────────────────────────────────────────────────────────────────────────────

    def watch(self, call: WatchCall) -> None:
        if not (call.settings("") or DEFAULTS).snapshots:
            return
        recorder = self.recorder(call.state_dir, call.cipher)
        finish_open(recorder.store, call.state_dir)

        def emit(rows: list[ChangeRow]) -> None:
            events = changed_events(recorder, rows)
            call.handle(lambda: events)

        recorder.run(call.stopping, emit, call.report)
        recorder.close()


def _named_paths(body: bytes) -> tuple[list[str], str]:
    """The files that the call names, and the folder where it runs."""
    files, folder = [], ""
    for key, value in _FOLDER.findall(body)[:MOST_NAMED]:
        path = str(msgspec.json.decode(b'"' + value + b'"'))
        if key == b"cwd":
            folder = path
        else:
            files.append(path)
    return files, folder


def _real_path(path: str) -> str:
    """Where a file is, without following it: removing a link leaves what it points at."""
    folder, name = os.path.split(os.path.expanduser(path))
    return os.path.join(os.path.realpath(folder), name)


def _only_reads(agent: str, body: bytes) -> bool:
    named, known = _TOOL.search(body), known_agent(agent)
    return bool(named and known and known.tools.get(named[1].decode("utf-8", "replace")) in READING)


def changed_events(recorder: Recorder, rows: Sequence[ChangeRow]) -> list[Event]:
    """One event for each call and worktree, in the order in which things happened."""
    events = []
    for (root, token, _since), run in groupby(rows, key=lambda row: (row.root, row.call, row.since)):
        several = list(run)
        for start in range(0, len(several), MOST_FILES):
            events.append(_changed_event(recorder, root, token, several[start : start + MOST_FILES]))
    return events


def _changed_event(recorder: Recorder, root: str, token: str, rows: Sequence[ChangeRow]) -> Event:
    info = recorder.calls.get(token) or CallInfo(token, (), rows[0].at, by="call" if token else "other")
    watched = recorder.roots.get(root)
    files = [
        FileChange(path=text_of(row.path), before=row.before, after=row.after, was=row.was, mode=row.mode, at=row.at,
                   owner=row.owner)
        for row in rows
    ]  # fmt: skip
    if watched is not None:
        note_losses(recorder.store, watched.place, files, info.session)
        if losing := [one.lost for one in files if one.lost]:
            recorder.note_loss(info.session, _describe_loss(sum(losing), len(losing), info.call))
    payload = WorkspaceChanged(
        root=text_of(root), repo=text_of(watched.place.shared) if watched else "", by=info.by, call=info.call, of=token,
        since=rows[0].since, tool=info.tool, lane=info.lane, files=files,
    )  # fmt: skip
    event = own_event(
        payload, rows[-1].at, session=info.session, project=watched.project if watched else root, agent=info.agent,
        once=f"{rows[0].at}.{rows[0].seq}-{rows[-1].seq}",
    )  # fmt: skip
    return msgspec.structs.replace(event, tool=info.tool)


def _describe_loss(lines: int, files: int, call: str) -> str:
    named = f" --call {call}" if call else ""
    return f"{describe_losses(lines, files)} discarded; restore: holdfast undo{named}"


WORKSPACE = Workspace()
