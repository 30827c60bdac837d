"""Texts of refusals, warnings and notices."""

# Text of an untrusted project is fenced.

import hashlib
import re
from collections.abc import Sequence

from holdfast.core.decision import Context
from holdfast.core.text import wrap_context
from holdfast.features.gates.events import TEAM_PREFIX
from holdfast.features.gates.kinds.base import Finding, by_hand_too
from holdfast.features.gates.rules.checker import RequestContext
from holdfast.features.gates.rules.triggers import Rule
from holdfast.features.gates.state import Bypass

LONGEST_MESSAGE = 700
MOST_LISTED = 12
# An agent might follow a link that a stranger's project put into a message.
_LINK = re.compile(r"\b(?:https?|ftp|file)://\S+")


FOREIGN = Context("settings-of-an-untrusted-project", "")
OF_TEAM = Context("rules-of-the-team", "")


def refusal_message(findings: Sequence[Finding], context: RequestContext, tool: str) -> str:
    """One message for all open requirements (O2-c). `tool` comes from the agent, so it is shortened."""
    what = f"{plain_name(tool)} has to wait" if tool else "This has to wait"
    return "\n".join([f"{what}: {_open_count(findings)}.", *_finding_lines(findings, context)])


def plain_name(name: str) -> str:
    # The name comes from the agent, or from an MCP server, and goes into text that an agent reads.
    return re.sub(r"[^\w.:-]", "_", name)[:80]


def fence_foreign(text: str, source: str = FOREIGN.source) -> str:
    """Fences text of an untrusted project or a team, without links."""
    return wrap_context(Context(source, _LINK.sub("[link left out]", text)))


def question(findings: Sequence[Finding]) -> str:
    """What the agent's own dialog shows to the person."""
    own = [f"{one.rule.name}: {one.why}" for one in findings if not one.rule.foreign]
    foreign = "\n".join(f"{one.rule.name}: {one.why}" for one in findings if one.rule.foreign)
    return "\n".join([*own, *([fence_foreign(foreign)] if foreign else ())])


def repeated_refusal(findings: Sequence[Finding]) -> str:
    return f"Refused for the same reason as a moment ago: {_requirement_names(findings)}. See: holdfast gate status"


def not_done(findings: Sequence[Finding], context: RequestContext, left: int) -> str:
    """Refuses the end of a turn, and says when the agent will be allowed to stop."""
    lines = [f"Not done yet: {_open_count(findings)}.", *_finding_lines(findings, context)]
    if left == 0:
        lines.append("If it cannot be resolved, say so: the next stop is let through.")
    return "\n".join(lines)


def waiting_line(difference: str) -> str:
    return f"the settings would loosen what is in force: {difference}. Accept it with: holdfast gate accept"


def bypass_line(one: Bypass) -> str:
    return f"{', '.join(one.requirements)}: {one.what}"


def bypass_message(seen: Sequence[Bypass]) -> str:
    """Shown once, at the next step."""
    lines = [f"- {bypass_line(one)}" for one in seen]
    return "\n".join(
        [
            "Stopped once, because something was done that a requirement is about:",
            *lines,
            "Undo it, or tell the user what was done and why; then go on.",
        ]
    )


def let_go(findings: Sequence[Finding], times: int) -> str:
    return f"Allowed to stop after {times} refusals without progress. Still open: {_requirement_names(findings)}."


def at_start(findings: Sequence[Finding], others: Sequence[str], scopes: Sequence[str]) -> str:
    """`scopes`: those that are asked for at the end of a turn."""
    lines = [f"Requirements checked here by Holdfast ({len(findings)}):"]
    lines += [_status_line(one, scopes) for one in findings[:MOST_LISTED]]
    lines += _by_hand_line([one.rule.name for one in findings[:MOST_LISTED] if not one.ok and by_hand_too(one.rule)])
    if len(findings) > MOST_LISTED:
        lines.append(f"- and {len(findings) - MOST_LISTED} more: holdfast gate status")
    if others:
        lines.append(f"Other live sessions in this checkout: {', '.join(others[:3])}.")
    return "\n".join(lines)


