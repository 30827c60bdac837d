"""Claude Code's transcripts as the events that its hooks would have been."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import normalise, payload_reader
from holdfast.agents.claude_code.attribution import (
    APPROVED_PLAN,
    CAVEATS,
    CONTINUED,
    INTERRUPTED,
    is_command,
    is_notice,
    is_rejection,
    rejection_words,
    shell_command,
    typed_words,
)
from holdfast.agents.claude_code.forks import copied_ids
from holdfast.agents.claude_code.hooks import TABLES, add_ending
from holdfast.agents.claude_code.transcript import SUBAGENTS, Attachment, Line, ToolUseResult, decode, find_files
from holdfast.agents.claude_code.usage import READER, statement_of
from holdfast.agents.history import read_lines, text_of, whole_output
from holdfast.agents.source import key_of, merge_by_time, session_name
from holdfast.analysis.transcripts import Follower, Found, Importer, ImportLocation, Skipped, Transcripts
from holdfast.analysis.usage.events import usage_event
from holdfast.analysis.usage.model import parse_milliseconds
from holdfast.analysis.usage.reader import Position, record_of
from holdfast.core.event import Event
from holdfast.core.ids import bounded_name
from holdfast.core.kinds.agent_events import PLAN, PermissionDenied, PromptSubmitted

NAME = "claude-code"
MESSAGES = ("user", "assistant")
IMPORTED, WORKING, LEFT = "import", "import-working", "import-exit"
"""How an imported session ends, as far as its file shows."""
EXITS = ("/exit", "/quit")
UNREPORTED = ("session.titled", "session.pull_request", "turn.interrupted")
TITLES = ("summary", "ai-title", "custom-title")
"""Records with a title of the session, in ascending priority."""


def find_transcripts(location: ImportLocation) -> Iterable[Path]:
    """A subagent's transcript is read with that of its session; alone only where that is gone."""
    transcripts = find_files(location.home)
    return [path for path in transcripts if path.parent.name != SUBAGENTS or not _session_file(path).exists()]


def _session_file(subagent: Path) -> Path:
    folder = subagent.parent.parent
    return folder.with_name(folder.name + ".jsonl")


def read_transcript(path: Path, _place: ImportLocation) -> Iterator[Found]:
    subagents = sorted((path.with_suffix("") / SUBAGENTS).glob("*.jsonl"))
    folders: dict[str, str] = {}
    return merge_by_time(_read_file(one, folders) for one in (path, *subagents))


def _read_file(path: Path, folders: dict[str, str]) -> Iterator[Found]:
    transcript, copied = _Transcript(path, folders), copied_ids(path)

    def take(line: bytes, number: int) -> Iterator[Found]:
        record = decode(line)
        if record.type not in MESSAGES:
            yield from transcript.read_other(record)
            yield Skipped(str(path), record.type or "no type", expected=True)
        elif record.message is None or not record.session_id or not record.uuid:
            yield Skipped(f"{path}:{number}", "a message without session, id or text")
        elif record.uuid in copied:
            yield Skipped(str(path), "copied from the session it was forked from", expected=True)
        else:
            yield from transcript.read_entry(record)
            yield from transcript.spent(record)

    return read_lines(path, take, transcript.close)


def follow_transcript(path: str) -> Follower:
    transcript = _Transcript(Path(path))

    def take(line: bytes) -> Iterator[Event]:
        record = decode(line)
        if record.type not in MESSAGES:
            yield from filter(_is_unreported, transcript.read_other(record))
            yield from transcript.title_event()
        elif record.message is not None and record.session_id and record.uuid:
            yield from filter(_is_unreported, transcript.read_entry(record))

    return take


def _is_unreported(event: Event) -> bool:
    """Claude Code runs no hook for it. The refusals of its classifier have one."""
    data = event.data
    if isinstance(data, PromptSubmitted):
        return data.source in ("queue", "rejection", "shell")
    return event.kind in UNREPORTED or (isinstance(data, PermissionDenied) and is_rejection(data.reason))


