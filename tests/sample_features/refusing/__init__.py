"""The smallest feature that does everything: counts tool calls per session and refuses commands that say `forbidden`."""

from holdfast.core.authority import ANYONE
from holdfast.core.decision import Decision, context_decision, deny_decision
from holdfast.core.event import Event
from holdfast.core.feature import Call, CommandResult, Feature, File, JobCall, State
from holdfast.core.ids import delivery_key
from holdfast.core.job import Job
from holdfast.core.ports import Doc, Ref
from holdfast.core.section import Section


class Settings(Section):
    word: str = "forbidden"


def keys(event: Event) -> list[Ref]:
    return [Ref("refusing", event.session)] if event.session else []


def reduce(doc: Doc | None, event: Event, _ref: Ref) -> Doc:
    doc = doc or {"calls": 0, "refused": 0, "echoed": 0, "project": event.project}
    refused = event.kind == "decision.made" and event.get("verdict") == "deny"
    return {
        **doc,
        "calls": doc["calls"] + (event.kind == "tool.started"),
        "refused": doc["refused"] + refused,
        "echoed": doc["echoed"] + (event.kind == "refusing.echoed"),
        "at": event.at,
    }


def decide(state: State, event: Event, settings: Settings) -> Decision | None:
    if event.kind == "tool.started" and settings.word in str(event.get("command", "")):
        calls = (state.get("refusing", event.session) or {}).get("calls", 0)
        return deny_decision(f"“{settings.word}” is not allowed (call {calls}).")
    if event.kind == "session.started":
        return context_decision("refusing", f"Commands with “{settings.word}” are refused.")
    return None


def enqueue(_state: State, event: Event, _settings: Settings) -> list[Job]:
    if event.kind == "turn.ended":
        return [Job(kind="refusing.echo", dedupe=event.session, payload={"session": event.session})]
    return []


def echo(call: JobCall) -> list[Event]:
    said = call.run(["echo", call.job.payload["session"]]).out.decode().strip()
    return [Event(key=delivery_key(call.now), kind="refusing.echoed", at=call.now, session=said)]


def reset(call: Call) -> CommandResult:
    key = delivery_key(call.now)
    return CommandResult(
        (Event(key=key, kind="refusing.echoed", at=call.now, session=call.args["session"]),), answer="done"
    )


def show(call: Call) -> Doc | None:
    return call.reader.state(Ref("refusing", call.args["session"]))


def files(ref: Ref, doc: Doc, _settings: Settings) -> list[File]:
    from pathlib import Path

    if not doc.get("project", "").startswith("/"):
        return []
    path = Path(doc["project"]) / "refusing.txt"
    # Hidden from git: else each new count would be a change of the project's content, and no check before it a proof.
    return [File(path, f"{ref.key}: {doc['calls']} calls\n".encode(), hidden=path)]


FEATURE = Feature(
    name="refusing",
    kinds={"refusing.echoed": "a job ran for this session"},
    keys=keys,
    reduce=reduce,
    decide=decide,
    enqueue=enqueue,
    jobs={"refusing.echo": echo},
    commands={"echo": reset},
    authority={"echo": ANYONE},
    views={"show": show},
    files=files,
    settings=Settings,
)
