"""Locates and reads the layers of the settings."""

import os
from collections.abc import Mapping
from pathlib import Path

from holdfast.core.section import Section
from holdfast.paths import default_config_dir
from holdfast.settings import trust
from holdfast.settings.bytes import Refused, read_file
from holdfast.settings.environment import environment_layer
from holdfast.settings.placements import OtherPlacements, SectionFile, as_section, move_into_sections, section_files
from holdfast.settings.resolve import Notices, resolve_sections
from holdfast.settings.resolved import Resolved
from holdfast.settings.sections import FOUNDATION, Node, Notice, Source

# From lowest to highest.
FILES = ("user", "project", "local")
MOST_GONE = 2000
"""How many missing files have their time remembered."""
MOST_LOADS = 3
"""Files that keep changing are read at most this often."""


class Settings:
    """`sections` are the sections of all features, by name; this module knows none of them."""

    def __init__(
        self,
        sections: Mapping[str, type[Section]] | None = None,
        *,
        config_dir: Path | None = None,
        environ: Mapping[str, str] | None = None,
        elsewhere: Mapping[str, OtherPlacements] | None = None,
    ) -> None:
        self.sections: dict[str, type[Section]] = {**FOUNDATION, **(sections or {})}
        self.config_dir = config_dir or default_config_dir()
        self.environ = os.environ if environ is None else environ
        self.elsewhere = elsewhere or {}
        self._gone: dict[Path, int] = {}

    def file(self, layer: str, project: str | Path = "") -> Path:
        if layer == "user":
            return self.config_dir / "settings.yaml"
        return Path(project) / ".holdfast" / ("settings.yaml" if layer == "project" else "settings.local.yaml")

    def files(self, project: str | Path = "") -> dict[str, Path]:
        """The layers that are files, lowest first. Without a project there is only the user's."""
        return {layer: self.file(layer, project) for layer in (FILES if str(project) else FILES[:1])}

    def section_files(self, project: str | Path = "") -> list[SectionFile]:
        return section_files(self.elsewhere, Path(self.environ.get("HOME") or Path.home()), project)

    def all_files(self, project: str | Path = "") -> list[tuple[str, Path]]:
        """(layer, path) of everything that is read."""
        return [*self.files(project).items(), *((f.layer, f.path) for f in self.section_files(project))]

    def load(self, project: str | Path = "") -> Resolved:
        # Content and change time must belong together: the time tells an agent's change from a person's.
        for _ in range(MOST_LOADS):
            changed = self._change_times(project)
            resolved = self._load_once(project)
            if self._change_times(project) == changed:
                break
        for section in resolved.values():
            section.__dict__["changed_at"] = max(changed, default=0)
        return resolved

    def _change_times(self, project: str | Path) -> list[int]:
        return [self._changed_at(path) for _, path in self.all_files(project)]

    def _changed_at(self, path: Path) -> int:
        """In ms, by ctime, which no program can set back; of a missing file, by its folder's."""
        try:
            # Any program can set mtime; ctime cannot be set.
            changed = path.lstat().st_ctime_ns // 1_000_000
        except OSError:
            return self._gone_since(path)
        self._gone.pop(path, None)
        return changed

    def _gone_since(self, path: Path) -> int:
        """When the file was first missed: later writes of others to the folder say nothing about it.

        Agents and the daemon keep files of their own next to ~/.claude/requirements.yaml.
        """
        if path not in self._gone:
            if len(self._gone) >= MOST_GONE:
                self._gone.clear()
            try:
                self._gone[path] = path.parent.lstat().st_ctime_ns // 1_000_000
            except OSError:
                self._gone[path] = 0
        return self._gone[path]

    def _load_once(self, project: str | Path) -> Resolved:
        notices = Notices()
        layers = self._layers(project, notices)
        # `free` is false for a project's file that nobody trusts.
        foreign = any(layer.value and not layer.source.free for layer in layers)
        found = resolve_sections(self.sections, [*layers, environment_layer(self.environ)], notices)
        return self._with_users_share(found, foreign) if str(project) else found

    def _with_users_share(self, resolved: Resolved, foreign: bool) -> Resolved:
        """Give sections the user's own share, to which an untrusted project can only add."""
        own = resolve_sections(
            self.sections, [*self._layers("", Notices()), environment_layer(self.environ)], Notices()
        )
        held = {
            name: section.within(own[name], foreign) if hasattr(section, "within") else section
            for name, section in resolved.items()
        }
        return Resolved(held, resolved.trees, resolved.notices)

    def _layers(self, project: str | Path, notices: Notices) -> list[Node]:
        trusted = trust.read_trusted(self.config_dir)
        layers = []
        for layer, path in self.files(project).items():
            for file in self.section_files(project):
                if file.layer == layer:
                    # Below the settings file of the same layer, which wins.
                    layers.append(as_section(self._layer(layer, file.path, trusted, notices), file.section))
            layers.append(move_into_sections(self._layer(layer, path, trusted, notices), self.elsewhere))
        return layers

    def section_of(self, path: Path, section: str) -> Resolved:
        """Read that file alone, as a settings file or as the section itself; a person named it, so it is trusted."""
        notices = Notices()
        # As the user's own layer: a person who names a file has looked at it.
        root = self._layer("user", path, {}, notices)
        known_names = {*self.sections, *(name for e in self.elsewhere.values() for name in e.names)}
        whole = root if set(root.value) <= known_names else as_section(root, section)
        return resolve_sections(self.sections, [move_into_sections(whole, self.elsewhere)], notices)

    def defaults(self) -> Resolved:
        return resolve_sections(self.sections, [], Notices())

    def full_name(self, dotted: str) -> str:
        """`requirements.x` is `gates.requirements.x` where it may appear at the top level."""
        first = dotted.partition(".")[0]
        return next((f"{name}.{dotted}" for name, e in self.elsewhere.items() if first in e.names), dotted)

    def check(self, layer: str, path: Path, content: bytes) -> tuple[Notice, ...]:
        """Return the notices that this content would cause."""
        root, problems = _parse_yaml(content, Source(layer, str(path)))
        notices = Notices(problems)
        resolve_sections(self.sections, [move_into_sections(root, self.elsewhere)], notices)
        return tuple(notices)

    def _layer(self, layer: str, path: Path, trusted: Mapping[str, str], notices: Notices) -> Node:
        source = Source(layer, str(path), free=layer == "user")
        try:
            content = read_file(path)
        except (OSError, ValueError, Refused) as error:
            notices.add(Notice(str(path), 0, 0, f"cannot be read: {error}", "It is left out."))
            content = None
        if content is None:
            return Node({}, source)
        # Trust is for this exact content: a changed file must be trusted again.
        free = source.free or trust.is_trusted(path, content, trusted)
        root, problems = _parse_yaml(content, Source(layer, str(path), free))
        for notice in problems:
            notices.add(notice)
        return root


def _parse_yaml(content: bytes, source: Source) -> tuple[Node, list[Notice]]:
    from holdfast.settings.yaml_document import parse_document

    return parse_document(content, source)
