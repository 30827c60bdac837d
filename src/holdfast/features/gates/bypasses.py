"""Finds bypasses afterwards, from git, files and scripts."""

# Pure.

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from holdfast.analysis.shell.command_effects import read_acts
from holdfast.core.event import Event, derived_event
from holdfast.core.feature import State
from holdfast.core.fingerprint import content_key
from holdfast.core.git_state import MOST_REFS, is_branch_glob
from holdfast.core.kinds import ToolPayload
from holdfast.core.kinds.gates_events import GatesBypassed
from holdfast.features.gates.observations import HEAD, HEAD_BRANCH, HEAD_VERB
from holdfast.features.gates.rules.checker import Checker, RequestContext
from holdfast.features.gates.rules.tool_commands import command_of
from holdfast.features.gates.rules.triggered import triggered_rules
from holdfast.features.gates.rules.triggers import Rule, acts_of
from holdfast.features.gates.state import GateSession, digest_meanings

if TYPE_CHECKING:
    from holdfast.features.gates.settings import GateSettings

replace = msgspec.structs.replace
_ABOUT_HEAD = frozenset((HEAD, HEAD_BRANCH, HEAD_VERB))
"""Names in `refs` that are no branches."""
# Programs that move a local branch to a remote one. A local folder or bundle is no remote.
_FETCHES = re.compile(r"^(?:git (?:pull|fetch|clone)(?!.* (?:\.|/|~|file:))|gh (?:pr|repo) )")
# Commands that set a branch to any commit.
_SETS_REF = re.compile(
    r"^git (?:update-ref|symbolic-ref|push \.|branch (?:-f|--force|-[a-zA-Z]*[fDMC])|reset --(?:hard|soft|mixed))\b"
)
# Reflog verbs that move HEAD to an existing commit.
_MOVES_BACK = re.compile(r"^(?:reset|checkout|pull|rebase|merge|clone|fetch|branch)")
# A stash is a commit: a branch moved onto it got a new commit.
_FROM_STASH = re.compile(r"^git (?:reset|branch|merge|checkout|switch|update-ref) .*(?:stash@|refs/stash)")


