"""Commands of the gates."""

# Each becomes events.

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from holdfast.core.authority import Surroundings
from holdfast.core.caller import AgentProcess
from holdfast.core.errors import CommandRefused
from holdfast.core.event import Event, own_event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.git_context import locate
from holdfast.core.ids import session_alias
from holdfast.core.kinds import JsonObject, Payload
from holdfast.core.kinds.gates_events import (
    GatesApproved,
    GatesCleared,
    GatesPaused,
    GatesPruned,
    GatesResumed,
    GatesRulesAccepted,
    GatesRulesKept,
    GatesSatisfied,
    SatisfiedPayload,
    SatisfiedRequirement,
)
from holdfast.core.person_codes import CODES
from holdfast.core.ports import Doc, Reader
from holdfast.features.gates.events import EVERYWHERE, branch_key
from holdfast.features.gates.kinds.base import resolution_text
from holdfast.features.gates.policy import as_satisfied
from holdfast.features.gates.rules.checker import RequestContext
from holdfast.features.gates.rules.in_force import USER, loosened_rules, rules_in_force
from holdfast.features.gates.rules.triggers import Rule
from holdfast.features.gates.settings import GateSettings
from holdfast.features.gates.state import BRANCHES, DOCUMENTS, SESSIONS, GateSession, every_document, live_sessions
from holdfast.features.gates.state.branches import SHARED, BranchState, LiveSession

TYPES = {one.kind: one for one in DOCUMENTS}


@dataclass(frozen=True)
class Stored:
    """The committed documents as the state that `decide` reads."""

    reader: Reader

    def get(self, kind: str, key: str) -> Doc | None:
        return TYPES[kind].load(self.reader, key)


def settings_of(call: Call) -> GateSettings:
    return call.settings or GateSettings()


def rules_for(call: Call) -> GateSettings:
    """The settings in force, including what they may not loosen by themselves."""
    return rules_in_force(Stored(call.reader), call.project, settings_of(call))


def surroundings(call: Call) -> Surroundings:
    """What the user's settings say counts as far as it is in force: an agent may have rewritten them."""
    user, kept = settings_of(call).user, rules_for(call)
    needs_code = user.code_without_terminal or kept.code_without_terminal
    return Surroundings(tuple(_agent_processes(call)), needs_code, user.agents_may_approve and kept.agents_may_approve)


def _agent_processes(call: Call) -> list[AgentProcess]:
    """A process may run many sessions; only those the command is about make it busy."""
    named = str(call.args.get("session") or "")
    processes = []
    for sid, one in live_here(call).items():
        concerned = one.project == call.project or bool(named and sid.startswith(named))
        session = SESSIONS.load(call.reader, sid) if concerned else None
        if one.pid:
            processes.append(AgentProcess(one.pid, one.pid_start, session is not None and session.is_busy, sid))
    return processes


def live_here(call: Call) -> dict[str, LiveSession]:
    return live_sessions(Stored(call.reader)).sessions


def session_of(call: Call, *, needed: bool = True) -> str:
    """The named session, else the caller's own, else the only live one here."""
    if named := str(call.args.get("session") or ""):
        return _full_session_id(call, named)
    if call.session:
        return call.session
    here = [sid for sid, one in live_here(call).items() if _is_here(call, one)]
    if len(here) == 1:
        return here[0]
    if needed:
        which = (
            f"{len(here)} sessions are alive here: {', '.join(map(session_alias, here))}"
            if here
            else "none is alive here"
        )
        raise CommandRefused(f"which session? {which}", fix="Name one with --session.")
    return ""


def _is_here(call: Call, one: LiveSession) -> bool:
    """Started in this folder, or working on this branch of this repository."""
    same_branch = one.place == call.args.get("repo") and one.branch == call.args.get("branch")
    return one.project == call.project or same_branch


def _full_session_id(call: Call, named: str) -> str:
    """Accepts a unique prefix or alias (D5: never a key)."""
    # A full id may be of a session that is over, so it is looked up first.
    if SESSIONS.load(call.reader, named):
        return named
    matches = [sid for sid in live_here(call) if sid.startswith(named) or session_alias(sid) == named]
    if len(matches) > 1:
        raise CommandRefused(f"{named} is the beginning of {len(matches)} sessions", fix="Give the full id.")
    return matches[0] if matches else named


def locate_caller(call: Call, session: str) -> RequestContext:
    """The caller's place; a session's facts are stored under the folder where its agent started."""
    doc = (SESSIONS.load(call.reader, session) if session else None) or GateSession(session=session)
    # Pages and scripts name only the folder.
    around = {} if call.args.get("repo") else locate(call.project)
    repo, branch = (str(call.args.get(name) or around.get(name) or "") for name in ("repo", "branch"))
    location = repo or call.project
    project = doc.project if doc.place == location else call.project
    return RequestContext(session, project, location, branch, call.now, doc.content)


