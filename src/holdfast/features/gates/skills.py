"""Is there such a skill? Looked for once per session, beside the hooks, where agents keep their skills."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core.event import Event
from holdfast.core.feature import JobCall, State
from holdfast.core.ids import delivery_key
from holdfast.core.job import Job
from holdfast.core.ports import Ref
from holdfast.features.gates.refs import FACTS

if TYPE_CHECKING:
    from holdfast.features.gates.model import GateSettings

KIND = "gates.look"
FOLDERS = (".claude", ".codex", ".gemini", ".cursor", ".agents", ".qwen")
PLUGINS = ("cache/*/*/*", "marketplaces/*/plugins/*", "marketplaces/*", "repos/*/*")
"""Where Claude Code keeps what its plugins bring."""
_PLAIN = re.compile(r"^[\w.-]{1,100}$")


def wanted(_state: State, event: Event, settings: "GateSettings") -> Iterable[Job]:
    if event.kind != "session.started" or not any(rule.skills for rule in settings.rules):
        return ()
    return (Job(kind=KIND, dedupe=event.project, payload={"project": event.project}),)


def look(call: JobCall) -> list[Event]:
    project = str(call.job.payload["project"])
    settings = call.settings(project)
    missing = missing_skills(settings, project) if settings else []
    known = (call.reader.state(Ref(FACTS, project)) or {}).get("missing", [])
    if missing == known:
        return []
    data = {"missing": missing}
    return [Event(key=delivery_key(call.now), kind="gates.looked", at=call.now, project=project, data=data)]


def missing_skills(settings: "GateSettings", project: str) -> list[str]:
    """Of requirements whose every skill is missing; one of several is enough."""
    missing: list[str] = []
    for rule in settings.rules:
        named = [*rule.spec.auto_resolve_skill, *rule.spec.satisfied_by_skill]
        if named and not any(":" in skill or _exists(skill.lstrip("/"), project) for skill in named):
            missing += named
    return sorted(set(missing))[:20]


def _exists(skill: str, project: str) -> bool:
    return not _PLAIN.match(skill) or any(path.exists() for path in _places(skill, project))


def _places(skill: str, project: str) -> Iterator[Path]:
    for root in (Path(project), Path.home()):
        for folder in FOLDERS:
            yield root / folder / "skills" / skill / "SKILL.md"
            yield root / folder / "commands" / f"{skill}.md"
            yield root / folder / "agents" / f"{skill}.md"
    for layout in PLUGINS:
        for plugin in (Path.home() / ".claude" / "plugins").glob(layout):
            yield plugin / "skills" / skill / "SKILL.md"
            yield plugin / "commands" / f"{skill}.md"
            yield plugin / "agents" / f"{skill}.md"
