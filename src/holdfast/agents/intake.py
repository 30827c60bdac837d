"""From a delivery to an event: redacted, capped, read by its agent's adapter, placed in its repository."""

import hashlib
import os
import uuid
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.analysis.redact.native_library import word_search
from holdfast.core.agent import Agent
from holdfast.core.caller import HookOrigins
from holdfast.core.decision import Delivery
from holdfast.core.event import AT_ONCE, BODY_LIMIT, Event
from holdfast.core.kinds import TOOL_ENDS, TURN_ENDS, HookPayload, decode_payload
from holdfast.core.kinds.session_events import TurnAnswerRead
from holdfast.core.machine import boot_id, look_up_process, machine_id
from holdfast.core.ports import GitContext
from holdfast.core.text import CUT_MARK, PrivateWords

decode = msgspec.json.decode
encode = msgspec.json.encode

# Entries in the cache of short texts that were redacted.
SHORT_TEXTS = 1024
# In bytes: only above this a body is bounded before it is searched for secrets.
BOUNDED = 4 << 20
# In characters, of one string of a body that is too large.
LONGEST_STRING = 24 * 1024
LONGEST_LIST = 200
# Levels of nesting; deeper levels are left out.
DEEPEST = 12
PAUSING = ("HOLDFAST_PAUSE", "CLAUDE_SKIP_REQUIREMENTS")
_MEANS_NO = frozenset(("", "0", "no", "false", "off"))

# The namespace of ids we make: another one would give running sessions other ids.
_SESSION_IDS = uuid.UUID("5f6c1d1e-8a55-4c1f-9f0e-6d2b7a1c9e44")
_OF_A_SESSION = frozenset(
    ("session.started", "session.ended", "prompt.submitted", *TOOL_ENDS, *TURN_ENDS, "tool.started")
)

Redact = Callable[[bytes], tuple[bytes, int]]


class Intake:
    """Never raises: a payload that cannot be read becomes an event of kind `unknown`."""

    def __init__(self, agents: Mapping[str, Agent], git_context: GitContext, redact: Redact) -> None:
        self._agents, self._git_context, self._redact = agents, git_context, redact
        # The same branch and the same folder come with every event.
        self._redact_short = lru_cache(SHORT_TEXTS)(lambda text: _redact_string(redact, text))
        self._origins = HookOrigins()
        self._private = PrivateWords(word_search(b"private"))

    def clean(self, delivery: Delivery) -> Delivery:
        """The delivery without secrets and private text, as it may be written to disk."""
        if delivery.cleaned:
            return delivery
        whole = self._private.clean(delivery.body)
        # Before it is cut: no rule recognises half a key.
        body, _, digest = cap_body(self._redact(_bound_body(whole))[0])
        return msgspec.structs.replace(
            delivery,
            body=body,
            cleaned=True,
            whole=max(len(whole), delivery.whole),  # the client may have shortened it
            digest=digest,
            cwd=self._clean_text(delivery.cwd),
            env={name: self._clean_text(value) for name, value in delivery.env.items()},
        )

    def read(self, delivery: Delivery) -> Event:
        delivery = self.clean(delivery)
        event = self._understood(delivery, delivery.body)
        project = self.project(event.project or delivery.cwd)
        data = event.data
        if isinstance(data, HookPayload):
            git = self._git_context.of(data.cwd or delivery.cwd)
            data.branch, data.repo = self._clean_text(git.get("branch", "")), self._clean_text(git.get("repo", ""))
            data.paused = _is_paused(delivery)
            data.claimed = self._origins.is_claim(event.agent, event.session, delivery.ancestors)
            data.project_name = delivery.env.get("CLAUDE_PROJECT", "")[:80]
            data.worktree = "" if git.get("root") == project else git.get("root", "")
        return msgspec.structs.replace(
            event,
            session=event.session or made_session_id(event, delivery),
            project=project,
            body=delivery.body,
            body_size=delivery.whole,
            body_hash=delivery.digest,
        )

    def _clean_text(self, text: str) -> str:
        """Branches, folders and variables of the environment may hold a secret as well."""
        return self._redact_short(text) if text else text

    def project(self, folder: str) -> str:
        """The repository of a folder: a session that begins in a subfolder has the same settings."""
        return self._git_context.root_of(folder) or folder

    def scrub(self, event: Event) -> Event:
        """Redacts an event of our own: its text may quote a person, a file or a program."""
        if not event.data:
            return event
        if isinstance(event.data, TurnAnswerRead):
            event.data.message = self._private.clean_answer(event.session, event.data.message)
        data = self.scrub_fields(_encode_body(event.data))
        # Read back always: reducers must see now what they will see in a replay (lists for tuples, null for NaN).
        return msgspec.structs.replace(event, data=decode_payload(event.kind, event.version, data))

    def scrub_fields(self, fields: bytes) -> bytes:
        """Redacts the fields of an event, as JSON. Thread-safe."""
        return self._redact(self._private.clean_own(fields))[0]

    def _understood(self, delivery: Delivery, body: bytes) -> Event:
        try:
            payload = decode(body)
            if isinstance(payload, dict):
                agent = self._agent(delivery, payload)
                event = agent.read(delivery, payload)
                if isinstance(event.data, HookPayload):
                    event.data.dedupe_key = _dedupe_key(event, agent.mark(event, payload))
                return event
            problem = "the payload is not an object"
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        return unread_event(delivery, problem)

    def _agent(self, delivery: Delivery, payload: dict[str, Any]) -> Agent:
        """Several agents run Claude's hook file: the payload decides, not where the hook was registered."""
        named = self._agents.get(delivery.agent)
        if named and named.recognise(delivery, payload):
            return named
        return next((a for a in self._agents.values() if a.recognise(delivery, payload)), named or self._default())

    def _default(self) -> Agent:
        return next(iter(self._agents.values()))


