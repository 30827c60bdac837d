"""Manages hook entries in the agents' settings: shown first, added without other changes, removed exactly."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from holdfast.core.agent import Agent
from holdfast.core.errors import InstallRefused
from holdfast.paths import default_state_dir
from holdfast.setup.install import hooks_text, locations
from holdfast.setup.install.json_edit import BrokenJson, line_of
from holdfast.setup.install.layouts import Layout, OwnFile, Settings
from holdfast.setup.install.locations import KEPT_RESULTS, Record, Records, content_digest
from holdfast.setup.install.mcp_servers import Servers, StatusLine, TomlServers
from holdfast.stores.footprint import Footprint


def layout_of(agent: Agent) -> Layout:
    if agent.setup and agent.setup.layout == "mcp":
        return TomlServers() if agent.setup.mcp_format == "toml" else Servers(agent.setup.mcp_format)
    if agent.setup and agent.setup.layout == "statusline":
        return StatusLine(agent.setup.status_line)
    return OwnFile() if agent.setup and agent.setup.layout == "text" else Settings()


T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """What would be written where. `before`/`after` are None without a file."""

    agent: str
    level: str
    path: Path
    state: Path
    before: bytes | None
    after: bytes | None
    record: Record | None
    """What to remember; None if nothing of ours is left."""
    layout: str = ""

    @property
    def created(self) -> bool:
        return self.before is None and self.after is not None

    @property
    def changes(self) -> bool:
        return self.before != self.after

    @property
    def diff(self) -> str:
        diff_lines = difflib.unified_diff(
            _text_lines(self.before), _text_lines(self.after), str(self.path), str(self.path)
        )
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff_lines
        )


def _text_lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8-sig", "replace").splitlines(keepends=True)


@dataclass(frozen=True)
class Installed:
    """One entry of ours. `missing` is a file it needs and does not find; `current`: as we would write it today."""

    event: str
    level: str
    path: Path
    line: int
    entry: dict[str, Any]
    missing: str
    current: bool


@dataclass(frozen=True)
class Double:
    """The agent would run us more than once for this event."""

    event: str
    paths: tuple[Path, ...]


def plan_install(agent: Agent, level: str, project: Path, state: Path | None = None) -> Plan:
    state = state or default_state_dir()
    path, layout = locations.settings_file(agent, level, project), layout_of(agent)
    locations.refuse_unwritable(path)
    before = locations.read_content(path)
    text = _decode_settings(path, before)
    # Parsed again after the edit: foreign values must be unchanged.
    after = _edit_safely(layout, path, text, lambda: layout.with_ours(text, agent, state)).encode()
    record = _make_record(
        agent, level, path, Records(state).read_record(path, _record_suffix(_layout_name(agent))), before, after
    )
    return Plan(agent.name, level, path, state, before, after, record, _layout_name(agent))


def plan_removal(agent: Agent, level: str, project: Path, state: Path | None = None) -> Plan:
    state = state or default_state_dir()
    path = locations.settings_file(agent, level, project)
    before, record = locations.read_content(path), Records(state).read_record(path, _record_suffix(_layout_name(agent)))
    after = _original_content(layout_of(agent), path, before, record)
    # If nothing has to be removed, a read-only file is no problem.
    if after != before:
        locations.refuse_unwritable(path)
    return Plan(agent.name, level, path, state, before, after, None, _layout_name(agent))


def _layout_name(agent: Agent) -> str:
    return agent.setup.layout if agent.setup else ""


def _record_suffix(layout: str) -> str:
    """Hooks, MCP server and status line may be in one file: each has its own record."""
    return f"-{layout}" if layout in ("mcp", "statusline") else ""


def apply_plan(plan: Plan) -> Plan:
    """Record first, file second: a kill in between leaves the old file and a record that still matches."""
    records = Records(plan.state)
    with records.locked():
        now = locations.read_content(plan.path)
        # Somebody else wrote in between; `after` means that an earlier try was interrupted after the write.
        if now not in (plan.before, plan.after):
            raise InstallRefused(
                "it was changed meanwhile", where=str(plan.path), fix="Nothing was written; try again."
            )
        if plan.record is None:
            _take_out(plan, records, now)
        else:
            _put_in(plan, plan.record, records, now)
    return plan


def install_hooks(agent: Agent, level: str, project: Path, state: Path | None = None) -> Plan:
    return apply_plan(plan_install(agent, level, project, state))


def remove_hooks(agent: Agent, level: str, project: Path, state: Path | None = None) -> Plan:
    return apply_plan(plan_removal(agent, level, project, state))


def installed_hooks(agent: Agent, level: str, project: Path, state: Path | None = None) -> list[Installed]:
    path, layout = locations.settings_file(agent, level, project), layout_of(agent)
    text = _decode_settings(path, locations.read_content(path))
    expected = layout.wanted(agent, state or default_state_dir())
    return [
        Installed(
            event=hook.event,
            level=level,
            path=path,
            line=hook.line,
            entry=hook.entry,
            missing=hooks_text.missing_program(hook.entry),
            current=hook.entry == expected.get(hook.event),
        )
        for hook in _edit_safely(layout, path, text, lambda: layout.find_entries(text))
    ]


def verify_installation(agent: Agent, level: str, project: Path, state: Path | None = None) -> list[str]:
    """Problems of an installation in words; empty if there are none."""
    path, layout = locations.settings_file(agent, level, project), layout_of(agent)
    entries = installed_hooks(agent, level, project, state)
    there = {item.event for item in entries}
    expected = layout.wanted(agent, state or default_state_dir())
    wrong = [f"{path}: no hook for {event}" for event in expected if event not in there]
    wrong += [f"{item.path}:{item.line}: {item.missing} is not there" for item in entries if item.missing]
    wrong += [f"{item.path}:{item.line}: {item.event} is out of date" for item in entries if not item.current]
    if off := layout.switched_off(_decode_settings(path, locations.read_content(path))):
        wrong.append(f"{path}: {off}, so no hook runs")
    return wrong


def lost_hooks(agents: Iterable[Agent], project: Path, state: Path | None = None) -> list[str]:
    """Settings files whose hooks of ours are no longer complete, in words."""
    records = Records(state or default_state_dir())
    lost = []
    for agent in agents:
        suffix = _record_suffix(_layout_name(agent))
        for level in locations.install_levels(agent):
            path = locations.settings_file(agent, level, project)
            if records.read_record(path, suffix) is None:
                continue
            try:
                wrong = verify_installation(agent, level, project, state)
            except InstallRefused as refusal:
                wrong = [refusal.problem]
            # An outdated one still runs.
            wrong = [problem for problem in wrong if not problem.endswith("is out of date")]
            if wrong:
                more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
                mend = f"holdfast install --agent {agent.name} --{level}"
                lost.append(f"{agent.title}: Holdfast's hooks are missing ({wrong[0]}{more}): {mend}")
    return list(dict.fromkeys(lost))


def duplicate_hooks(agent: Agent, project: Path, state: Path | None = None) -> list[Double]:
    """Levels add up: an agent runs the user's entries and the project's."""
    seen: dict[str, list[Path]] = {}
    files: set[Path] = set()
    for level in locations.install_levels(agent):
        path = locations.settings_file(agent, level, project)
        # Two levels may name the same file.
        for item in installed_hooks(agent, level, project, state) if path not in files else ():
            seen.setdefault(item.event, []).append(item.path)
        files.add(path)
    return [Double(event, tuple(paths)) for event, paths in seen.items() if len(paths) > 1]


def _decode_settings(path: Path, content: bytes | None) -> str:
    try:
        return (content or b"").decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1 if content else 1
        raise InstallRefused("it is not UTF-8", where=f"{path}:{line}", fix="Save it as UTF-8.") from error


def _edit_safely(layout: Layout, path: Path, text: str, work: Callable[[], T]) -> T:
    """Unreadable files are not touched; written ones are parsed again before they are saved."""
    try:
        result = work()
        # Comments and formatting may differ; values may not.
        same = not isinstance(result, str) or layout.foreign(result) == layout.foreign(text)
    except BrokenJson as error:
        where = f"{path}:{line_of(text, error.at)}"
        raise InstallRefused(error.problem, where=where, fix="Correct the file, then run: holdfast up") from error
    if not same:
        raise InstallRefused("it cannot be edited safely", where=str(path), fix="Please report this file's shape.")
    return result


def _make_record(
    agent: Agent, level: str, path: Path, record: Record | None, before: bytes | None, after: bytes
) -> Record:
    # An update that changes nothing must not replace the record of the first installation.
    if record and before == after:
        return record
    original, new = _original_content(layout_of(agent), path, before, record), content_digest(after)
    # A file at home may hold keys, which must not be copied into our state folder.
    not_kept = original is not None and level == "user" and layout_of(agent).secret_at_home
    original = layout_of(agent).outline(_decode_settings(path, original)) if not_kept else original
    # Hashes count only with their original: somebody may check out an older version of the file.
    earlier = record.results if record and record.original == original else ()
    return Record(
        path=str(path),
        agent=agent.name,
        level=level,
        original=original,
        results=(*(r for r in earlier if r != new), new)[-KEPT_RESULTS:],
        part=_record_suffix(_layout_name(agent)),
        # Only the first installation makes folders; later ones find them.
        made_folders=(record.made_folders if record else 0) or locations.missing_folders(path),
        made_file=_made_by_us(record) if record else before is None,
        not_kept=not_kept,
    )


def _original_content(layout: Layout, path: Path, now: bytes | None, record: Record | None) -> bytes | None:
    """The file without us: the exact bytes if nobody else wrote since, else everything but our entries."""
    if now is None:
        return None
    # Nobody wrote since: the exact original can be restored.
    if record and record.wrote(now) and not record.not_kept:
        return record.original
    text = _decode_settings(path, now)
    if not _edit_safely(layout, path, text, lambda: layout.find_entries(text)):
        return now
    # What somebody changed in a file of ours may be worth keeping.
    if layout.all_ours and record:
        raise InstallRefused("it was changed", where=str(path), fix="Move it away and try again.")
    before = _decode_settings(path, record.original) if record and record.original else ""
    rest = _edit_safely(layout, path, text, lambda: layout.without_ours(text, before))
    # A file that we made, and that holds nothing of others, is removed.
    return None if (_made_by_us(record) or not rest) and not layout.foreign(rest) else rest.encode()


def _made_by_us(record: Record | None) -> bool:
    return record is not None and (record.made_file or (record.original is None and not record.not_kept))


def _put_in(plan: Plan, record: Record, records: Records, now: bytes | None) -> None:
    with locations.refuse_on_os_error(records.folder):
        records.write_record(record)
        # An earlier removal withdrew the permission to write outside the state folder.
        Footprint(plan.state).allow()
    if now == plan.after:
        return
    with locations.refuse_on_os_error(plan.path):
        plan.path.parent.mkdir(parents=True, exist_ok=True)
    locations.replace_file(plan.path, plan.after)


def _take_out(plan: Plan, records: Records, now: bytes | None) -> None:
    """The record goes last: until then a second try finds everything it needs."""
    record = records.read_record(plan.path, _record_suffix(plan.layout))
    # An interrupted write left a partial file.
    if now != plan.after or locations.partial_of(plan.path).exists():
        locations.replace_file(plan.path, plan.after)
    for folder in list(plan.path.parents)[: record.made_folders if record else 0]:
        # Innermost first; a folder with other contents stays.
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    records.drop(plan.path, _record_suffix(plan.layout))


__all__ = [
    "Double",
    "InstallRefused",
    "Installed",
    "Plan",
    "apply_plan",
    "duplicate_hooks",
    "install_hooks",
    "installed_hooks",
    "plan_install",
    "plan_removal",
    "remove_hooks",
    "verify_installation",
]