def rule_named(call: Call, name: str) -> Rule:
    rules = rules_for(call).by_name
    if name in rules:
        return rules[name]
    if name in settings_of(call).requirements:
        raise CommandRefused(f"{name} is not enabled here", fix="Enable it in the settings first.")
    from difflib import get_close_matches

    near = get_close_matches(name, rules, n=1)
    known = (
        f"This project's requirements: {', '.join(sorted(rules))}." if rules else "This project has no requirements."
    )
    fix = f"Did you mean {near[0]}?" if near else known
    raise CommandRefused(f"there is no requirement {name!r}", fix=fix)


replace = msgspec.structs.replace
# In seconds: a year.
LONGEST_PAUSE_S = 366 * 86_400
MOST_METADATA = 4_000


def list_codes(call: Call) -> JsonObject:
    """For the dashboard, and for a person at a terminal."""
    # Agents must not see a person's codes.
    shown = CODES.pending(call.now) if not call.who.is_agent and call.who.certain else []
    return {"codes": [msgspec.structs.asdict(one) for one in shown], "now": call.now}


def act_of_satisfying(call: Call) -> str:
    """Empty where agents may satisfy all that is named."""
    barred = [rule.name for rule in _rules_by_hand(call) if not rule.spec.agent_may_satisfy]
    return f"satisfying {', '.join(barred)}" if barred else ""


def act_of_approving(call: Call) -> str:
    return f"approving {', '.join(rule_named(call, name).name for name in _requirement_names(call))}"


def satisfy_requirements(call: Call) -> CommandResult:
    rules = _rules_by_hand(call)
    # Only what counts for one session needs to know which.
    personal = any(rule.scope not in SHARED for rule in rules)
    ttl = _seconds_argument(call, "ttl")
    named = [as_satisfied(rule, call.now) for rule in rules]
    named = [replace(one, until=call.now + ttl * 1000) if ttl else one for one in named]
    return _satisfied_result(call, GatesSatisfied, named, personal)


def _satisfied_result(
    call: Call, made: type[GatesSatisfied | GatesApproved], named: list[SatisfiedRequirement], personal: bool
) -> CommandResult:
    everyone = bool(call.args.get("everyone"))
    session = session_of(call, needed=personal and not everyone)
    metadata = _metadata_argument(call)
    payload = made(requirements=named, everyone=everyone, metadata=metadata, certain=call.who.certain)
    return _requirements_result(call, payload, session)


def _rules_by_hand(call: Call) -> list[Rule]:
    rules = [rule_named(call, name) for name in _requirement_names(call)]
    for rule in rules:
        if why := rule.kind.why_not_by_hand(rule):
            raise CommandRefused(why, fix=f"What counts: {resolution_text(rule)}.")
    return rules


def approve_requirements(call: Call) -> CommandResult:
    """For a limited time, by a person."""
    rules = [rule_named(call, name) for name in _requirement_names(call)]
    ttl = _seconds_argument(call, "ttl")
    ends = (call.now + (ttl or rule.spec.approval_ttl) * 1000 for rule in rules)
    named = [SatisfiedRequirement(rule.name, rule.scope, end) for rule, end in zip(rules, ends, strict=True)]
    return _satisfied_result(call, GatesApproved, named, True)


def clear_requirements(call: Call) -> CommandResult:
    every = bool(call.args.get("all"))
    names = list(rules_for(call).by_name) if every else _requirement_names(call)
    rules = _without_permanent(call, [rule_named(call, name) for name in names], every)
    shared = not every and any(rule.scope in SHARED for rule in rules)
    # What a branch shares has no entry of a session that could be cleared.
    everyone = bool(call.args.get("everyone")) or shared
    session = session_of(call, needed=not everyone)
    cleared = GatesCleared(requirements=[rule.name for rule in rules], everyone=everyone)
    return _requirements_result(call, cleared, session)


def _without_permanent(call: Call, rules: list[Rule], every: bool) -> list[Rule]:
    """`clear --all` leaves out what is permanent rather than refusing everything."""
    permanent = [rule.name for rule in rules if rule.scope == "permanent" and not call.args.get("force")]
    if permanent and not every:
        raise CommandRefused(f"{', '.join(permanent)} is permanent", fix="Use --force if it really has to go.")
    return [rule for rule in rules if rule.name not in permanent]


def pause_gates(call: Call) -> CommandResult:
    """Never refused to a person."""
    seconds = min(_seconds_argument(call, "seconds"), LONGEST_PAUSE_S)
    where = _pause_scope(call)
    until = call.now + seconds * 1000 if seconds else 0
    payload = GatesPaused(where=where, until=until, why=str(call.args.get("why") or "")[:500])
    return CommandResult((_gates_event(call, payload, call.session),), {"where": where, "until": until})


def resume_gates(call: Call) -> CommandResult:
    """Ends every pause that applies here: place, session, everywhere."""
    scopes = [_pause_scope(call)]
    scopes += [] if call.args.get("only") else [EVERYWHERE, f"session:{call.session}"]
    events = tuple(_gates_event(call, GatesResumed(where=where), call.session) for where in dict.fromkeys(scopes))
    return CommandResult(events, {"where": scopes})