@dataclass
class _Transcript:
    path: Path
    folders: dict[str, str] = field(default_factory=dict)
    """Where each session began: its project, also after `cd` and in its subagents."""
    begun: bool = False
    last: Line | None = None
    answer: str = ""
    turn: str = ""
    at: int = 0
    awaited: bool = False
    """The model or a tool has to answer."""
    exited: bool = False
    """The person typed `/exit` last."""
    caveat: bool = False
    """The record before said that a command of Claude Code itself follows."""
    calls: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    position: Position = field(default_factory=lambda: Position(""))
    queued: list[Line] = field(default_factory=list)
    """What the person typed while the agent worked, until it is part of the conversation."""
    taken: list[Line] = field(default_factory=list)
    """Queued prompts that left the queue; older versions do not record them again."""
    told: set[str] = field(default_factory=set)
    """Texts of queued prompts that are events already."""
    ends: Counter[str] = field(default_factory=Counter)
    title: tuple[int, str] = (0, "")
    titled: str = ""
    summaries: dict[str, str] = field(default_factory=dict)
    trigger: Any = None
    """Of the compaction whose summary comes next."""

    def spent(self, line: Line) -> Iterator[Event]:
        statement = statement_of(line, self.position)
        record = statement and record_of(NAME, statement, self.position)
        if record:
            yield usage_event(msgspec.structs.replace(record, turn=self.turn), imported=NAME)

    def read_entry(self, record: Line) -> Iterator[Event]:
        if not self.begun:
            self.begun = True
            yield self._event(record, "subagent.started" if record.agent_id else "session.started", source="import")
        if taken := self._take():
            yield from self._queued_prompts(taken)
        parts = record.message.parts() if record.message else []
        yield from self._user(record, parts) if record.type == "user" else self._assistant(record, parts)
        self.last = record
        self._note_title(0, self.summaries.get(record.uuid))
        yield from self.title_event()

    def read_other(self, record: Line) -> Iterator[Event]:
        if record.type == "queue-operation":
            self._queue(record)
        elif record.type == "attachment" and record.attachment and self.begun:
            yield from self._attached(record, record.attachment)
        elif record.type in TITLES:
            self._read_title(record)
        elif record.type == "system" and self.begun:
            yield from self._system(record)
        elif record.type == "pr-link" and self.begun and (url := _web_address(record.pr_url)):
            yield self._event(self._placed(record, f"pr/{url}"), "session.pull_request", url=url)

    def _system(self, record: Line) -> Iterator[Event]:
        if record.subtype == "compact_boundary":
            self.trigger = record.compact_metadata.trigger if record.compact_metadata else None
        elif record.subtype == "turn_duration":
            # Written when the turn is over, hooks and background work included.
            yield from self._turn_over(marker=self._placed(record))

    def _read_title(self, record: Line) -> None:
        if isinstance(record.summary, str) and isinstance(record.leaf_uuid, str):
            self.summaries[record.leaf_uuid] = record.summary
        ends_here = self.last is not None and record.leaf_uuid == self.last.uuid
        named = record.custom_title or record.ai_title or (record.summary if ends_here else None)
        self._note_title(TITLES.index(record.type), named)

    def _queue(self, record: Line) -> None:
        if record.operation == "enqueue":
            if typed_words(_queued_text(record)):
                self.queued.append(record)
        elif record.operation == "remove" and self.queued:
            self.taken.append(self.queued.pop(0))
        elif record.operation == "popAll":
            self.queued.clear()  # Back in the person's hands, to be changed and sent later.

    def _attached(self, record: Line, attachment: Attachment) -> Iterator[Event]:
        if attachment.type == "queued_command" and attachment.command_mode in (None, "prompt"):
            words = typed_words(text_of(attachment.prompt))
            if words and not self._is_told(words):
                yield from self._words(self._placed(record), words, "queue")

    def _is_told(self, words: str) -> bool:
        """A queued prompt is recorded up to three times: in the queue, as an attachment, as a message, with other white
        space around the name of a command."""
        words = _on_one_line(words)
        for waiting in (self.queued, self.taken):
            waiting[:] = [one for one in waiting if _on_one_line(typed_words(_queued_text(one))) != words]
        told = words in self.told
        self.told.discard(words)
        return told

    def _take(self) -> list[Line]:
        taken, self.taken = self.taken, []
        return taken

    def _queued_prompts(self, records: Iterable[Line]) -> Iterator[Event]:
        for record in records:
            words = typed_words(_queued_text(record))
            self.told.add(_on_one_line(words))
            digest = key_of(words)[:16]
            placed = self._placed(record, f"queued/{record.timestamp}/{digest}")
            yield from self._words(placed, words, "queue")

    def _placed(self, record: Line, ident: str = "") -> Line:
        """Records that are no messages name no folder and no branch."""
        place = self.last or record
        return msgspec.structs.replace(
            record,
            uuid=ident or record.uuid,
            session_id=record.session_id or place.session_id,
            agent_id=place.agent_id,
            cwd=record.cwd or place.cwd,
            git_branch=record.git_branch or place.git_branch,
        )

    def _note_title(self, weight: int, title: Any) -> None:
        if isinstance(title, str) and title.strip() and weight >= self.title[0]:
            self.title = weight, title

    def title_event(self) -> Iterator[Event]:
        title = self.title[1]
        if title and title != self.titled and self.last and not self.last.agent_id:
            self.titled = title
            record = msgspec.structs.replace(self.last, uuid=f"title/{key_of(title)[:16]}")
            yield self._event(record, "session.titled", title=normalise.cap_text(title, normalise.NAME))

    def _user(self, record: Line, parts: list[Any]) -> Iterator[Event]:
        results = _parts_of(parts, "tool_result")
        self.awaited = self.awaited or bool(results)
        for n, part in enumerate(results):
            yield self._result(record, part, n)
        text = "\n".join(str(part.get("text")) for part in _parts_of(parts, "text"))
        after_caveat = self.caveat
        self.caveat = bool(record.is_meta) and text.startswith(CAVEATS)
        if text.startswith(INTERRUPTED):
            yield from self._turn_over("turn.interrupted", record)
            return
        yield from self._rejection_prompts(record, results)
        if text and not record.is_meta:  # Meta messages are Claude Code's own.
            yield from self._message(record, text, after_caveat)

    def _message(self, record: Line, text: str, after_caveat: bool) -> Iterator[Event]:
        if record.is_compact_summary or text.startswith(CONTINUED):
            trigger, self.trigger = self.trigger, None
            told = {"trigger": trigger} if trigger in ("auto", "manual") else {}
            yield self._event(record, "compact.ended", summary=normalise.cap_text(text, normalise.PROMPT), **told)
        elif is_notice(text):
            yield from self._prompt(record, text, synthetic=True)
        elif command := shell_command(text):
            yield self._event(record, "prompt.submitted", prompt=f"! {command}", source="shell", synthetic=True)
        elif is_command(text) and (after_caveat or typed_words(text) in EXITS):
            self.exited = typed_words(text) in EXITS
            self._is_told(typed_words(text))  # It may have waited in the queue.
        elif (words := typed_words(text)) and not self._is_told(words):
            yield from self._prompt(record, words)

    def _rejection_prompts(self, record: Line, results: list[Mapping[str, Any]]) -> Iterator[Event]:
        """The reason that a person gives for a rejection is what they say next."""
        for n, part in enumerate(results):
            words = rejection_words(normalise.output_text(part.get("content"))) if part.get("is_error") else ""
            if words:
                yield from self._words(record, words, "rejection", n)

    def _words(self, record: Line, words: str, source: str, n: int = 0) -> Iterator[Event]:
        """What a person says while the agent works belongs to the turn that goes on."""
        if not self.turn:
            yield from self._prompt(record, words, n)
        else:
            prompt = normalise.cap_text(words, normalise.PROMPT)
            yield self._event(record, "prompt.submitted", n, prompt=prompt, source=source)

    def _prompt(self, record: Line, prompt: str, n: int = 0, *, synthetic: bool = False) -> Iterator[Event]:
        yield from self._turn_over()
        self.turn, self.exited = record.prompt_id or record.uuid, False
        self.awaited = True
        data: dict[str, Any] = {"prompt": normalise.cap_text(prompt, normalise.PROMPT)}
        if synthetic:
            data["synthetic"] = True
        elif prompt.startswith(APPROVED_PLAN):
            data["source"] = PLAN
        yield self._event(record, "prompt.submitted", n, **data)

    def _assistant(self, record: Line, parts: list[Any]) -> Iterator[Event]:
        self.awaited = {part.get("type") for part in map(normalise.mapping_or_empty, parts)} != {"text"}
        for n, part in enumerate(map(normalise.mapping_or_empty, parts)):
            if part.get("type") == "text" and isinstance(part.get("text"), str):
                self.answer = part["text"]
            elif part.get("type") == "tool_use" and isinstance(part.get("id"), str):
                name = part.get("name") if isinstance(part.get("name"), str) else ""
                data = self._tool(record, name, part.get("input"))
                self.calls[part["id"]] = (str(name), data)
                yield self._event(record, "tool.started", n, tool=str(name), call=part["id"], **data)

    def _tool(self, record: Line, name: Any, tool_input: Any) -> dict[str, Any]:
        data: dict[str, Any] = {"cwd": record.cwd or ""}
        payload_reader.add_tool(TABLES, data, {"tool_name": name, "tool_input": tool_input})
        return data

    def _result(self, record: Line, part: Any, n: int) -> Event:
        call = part.get("tool_use_id") if isinstance(part.get("tool_use_id"), str) else ""
        tool, data = self.calls.pop(call, ("", {"action": "other"}))
        reason = normalise.output_text(part.get("content"))[: normalise.ERROR]
        if record.tool_denial_kind or (part.get("is_error") is True and is_rejection(reason)):
            return self._event(record, "permission.denied", n, tool=tool, call=call, reason=reason, **data)
        if part.get("is_error") is True:
            data = {**data, "error": reason}
            payload_reader.mark_failed(data, reason)
            failed = self._event(record, "tool.failed", n, tool=tool, call=call, **data)
            return msgspec.structs.replace(failed, body=whole_output(data, text_of(part.get("content")), "error"))
        return self._finished(record, (call, tool, data), part, n)

    def _finished(self, record: Line, made: tuple[str, str, dict[str, Any]], part: Any, n: int) -> Event:
        call, tool, data = made
        ending = record.ending()
        output = _output_of(ending) or part.get("content")
        data = {**data, "ok": True}
        payload_reader.add_output(data, output)
        if ending is not None:
            add_ending(data, tool, msgspec.to_builtins(ending))
        finished = self._event(record, "tool.finished", n, tool=tool, call=call, **data)
        return msgspec.structs.replace(finished, body=whole_output(data, output if ending else text_of(output)))

    def _turn_over(self, kind: str = "turn.ended", marker: Line | None = None) -> Iterator[Event]:
        """`marker`: the record that says so; without one the turn ended with the last record."""
        if self.turn and self.last:
            place = marker or self.last
            kind = "subagent.ended" if self.last.agent_id else kind
            said = {"message": normalise.cap_text(self.answer, normalise.MESSAGE)} if kind != "turn.interrupted" else {}
            if self.last.is_api_error_message and kind == "turn.ended":
                kind, said = "turn.failed", {"error": normalise.cap_text(self.answer, normalise.ERROR)}
            # Two prompts may follow the same record; the turn between them is empty.
            n = self.ends[place.uuid]
            self.ends[place.uuid] += 1
            yield self._event(place, kind, n, **said)
        self.turn, self.answer = "", ""

    def close(self) -> Iterator[Event]:
        """A transcript that goes on is imported further next time."""
        if self.last:
            yield from self._queued_prompts([*self._take(), *self.queued])
            yield from self.title_event()
            if self.last.agent_id:
                yield from self._turn_over()
                return
            how = self._how_it_ends()
            if how != WORKING:
                yield from self._turn_over()
            yield self._event(self.last, "session.ended", reason=how)

    def _how_it_ends(self) -> str:
        if self.exited:
            return LEFT
        return WORKING if self.turn and self.awaited else IMPORTED

    def _time_of(self, record: Line) -> int:
        """A record without a readable time has the time of the one before it."""
        self.at = parse_milliseconds(record.timestamp) or self.at
        return self.at

    def _event(self, record: Line, kind: str, n: int = 0, tool: str = "", **data: Any) -> Event:
        session = session_name(record.session_id)
        project = normalise.one_path(record.cwd) or ""
        if project:
            project = self.folders.setdefault(session, project)
        more = {
            "turn": self.turn, "lane": record.agent_id, "branch": record.git_branch, "cwd": record.cwd,
            "model": record.message.model if record.message else None,
            "transcript": None if record.agent_id else str(self.path),
        }  # fmt: skip
        return Event(
            # A line has an id, but may make several events of one kind: `n` tells them apart.
            key=key_of(NAME, session, record.uuid, kind, n),
            kind=kind,
            at=self._time_of(record),
            session=session,
            project=project,
            agent=NAME,
            tool=bounded_name(tool),
            # A call ends in the folder where it began: its result may already name the next one.
            data={**{name: value for name, value in more.items() if value}, **data, "imported": NAME},
        )


def _output_of(ending: ToolUseResult | None) -> Any:
    """Of a command: what it printed, as the hook reports it. The model may have got less of it."""
    return {"stdout": ending.stdout, "stderr": ending.stderr} if ending and (ending.stdout or ending.stderr) else None


def _web_address(url: Any) -> str:
    return url[: normalise.NAME] if isinstance(url, str) and url.startswith("https://") else ""


def _parts_of(parts: list[Any], type_: str) -> list[Mapping[str, Any]]:
    return [part for part in map(normalise.mapping_or_empty, parts) if part.get("type") == type_]


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _queued_text(record: Line) -> str:
    return text_of(record.content)


TRANSCRIPTS = Transcripts(
    importer=Importer(NAME, "Claude Code transcripts", find_transcripts, read_transcript, whole_sessions=True),
    usage=(READER,),
    follow=follow_transcript,
)