def _redact_string(redact: Redact, text: str) -> str:
    cleaned, count = redact(text.encode("utf-8", "replace"))
    return cleaned.decode("utf-8", "replace") if count else text


def made_session_id(event: Event, delivery: Delivery) -> str:
    """For a hook without a session id (S4-16): the same for all hooks of one agent in one terminal."""
    if event.kind not in _OF_A_SESSION or not delivery.pid:
        return ""
    try:
        leader = os.getsid(delivery.pid)
    except OSError:
        leader = delivery.pid
    process = look_up_process(leader)
    start = process.start if process else delivery.start
    return str(
        uuid.uuid5(_SESSION_IDS, f"{event.agent}\n{delivery.cwd}\n{machine_id()}\n{boot_id()}\n{leader}\n{start}")
    )


def _dedupe_key(event: Event, mark: str) -> str:
    """Identifies what happened, where the agent reports enough; empty means that it has no duplicates."""
    if not mark or not event.session or event.kind == "unknown":
        return ""
    # With the lane: a subagent may do the same as its session at the same time.
    whole = f"{event.agent}\n{event.session}\n{event.kind}\n{event.get('lane', '')}\n{mark}"
    digest = hashlib.blake2b(whole.encode("utf-8", "replace"), digest_size=9).hexdigest()
    return AT_ONCE + digest if mark[0] == AT_ONCE else digest


def _encode_body(data: Mapping[str, Any]) -> bytes:
    try:
        return encode(data)
    except (TypeError, ValueError):  # a type JSON does not have, or half a surrogate pair
        return encode(_make_writable(data), enc_hook=str)


def _make_writable(value: Any) -> Any:
    """Replaces half surrogate pairs, as in file names and program output: they cannot be encoded."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_make_writable(str(k)): _make_writable(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_make_writable(v) for v in value]
    return value


def unread_event(delivery: Delivery, problem: str) -> Event:
    return Event(
        key=delivery.key,
        kind="unknown",
        at=delivery.at,
        agent=delivery.agent,
        data={"native": delivery.event, "problem": problem[:500], "pid": delivery.pid, "pid_start": delivery.start},
    )


def _is_paused(delivery: Delivery) -> bool:
    """Whether a variable that pauses Holdfast is set to anything but an empty text, 0, no, false or off."""
    values = [delivery.env[name].strip().lower() for name in PAUSING if name in delivery.env]
    return bool(values) and not _MEANS_NO.issuperset(values)


def cap_body(body: bytes) -> tuple[bytes, int, str]:
    """(kept part, length of the whole, its hash if anything was cut). JSON stays JSON."""
    if len(body) <= BODY_LIMIT:
        return body, len(body), ""
    digest = hashlib.sha256(body).hexdigest()
    try:
        shortened = encode(_trim_value(decode(body), DEEPEST))
    except Exception:
        # No JSON: it is cut at the end below.
        shortened = body
    return shortened if len(shortened) <= BODY_LIMIT else _still_too_long(shortened), len(body), digest


def _bound_body(body: bytes) -> bytes:
    """Shortens the strings of a body of many megabytes; `cap_body` cuts them further."""
    if len(body) <= BOUNDED:
        return body
    try:
        return encode(_trim_value(decode(body), DEEPEST, 16 * LONGEST_STRING))
    except Exception:
        return body[: 16 * BODY_LIMIT]


def _still_too_long(body: bytes) -> bytes:
    try:
        # Large fields go as a whole; small ones, such as ids and exit codes, stay.
        return encode({k: v for k, v in decode(body).items() if len(encode(v)) < 2048})
    except Exception:
        return body[:BODY_LIMIT]


def _trim_value(value: Any, depth: int, longest: int = LONGEST_STRING) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else _middle_out(value, longest)
    if isinstance(value, dict):
        items = list(value.items())[:LONGEST_LIST] if depth else []
        # Names are cut too: a body may hold its text in them.
        return {k[:200]: _trim_value(v, depth - 1, longest) for k, v in items}
    if isinstance(value, list):
        return [_trim_value(v, depth - 1, longest) for v in value[:LONGEST_LIST]] if depth else []
    return value


def _middle_out(text: str, longest: int) -> str:
    half = longest // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} {CUT_MARK} …]\n{text[-half:]}"
