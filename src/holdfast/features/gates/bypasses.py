"""What happened although a requirement was open, seen only afterwards: a branch moved, a file changed, code ran unread."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.core.event import Event, derived_event
from holdfast.core.feature import State
from holdfast.core.fingerprint import content_key
from holdfast.core.kinds import ToolPayload
from holdfast.core.kinds.gates_events import GatesBypassed
from holdfast.features.gates.check import Checker, Here
from holdfast.features.gates.observations import HEAD, HEAD_BRANCH, HEAD_VERB
from holdfast.features.gates.rules import Rule, acts_of
from holdfast.features.gates.triggers import triggered

if TYPE_CHECKING:
    from holdfast.features.gates.model import GateSettings

_FETCHES = re.compile(r"^(?:git (?:pull|fetch|clone)|gh (?:pr|repo) )")
_MOVES_BACK = re.compile(r"^(?:reset|checkout|pull|rebase|merge|clone|fetch|branch)")


def find_bypasses(state: State, event: Event, settings: "GateSettings") -> Iterable[Event]:
    data = event.data
    if not isinstance(data, ToolPayload) or data.paused:
        return
    checker = Checker(state, Here.of(event))
    if checker.paused():
        return
    shown = {rule.name for rule in triggered(settings, event)}
    for rule in settings.rules:
        if rule.name not in shown and (what := _unseen(checker, rule, event, data)) and not checker.is_let_through(rule):
            yield derived_event(event, GatesBypassed(branch=data.branch, repo=data.repo, requirements=[rule.name], what=what))


def _unseen(checker: Checker, rule: Rule, event: Event, data: ToolPayload) -> str:
    before = checker.session
    if rule.spec.guard_type == "protected_branch":
        moved = [name for name in rule.spec.protected_branches if _has_moved(before, data, name)]
        if moved and not any(_FETCHES.match(one) for one in acts_of(event).readings):
            return f"the branch {moved[0]} was moved without approval"
        return _changed(before, data, "", rule) if data.branch in rule.spec.protected_branches else ""
    if data.action == "shell" and rule.patterns and rule.at_tool:
        return _acted(before, data, rule) or _hidden(rule, event)
    return _changed(before, data, content_key(rule.spec.paths), rule) if rule.spec.paths and rule.at_tool else ""


def _has_moved(before: dict[str, dict[str, str]], data: ToolPayload, name: str) -> bool:
    was, now = (before.get("refs") or {}).get(name), data.refs.get(name)
    return bool(was and data.refs and was != now)


def _acted(before: dict[str, dict[str, str]], data: ToolPayload, rule: Rule) -> str:
    """A commit that no command showed: git's own record tells."""
    if data.branch != (before.get("refs") or {}).get(HEAD_BRANCH, data.branch) or not _has_moved(before, data, HEAD):
        return ""
    verb = data.refs.get(HEAD_VERB, "") or "commit"
    if rule.is_about(f"git {verb}") or (not _MOVES_BACK.match(verb) and rule.is_about("git commit")):
        return f"git {verb} was done without it, by a command that does not show it"
    return ""


def _hidden(rule: Rule, event: Event) -> str:
    """Where nothing else would tell: what ran is not known, and that is said."""
    if rule.is_about("git commit") or rule.is_about("git push") or rule.type == "evidence":
        return ""
    hidden = acts_of(event).hidden
    return f"a command ran that cannot be read ({hidden[0]}); whether it went round this is unknown" if hidden else ""


def _changed(before: dict[str, dict[str, str]], data: ToolPayload, key: str, rule: Rule) -> str:
    was, now = (before.get("content_before") or {}).get(key), data.content.get(key)
    if not was or not now or was == now or data.action == "edit":
        return ""
    where = ", ".join(rule.spec.paths) if key else f"a file on {data.branch}"
    return f"{where} was changed without it, by a command that does not show it"