def text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _open_count(findings: Sequence[Finding]) -> str:
    return "1 requirement is open" if len(findings) == 1 else f"{len(findings)} requirements are open"


def _requirement_names(findings: Sequence[Finding]) -> str:
    # Names of foreign rules are foreign text: only count them.
    own = [one.rule.name for one in findings if not one.rule.foreign]
    more = len(findings) - len(own)
    return ", ".join(
        [*own, *([f"{more} {'requirement' if more == 1 else 'requirements'} of the project"] if more else ())]
    )


def _finding_lines(findings: Sequence[Finding], context: RequestContext) -> list[str]:
    """Our own rules first, then those of a project that nobody trusted and of a team, each fenced."""
    lines: dict[str, list[str]] = {"": [], FOREIGN.source: [], OF_TEAM.source: []}
    for one in findings:
        lines[_source(one.rule)].append(_finding_line(one, context, len(findings)))
    by_hand = [one.rule.name for one in findings if not one.rule.foreign and by_hand_too(one.rule)]
    own = lines.pop("") + _by_hand_line(by_hand)
    return own + [fence_foreign("\n".join(texts), source) for source, texts in lines.items() if texts]


def _source(rule: Rule) -> str:
    """Where a rule's words come from; empty for the user."""
    if not rule.foreign:
        return ""
    return OF_TEAM.source if rule.name.startswith(TEAM_PREFIX) else FOREIGN.source


def _by_hand_line(names: list[str]) -> list[str]:
    return [f"By hand: holdfast gate satisfy {' '.join(names)}"] if names else []


def _finding_line(finding: Finding, context: RequestContext, of: int) -> str:
    rule = finding.rule
    way = rule.kind.remedy(rule)
    head = f"- {rule.name}: {finding.why}" + (f" → {way}" if way else "")
    message = fill_placeholders(rule.spec.blocking_message or rule.spec.message, finding, context)
    if not message:
        return head
    # One open requirement has room for its whole message; several get a line each.
    return f"{head}\n{_indent_text(message[:LONGEST_MESSAGE])}" if of == 1 else f"{head} ({_first_line(message)})"


def _first_line(text: str) -> str:
    """The first line that is not a heading."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return lines[0][:160] if lines else ""


def _indent_text(text: str) -> str:
    return "\n".join(f"  {line}" if line.strip() else "" for line in text.strip().splitlines())


def fill_placeholders(text: str, finding: Finding, context: RequestContext) -> str:
    """Fills `{placeholders}` of the original framework; unknown ones stay."""
    spec = finding.rule.spec
    skill = (*spec.auto_resolve_skill, *spec.satisfied_by_skill, "")[0].lstrip("/")
    placeholders: dict[str, str | int] = {
        "auto_resolve_skill": skill, "req_name": finding.rule.name, "branch": context.branch, "session_id": context.session,
        "total": finding.amount, "summary": finding.why, **finding.rule.kind.placeholders(finding.rule),
    }  # fmt: skip
    # Not `str.format`: braces that mean nothing here must stay as they are.
    for name, value in placeholders.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text.strip()


def _status_line(finding: Finding, scopes: Sequence[str]) -> str:
    rule = finding.rule
    if finding.ok:
        return f"- {rule.name}: {finding.why}"
    way = rule.kind.remedy(rule)
    return f"- {rule.name} ({_asked_when(rule, scopes)}): {finding.why}" + (f" → {way}" if way else "")


def _asked_when(rule: Rule, scopes: Sequence[str]) -> str:
    moments = [("before " + _trigger_text(rule), rule.at_tool), ("before you are done", rule.asked_at_stop(scopes))]
    return ", ".join(text for text, holds in moments if holds) or "watched only"


def _trigger_text(rule: Rule) -> str:
    first = rule.spec.trigger_tools[0] if rule.spec.trigger_tools else "edit"
    if rule.spec.command_pattern or not isinstance(first, str):
        return "the command"
    return "an edit" if first in ("edit", "Edit", "Write") else f"{first}"
