"""What git asks through its own hooks, before a branch moves or is pushed, whoever made it do so."""

import dataclasses
from collections.abc import Iterator
from fnmatch import fnmatchcase

import msgspec

from holdfast.analysis.shell.git_words import split_git
from holdfast.core.caller import list_ancestors
from holdfast.core.event import Event, own_event
from holdfast.core.feature import Call, CommandResult
from holdfast.core.git_context import locate
from holdfast.core.git_state import read_refs, tips
from holdfast.core.kinds.gates_events import GatesHeld, GatesPassed
from holdfast.core.machine import command_line
from holdfast.features.gates.commands import Stored, live_here, locate_caller, rules_for
from holdfast.features.gates.kinds.base import Finding
from holdfast.features.gates.observations import look_at_content
from holdfast.features.gates.rules.checker import Checker, RequestContext
from holdfast.features.gates.rules.messages import refusal_message
from holdfast.features.gates.rules.triggers import Rule
from holdfast.features.gates.settings import GateSettings

PUSH = "pre-push"
HEADS = "refs/heads/"
TOO_LATE = frozenset("reset merge pull rebase cherry-pick revert am fetch clone".split())
"""At their reference the files have changed already, and a refusal would leave half of it. Their commands are read
before they start. Fetching brings what others pushed."""
HOUSEKEEPING = frozenset("gc maintenance pack-refs prune repack reflog stash tag notes".split())
"""They rewrite branches in place."""
MOVES = frozenset("branch checkout switch worktree bisect".split())
"""They set a branch to a commit that exists."""
NOTHING = CommandResult(answer={"refusal": ""})


class Act(msgspec.Struct, frozen=True):
    """Something that git is about to do."""

    readings: tuple[str, ...]
    """As command patterns of requirements see it."""
    branch: str = ""


def hold(call: Call) -> CommandResult:
    """Why it has to wait, or nothing. Only a session's processes are held: a person at a terminal is free."""
    session, place = _session_above(call.caller, call), locate(call.project)
    settings = rules_for(call)
    if not session or not place or not settings.rules:
        return NOTHING
    where = dataclasses.replace(call, args={"repo": place["repo"], "branch": place["branch"]})
    context = locate_caller(where, session)
    checker = Checker(Stored(call.reader), context)
    asked = [(act, rule) for act in _acts(call, place["repo"]) for rule in settings.rules if _concerns(rule, act)]
    # What the command itself showed was judged before it started.
    asked = [(act, rule) for act, rule in asked if not _was_shown(rule, checker)]
    if not asked or checker.paused():
        return NOTHING
    findings = [_check(call, settings, context, act, rule) for act, rule in asked]
    refused = [one for one in findings if not one.ok]
    event = _event_of(call, context, asked[0][0], findings, bool(refused))
    return CommandResult((event,), answer={"refusal": refusal_message(refused, context, "") if refused else ""})


def _event_of(call: Call, context: RequestContext, act: Act, findings: list[Finding], refused: bool) -> Event:
    names = list(dict.fromkeys(one.rule.name for one in findings if not (refused and one.ok)))
    made = GatesHeld if refused else GatesPassed
    data = made(requirements=names, act=act.readings[0], branch=context.branch, repo=context.worktree)
    return own_event(data, call.now, session=context.session, project=context.project)


def _session_above(pid: int, call: Call) -> str:
    """The session whose agent's process is above git: of several, the one that was active last."""
    above = {(process.pid, process.start) for process in list_ancestors(pid)}
    mine = [(one.active, sid) for sid, one in live_here(call).items() if (one.pid, one.pid_start) in above]
    return max(mine, default=(0, ""))[1]


def _acts(call: Call, repo: str) -> Iterator[Act]:
    words = _git_above(call.caller)
    verb = words[1] if len(words) > 1 else ""
    reading = " ".join(words)[:200]
    lines = [line.split() for line in str(call.args.get("lines") or "").splitlines()]
    if call.args.get("event") == PUSH:
        yield Act((reading if verb == "push" else f"git push {' '.join(lines[0][:1])}".strip(),))
        return
    if verb in TOO_LATE | HOUSEKEEPING:
        return
    updates = {line[2].removeprefix(HEADS): line[1] for line in lines if len(line) == 3 and line[2].startswith(HEADS)}
    # The old value that git tells may be zeros; the files know.
    now = read_refs(repo, updates)
    moved = {branch: commit for branch, commit in updates.items() if now.get(branch) != commit}
    # A branch that begins at a commit that others have moves nothing.
    existing = tips(repo) if moved else frozenset()
    for branch, commit in moved.items():
        is_new = verb not in MOVES and commit.strip("0") and commit not in existing
        if branch in now or is_new:
            yield Act(("git commit", reading) if is_new else (reading,), branch)


def _git_above(pid: int) -> list[str]:
    """The words of the nearest git, without its general options."""
    for process in list_ancestors(pid):
        if process.name == "git" or process.name.startswith("git-"):
            found = split_git(command_line(process.pid) or ["git"])
            return ["git", found.verb, *found.arguments]
    return ["git", "commit"]


def _concerns(rule: Rule, act: Act) -> bool:
    if not rule.at_tool:
        return False
    globs = rule.kind.protected_branches(rule.spec)
    if globs:
        return bool(act.branch) and any(fnmatchcase(act.branch, glob) for glob in globs)
    return any(map(rule.is_about, act.readings))


def _was_shown(rule: Rule, checker: Checker) -> bool:
    if rule.kind.protected_branches(rule.spec):
        return False
    open_calls = (one for one in checker.session.calls.values() if not one.ended)
    return any(rule.is_about(reading) for one in open_calls for reading in one.shows)


def _check(call: Call, settings: GateSettings, context: RequestContext, act: Act, rule: Rule) -> Finding:
    branch = act.branch or context.branch
    content = look_at_content(call.project, settings) if rule.kind.is_proven else context.content
    return Checker(Stored(call.reader), dataclasses.replace(context, branch=branch, content=content)).check(rule)