def find_bypasses(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    data = event.data
    if not isinstance(data, ToolPayload) or data.paused:
        return
    checker = Checker(state, RequestContext.of(event))
    if checker.paused():
        return
    # Rules that showed were judged before the call; only the others can have been bypassed. A rule that only shows
    # because a file was written meanwhile did not show then.
    shown = {rule.name for rule in triggered_rules(settings, _as_looked_at(checker.session, event, data))}
    passed = passed_in(checker.session, data.call)
    for rule in settings.rules:
        what = "" if rule.name in shown | passed else _unseen(checker.session, rule, event, data)
        if what and not rule.kind.lets_through(checker, rule):
            payload = GatesBypassed(branch=data.branch, repo=data.repo, requirements=[rule.name], what=what)
            yield derived_event(event, payload)


def passed_in(session: GateSession, call: str) -> set[str]:
    """Requirements that were met when a hook of git asked, during this call."""
    began = session.calls[call].began if call in session.calls else 0
    return {name for name, at in session.passed.items() if began and at >= began}


def _as_looked_at(before: GateSession, event: Event, data: ToolPayload) -> Event:
    """The call as it was allowed: without scripts and recipes written since."""
    changed = _changed_meanings(before, data)
    if not changed:
        return event
    kept = {name: text for name, text in data.meanings.items() if name not in changed}
    command, cwd = command_of(event), data.cwd or event.project or "."
    # Leave out what is written only because of changed files.
    now, then = (set(read_acts(command, cwd, meanings).writes) for meanings in (data.meanings, kept))
    added = {os.path.normpath(os.path.join(cwd, name)) for name in now - then}
    looked_at = replace(data, meanings=kept, written=[path for path in data.written if path not in added])
    return replace(event, data=looked_at)


def _changed_meanings(before: GateSession, data: ToolPayload) -> set[str]:
    """Names whose meaning changed since the call was checked; none if its start was not seen."""
    call = before.calls.get(data.call)
    if call is None or not data.meanings:
        return set()
    return {name for name, digest in digest_meanings(data.meanings).items() if call.read.get(name) != digest}


def _disclosed(before: GateSession, rule: Rule, event: Event, data: ToolPayload) -> str:
    """An act of a script or recipe written after the check. Commits are found through git itself."""
    if not _changed_meanings(before, data):
        return ""
    known = acts_of(_as_looked_at(before, event, data)).readings
    acts = [one for one in acts_of(event).readings if one not in known and rule.is_about(one)]
    act = next((one for one in acts if not one.startswith("git commit")), "")
    return f"`{act[:80]}` was run by a file that was written after the call was looked at" if act else ""


def _unseen(before: GateSession, rule: Rule, event: Event, data: ToolPayload) -> str:
    """What was done that the rule is about; empty if nothing was."""
    if globs := rule.kind.protected_branches(rule.spec):
        return _on_branches(before, rule, event, data, globs)
    if not rule.at_tool:
        return ""
    if data.action in ("shell", "mcp") and rule.patterns:
        looks = (find(before, rule, event, data) for find in (_acted, _disclosed, _hidden))
        return next(filter(None, looks), "")
    return _changed(before, data, content_key(rule.spec.paths), rule) if rule.spec.paths else ""


def _on_branches(before: GateSession, rule: Rule, event: Event, data: ToolPayload, globs: Sequence[str]) -> str:
    moved = next((name for glob in globs for name in _moved_branches(before, data, glob)), "")
    if moved and not _only_fetches(acts_of(event).readings):
        return f"the branch {moved} was moved without approval"
    return _changed(before, data, "", rule) if any(fnmatchcase(data.branch, glob) for glob in globs) else ""


def _only_fetches(readings: Sequence[str]) -> bool:
    return any(map(_FETCHES.match, readings)) and not any(map(_SETS_REF.match, readings))


def _has_moved(before: GateSession, data: ToolPayload, name: str) -> bool:
    was, now = before.refs.get(name), data.refs.get(name)
    # Without refs in the payload nothing was looked up.
    return bool(was and data.refs and was != now)


def _moved_branches(before: GateSession, data: ToolPayload, glob: str) -> list[str]:
    branches = [glob]
    if is_branch_glob(glob):
        branches = [name for name in before.refs if name not in _ABOUT_HEAD and fnmatchcase(name, glob)]
    moved = [name for name in branches if _has_moved(before, data, name)]
    # If the list of branches was cut, a missing branch may still exist.
    return moved if len(branches) < MOST_REFS else [name for name in moved if name in data.refs]


def _acted(before: GateSession, rule: Rule, event: Event, data: ToolPayload) -> str:
    """A commit that no command showed, by git's own record."""
    # On another branch HEAD differs without a commit.
    if data.branch != before.refs.get(HEAD_BRANCH, data.branch) or not _has_moved(before, data, HEAD):
        return ""
    # Plumbing such as `git commit-tree` and `update-ref` leaves no verb in the reflog.
    verb = data.refs.get(HEAD_VERB, "") or "commit"
    moves_back = _MOVES_BACK.match(verb) and not any(_FROM_STASH.match(one) for one in acts_of(event).readings)
    if rule.is_about(f"git {verb}") or (not moves_back and rule.is_about("git commit")):
        return f"git {verb} was done without it, by a command that does not show it"
    return ""


def _hidden(before: GateSession, rule: Rule, event: Event, data: ToolPayload) -> str:
    """What ran is unknown and nothing else would show it: report that."""
    if rule.is_about("git commit") or rule.is_about("git push") or rule.kind.is_proven:
        return ""
    acts, changed = acts_of(event), _changed_meanings(before, data)
    # Written, run and restored: the file no longer shows what ran.
    put_back = [f"{_source_name(key)} was written and put back" for key in acts.rewritten if key not in changed]
    hidden = [*acts.hidden, *put_back]
    return f"a command ran that cannot be read ({hidden[0]}); whether it went round this is unknown" if hidden else ""


def _source_name(key: str) -> str:
    kind, _, rest = key.partition(" ")
    return f"the recipe {rest.split(chr(0))[2]}" if kind == "recipe" else rest.rpartition("/")[2]


def _changed(before: GateSession, data: ToolPayload, key: str, rule: Rule) -> str:
    was, now = before.content_before.get(key), data.content.get(key)
    # Edit tools are judged by their paths.
    if not was or not now or was == now or data.action == "edit":
        return ""
    where = ", ".join(rule.spec.paths) if key else f"a file on {data.branch}"
    return f"{where} was changed without it, by a command that does not show it"
