"""Manages hook entries in the agents' settings: shown first, added without other changes, removed exactly."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from holdfast.core.agent import Agent
from holdfast.core.errors import InstallRefused
from holdfast.paths import default_state_dir
from holdfast.setup.install import hooks_text, locations
from holdfast.setup.install.json_edit import BrokenJson, line_of
from holdfast.setup.install.layouts import Layout, OwnFile, Settings
from holdfast.setup.install.locations import KEPT_RESULTS, HookEntry, Record, Records, content_digest
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


class Target:
    """An agent's settings file at one level: its content, how it holds our entries, and its record."""

    def __init__(self, agent: Agent, level: str, project: Path, state: Path | None = None) -> None:
        self.agent, self.level, self.layout = agent, level, layout_of(agent)
        self.state = state or default_state_dir()
        self.path = locations.settings_file(agent, level, project)
        self.name = agent.setup.layout if agent.setup else ""

    @cached_property
    def content(self) -> bytes | None:
        return locations.read_content(self.path)

    @cached_property
    def record(self) -> Record | None:
        return Records(self.state).read_record(self.path, _record_suffix(self.name))

    @cached_property
    def text(self) -> str:
        return self.decode(self.content)

    def decode(self, content: bytes | None) -> str:
        try:
            return (content or b"").decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1 if content else 1
            raise InstallRefused("it is not UTF-8", where=f"{self.path}:{line}", fix="Save it as UTF-8.") from error

    def edit(self, work: Callable[[], T]) -> T:
        """Unreadable files are not touched; written ones are parsed again before they are saved."""
        try:
            result = work()
            # Comments and formatting may differ; values may not.
            same = not isinstance(result, str) or self.layout.foreign(result) == self.layout.foreign(self.text)
        except BrokenJson as error:
            where = f"{self.path}:{line_of(self.text, error.at)}"
            raise InstallRefused(error.problem, where=where, fix="Correct the file, then run: holdfast up") from error
        if not same:
            where = str(self.path)
            raise InstallRefused("it cannot be edited safely", where=where, fix="Please report this file's shape.")
        return result

    def entries(self) -> list[HookEntry]:
        return self.edit(lambda: self.layout.find_entries(self.text))

    def plan(self, after: bytes | None, record: Record | None) -> "Plan":
        return Plan(self.agent.name, self.level, self.path, self.state, self.content, after, record, self.name)

    def record_of(self, after: bytes) -> Record:
        """What to remember of writing `after`."""
        record = self.record
        # An update that changes nothing must not replace the record of the first installation.
        if record and self.content == after:
            return record
        original, not_kept = self._kept_original()
        new = content_digest(after)
        return Record(
            path=str(self.path),
            agent=self.agent.name,
            level=self.level,
            original=original,
            results=(*(r for r in _earlier_results(record, original) if r != new), new)[-KEPT_RESULTS:],
            part=_record_suffix(self.name),
            # Only the first installation makes folders; later ones find them.
            made_folders=(record.made_folders if record else 0) or locations.missing_folders(self.path),
            made_file=_made_by_us(record) if record else self.content is None,
            not_kept=not_kept,
        )

    def _kept_original(self) -> tuple[bytes | None, bool]:
        """A file at home may hold keys, which must not be copied into our state folder."""
        original = self.original_content()
        not_kept = original is not None and self.level == "user" and self.layout.secret_at_home
        return (self.layout.outline(self.decode(original)) if not_kept else original), not_kept

    def original_content(self) -> bytes | None:
        """The file without us: the exact bytes if nobody else wrote since, else everything but our entries."""
        now, record = self.content, self.record
        if now is None:
            return None
        # Nobody wrote since: the exact original can be restored.
        if record and record.wrote(now) and not record.not_kept:
            return record.original
        if not self.entries():
            return now
        return self._without_entries(record)

    def _without_entries(self, record: Record | None) -> bytes | None:
        # What somebody changed in a file of ours may be worth keeping.
        if self.layout.all_ours and record:
            raise InstallRefused("it was changed", where=str(self.path), fix="Move it away and try again.")
        before = self.decode(record.original if record else None)
        rest = self.edit(lambda: self.layout.without_ours(self.text, before))
        # A file that we made, and that holds nothing of others, is removed.
        return None if (_made_by_us(record) or not rest) and not self.layout.foreign(rest) else rest.encode()


def _earlier_results(record: Record | None, original: bytes | None) -> tuple[str, ...]:
    """Hashes count only with their original: somebody may check out an older version of the file."""
    return record.results if record and record.original == original else ()


def _made_by_us(record: Record | None) -> bool:
    return record is not None and (record.made_file or (record.original is None and not record.not_kept))


def plan_install(agent: Agent, level: str, project: Path, state: Path | None = None) -> Plan:
    target = Target(agent, level, project, state)
    locations.refuse_unwritable(target.path)
    # Parsed again after the edit: foreign values must be unchanged.
    after = target.edit(lambda: target.layout.with_ours(target.text, agent, target.state)).encode()
    return target.plan(after, target.record_of(after))


def plan_removal(agent: Agent, level: str, project: Path, state: Path | None = None) -> Plan:
    target = Target(agent, level, project, state)
    after = target.original_content()
    # If nothing has to be removed, a read-only file is no problem.
    if after != target.content:
        locations.refuse_unwritable(target.path)
    return target.plan(after, None)


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
    return _installed_in(Target(agent, level, project, state))


def _installed_in(target: Target) -> list[Installed]:
    expected = target.layout.wanted(target.agent, target.state)
    return [
        Installed(
            event=hook.event,
            level=target.level,
            path=target.path,
            line=hook.line,
            entry=hook.entry,
            missing=hooks_text.missing_program(hook.entry),
            current=hook.entry == expected.get(hook.event),
        )
        for hook in target.entries()
    ]


def verify_installation(agent: Agent, level: str, project: Path, state: Path | None = None) -> list[str]:
    """Problems of an installation in words; empty if there are none."""
    target = Target(agent, level, project, state)
    entries = _installed_in(target)
    there = {item.event for item in entries}
    expected = target.layout.wanted(agent, target.state)
    wrong = [f"{target.path}: no hook for {event}" for event in expected if event not in there]
    wrong += [f"{item.path}:{item.line}: {item.missing} is not there" for item in entries if item.missing]
    wrong += [f"{item.path}:{item.line}: {item.event} is out of date" for item in entries if not item.current]
    if off := target.layout.switched_off(target.text):
        wrong.append(f"{target.path}: {off}, so no hook runs")
    return wrong


def lost_hooks(agents: Iterable[Agent], project: Path, state: Path | None = None) -> list[str]:
    """Settings files whose hooks of ours are no longer complete, in words."""
    lost = []
    for agent in agents:
        for level in locations.install_levels(agent):
            if Target(agent, level, project, state).record is None:
                continue
            try:
                wrong = verify_installation(agent, level, project, state)
            except InstallRefused as refusal:
                wrong = [refusal.problem]
            # An outdated one still runs.
            wrong = [problem for problem in wrong if not problem.endswith("is out of date")]
            if wrong:
                more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
                remedy = f"holdfast install --agent {agent.name} --{level}"
                lost.append(f"{agent.title}: Holdfast's hooks are missing ({wrong[0]}{more}): {remedy}")
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
