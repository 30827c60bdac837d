"""Where the layers lie, and how they are read."""

import os
from collections.abc import Mapping
from pathlib import Path

from holdfast import trust
from holdfast.core.section import Section
from holdfast.paths import default_config_dir
from holdfast.settings.elsewhere import Elsewhere, SectionFile, as_section, lowered, section_files
from holdfast.settings.environment import environment_layer
from holdfast.settings.file import Refused, read_file
from holdfast.settings.node import Node, Source
from holdfast.settings.notice import Notice
from holdfast.settings.resolve import Notices, resolve
from holdfast.settings.resolved import Resolved
from holdfast.settings.sections import FOUNDATION

FILES = ("user", "project", "local")


class Settings:
    """`sections`: what the features add, section name → its struct. This file knows none of them."""

    def __init__(
        self,
        sections: Mapping[str, type[Section]] | None = None,
        *,
        config_dir: Path | None = None,
        environ: Mapping[str, str] | None = None,
        elsewhere: Mapping[str, Elsewhere] | None = None,
    ) -> None:
        self.sections: dict[str, type[Section]] = {**FOUNDATION, **(sections or {})}
        self.config_dir = config_dir or default_config_dir()
        self.environ = os.environ if environ is None else environ
        self.elsewhere = elsewhere or {}

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
        notices = Notices()
        layers = self._layers(project, notices)
        foreign = any(layer.value and not layer.source.free for layer in layers)
        found = resolve(self.sections, [*layers, environment_layer(self.environ)], notices)
        if foreign:
            found = self._hold_to_user(found)
        return self._dated(found, project)

    def _hold_to_user(self, found: Resolved) -> Resolved:
        """A project that nobody trusted can add and tighten; sections that know how are held to the user's own."""
        own = resolve(self.sections, [*self._layers("", Notices()), environment_layer(self.environ)], Notices())
        held = {name: one.held_to(own[name]) if hasattr(one, "held_to") else one for name, one in found.items()}
        return Resolved(held, found.trees, found.notices)

    def _dated(self, found: Resolved, project: str | Path) -> Resolved:
        """Sections know when what they were made from was last changed."""
        changed = max((_changed_at(path) for _, path in self.all_files(project)), default=0)
        for section in found.values():
            section.__dict__["changed_at"] = changed
        return found

    def _layers(self, project: str | Path, notices: Notices) -> list[Node]:
        known = trust.read(self.config_dir)
        layers = []
        for layer, path in self.files(project).items():
            for file in self.section_files(project):
                if file.layer == layer:
                    layers.append(as_section(self._layer(layer, file.path, known, notices), file.section))
            layers.append(lowered(self._layer(layer, path, known, notices), self.elsewhere))
        return layers

    def section_of(self, path: Path, section: str) -> Resolved:
        """That file alone as a whole settings file, or as the section itself; a person named it, so it is trusted."""
        notices = Notices()
        root = self._layer("user", path, {}, notices)
        known = {*self.sections, *(name for e in self.elsewhere.values() for name in e.names)}
        whole = root if set(root.value) <= known else as_section(root, section)
        return resolve(self.sections, [lowered(whole, self.elsewhere)], notices)

    def defaults(self) -> Resolved:
        return resolve(self.sections, [], Notices())

    def full_name(self, dotted: str) -> str:
        """`requirements.x` is `gates.requirements.x` where it may stand at the top."""
        first = dotted.partition(".")[0]
        return next((f"{name}.{dotted}" for name, e in self.elsewhere.items() if first in e.names), dotted)

    def check(self, layer: str, path: Path, content: bytes) -> tuple[Notice, ...]:
        """What would be said about that content, were it the file's."""
        root, found = _parsed(content, Source(layer, str(path)))
        notices = Notices(found)
        resolve(self.sections, [lowered(root, self.elsewhere)], notices)
        return tuple(notices)

    def _layer(self, layer: str, path: Path, known: Mapping[str, str], notices: Notices) -> Node:
        source = Source(layer, str(path), free=layer == "user")
        try:
            content = read_file(path)
        except (OSError, ValueError, Refused) as error:
            notices.add(Notice(str(path), 0, 0, f"cannot be read: {error}", "It is left out."))
            content = None
        if content is None:
            return Node({}, source)
        free = source.free or trust.is_trusted(path, content, known)
        root, found = _parsed(content, Source(layer, str(path), free))
        for notice in found:
            notices.add(notice)
        return root


def _changed_at(path: Path) -> int:
    """In ms, by the inode's time, which no program can set back; of its folder where the file is gone."""
    for one in (path, path.parent):
        try:
            return one.lstat().st_ctime_ns // 1_000_000
        except OSError:
            continue
    return 0


def _parsed(content: bytes, source: Source) -> tuple[Node, list[Notice]]:
    from holdfast.settings.document import parse

    return parse(content, source)