def _pause_scope(call: Call) -> str:
    if call.args.get("everywhere"):
        return EVERYWHERE
    if call.args.get("session_only"):
        return f"session:{session_of(call)}"
    return str(call.args.get("repo") or call.project)


def prune_branches(call: Call) -> CommandResult:
    """Drops the state of branches that no longer exist. The log keeps the events."""
    repo = str(call.args.get("repo") or "")
    if not repo:
        raise CommandRefused("this is no git repository")
    there = branches_of(Path(repo))
    branches = [doc.branch for doc in branch_docs(call.reader, repo)]
    gone = sorted(branch for branch in branches if branch and branch not in there)
    if not gone:
        return CommandResult((), {"pruned": []})
    return CommandResult((_gates_event(call, GatesPruned(repo=repo, branches=gone), ""),), {"pruned": gone})


def branch_docs(reader: Reader, repo: str) -> Iterable[BranchState]:
    return (doc for doc in every_document(reader, BRANCHES) if doc.place == repo and doc.status != "pruned")


def branches_of(repo: Path) -> set[str]:
    """Reads the ref files directly."""
    heads = repo / "refs" / "heads"
    loose = {str(path.relative_to(heads)) for path in heads.rglob("*") if path.is_file()} if heads.is_dir() else set()
    packed = repo / "packed-refs"
    lines = packed.read_text(errors="replace").splitlines() if packed.is_file() else []
    return loose | {line.partition(" refs/heads/")[2] for line in lines if " refs/heads/" in line}


def _requirement_names(call: Call) -> list[str]:
    names = call.args.get("names") or ()
    if not isinstance(names, list | tuple) or not names:
        raise CommandRefused("name at least one requirement", fix="See: holdfast gate list")
    return [str(name) for name in names]


def _seconds_argument(call: Call, name: str) -> int:
    value = call.args.get(name) or 0
    # True and False are numbers in Python.
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise CommandRefused(f"{name} must be a number of seconds")
    return int(value)


def _metadata_argument(call: Call) -> JsonObject:
    metadata = call.args.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise CommandRefused("metadata must be a mapping", fix="""e.g. --metadata '{"ticket": "#12"}'""")
    if len(str(metadata)) > MOST_METADATA:
        raise CommandRefused(f"metadata may have {MOST_METADATA} characters")
    return metadata


def _requirements_result(call: Call, payload: SatisfiedPayload | GatesCleared, session: str) -> CommandResult:
    where = locate_caller(call, session)
    payload = replace(payload, branch=where.branch, repo=str(call.args.get("repo") or ""), method=call.who.kind)
    event = _gates_event(call, payload, session, where.project)

    # Called after the events were applied, so that the answer shows the new state.
    def answer(reader: Reader) -> JsonObject:
        branch_state = BRANCHES.load(reader, branch_key(where.worktree, where.branch))
        return {"session": session, "branch": where.branch, "requirements": msgspec.to_builtins(payload.requirements),
                "state": msgspec.to_builtins(branch_state.requirements) if branch_state else {}}  # fmt: skip

    return CommandResult((event,), answer)


def loosened_settings(call: Call) -> list[tuple[str, GateSettings, list[str]]]:
    """The user's and the project's settings that ask for less than what is in force, and for what."""
    now, state = settings_of(call), Stored(call.reader)
    scopes = ((USER, now.user), (call.project, now))
    every = [(scope, rules, loosened_rules(state, scope, rules)) for scope, rules in scopes]
    return [(scope, rules, looser) for scope, rules, looser in every if looser]


def accept_rules(call: Call) -> CommandResult:
    """The settings as they are now, also where they ask for less than what is in force."""
    found = loosened_settings(call)
    accepted = [
        GatesRulesAccepted(scope=scope, digest=rules.digest, rules=rules.plain(), by="person", differences=looser[:20])
        for scope, rules, looser in found
    ]
    texts = dict.fromkeys(text for _, _, looser in found for text in looser)
    return CommandResult(_own_events(call, accepted), {"accepted": list(texts)})


def keep_rules(call: Call) -> CommandResult:
    """A person declined: the change is no longer taken for theirs."""
    kept = [
        GatesRulesKept(scope=scope, digest=rules.digest, differences=looser[:20])
        for scope, rules, looser in loosened_settings(call)
    ]
    texts = dict.fromkeys(text for one in kept for text in one.differences)
    return CommandResult(_own_events(call, kept), {"kept": list(texts)})


def _own_events(call: Call, payloads: Iterable[Payload]) -> tuple[Event, ...]:
    return tuple(_gates_event(call, payload, call.session) for payload in payloads)


def _gates_event(call: Call, payload: Payload, session: str, project: str = "") -> Event:
    return own_event(payload, call.now, session=session, project=project or call.project)


COMMANDS: dict[str, Callable[[Call], CommandResult]] = {
    "satisfy": satisfy_requirements,
    "approve": approve_requirements,
    "clear": clear_requirements,
    "pause": pause_gates,
    "resume": resume_gates,
    "prune": prune_branches,
    "accept": accept_rules,
    "keep": keep_rules,
}
