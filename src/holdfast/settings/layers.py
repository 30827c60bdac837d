"""Where the layers of the settings lie, how they are read, and how a hook gets them fast."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from holdfast.core.section import Section
from holdfast.paths import NotRegular, default_config_dir, open_regular
from holdfast.settings import trust
from holdfast.settings.resolve import Notices, Resolved, resolve_sections
from holdfast.settings.sections import FOUNDATION, Node, Notice, Source

# The bytes of a settings file. Apart from what understands YAML: a daemon starts without that where there is no file.

MOST_BYTES = 256 * 1024  # a parser in Python takes a third of a second for this much


class Refused(Exception):
    """This file is not read any further."""

    def __init__(self, message: str, mark: Any = None) -> None:
        super().__init__(message)
        self.line = mark.line + 1 if mark else 0
        self.column = mark.column + 1 if mark else 0


def read_file(path: Path) -> bytes | None:
    """None when there is no such file. At most one byte more than is allowed is read, and never from a pipe."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NotRegular:
        raise Refused("not a plain file") from None


# Where else a section is found: names at the top of a settings file, and files that another tool made popular.


@dataclass(frozen=True)
class OtherPlacements:
    names: tuple[str, ...] = ()
    """Of the section, those that may also stand at the top of a settings file."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Layer → the file that is the section as a whole."""


@dataclass(frozen=True)
class SectionFile:
    layer: str
    section: str
    path: Path


def section_files(sections: Mapping[str, OtherPlacements], home: Path, project: str | Path) -> list[SectionFile]:
    files = []
    for section, elsewhere in sections.items():
        for layer, name in elsewhere.files.items():
            if layer == "user" or str(project):
                files.append(SectionFile(layer, section, (home if layer == "user" else Path(project)) / name))
    return files


def as_section(root: Node, section: str) -> Node:
    return Node({section: root} if root.value else {}, root.source)


def move_into_sections(root: Node, sections: Mapping[str, OtherPlacements]) -> Node:
    """`requirements:` at the top becomes `gates: requirements:`; what stands in the section itself goes before it."""
    for section, elsewhere in sections.items():
        for name in elsewhere.names:
            if name in root.value:
                _move_into_section(root, section, name)
    return root


def _move_into_section(root: Node, section: str, name: str) -> None:
    node = root.value.pop(name)
    below = root.value.setdefault(section, Node({}, node.source, node.line, node.column))
    if below.value is None:
        below.value = {}
    if isinstance(below.value, dict):
        already = below.value.get(name)
        if already is not None and isinstance(already.value, dict) and isinstance(node.value, dict):
            # The section's own names win over those at the top of the file.
            already.value = {**node.value, **already.value}
        else:
            below.value.setdefault(name, node)


# The highest layer: `HOLDFAST_<SECTION>__<NAME>=value`, deeper names with further double underscores.

PREFIX = "HOLDFAST_"


def environment_layer(environ: Mapping[str, str]) -> Node:
    root = Node({}, Source("environment", "environment"))
    for variable in sorted(environ):
        # Variables with single underscores are switches of programs, not settings.
        if variable.startswith(PREFIX) and "__" in variable:
            source = Source("environment", f"${variable}")
            _put_leaf(
                root,
                variable.removeprefix(PREFIX).lower().split("__"),
                Node(_environment_value(environ[variable], source), source),
            )
    return root


def _environment_value(text: str, source: Source) -> object:
    """A scalar stays text: the model turns it into what it needs, and a password of digits stays a password."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    from holdfast.settings.yaml_document import parse_text

    return parse_text(text, source)


def _put_leaf(node: Node, names: list[str], leaf: Node) -> None:
    for name in names[:-1]:
        node = node.value.setdefault(name, Node({}, leaf.source))
        # A longer name replaces a scalar that a shorter variable set.
        if not isinstance(node.value, dict):
            node.value = {}
    node.value[names[-1]] = leaf


# Where the layers lie, and how they are read.

# From the lowest to the highest.
FILES = ("user", "project", "local")
MOST_GONE = 2000
"""Files that are not there, whose time is remembered."""
MOST_LOADS = 3
"""Files that somebody keeps changing are taken as they are."""


class Settings:
    """`sections`: what the features add, section name → its struct. This file knows none of them."""

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
        # What was read and when it was changed must belong together: an agent's change is told from a person's by its time.
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
        """In ms, by the inode's time, which no program can set back; of a file that is gone, by its folder's."""
        try:
            # The time of modification can be set by any program; the inode's cannot.
            changed = path.lstat().st_ctime_ns // 1_000_000
        except OSError:
            return self._gone_since(path)
        self._gone.pop(path, None)
        return changed

    def _gone_since(self, path: Path) -> int:
        """As it was when the file was first missed: what others write into that folder later says nothing of it.

        The agents and the daemon keep files of their own beside ~/.claude/requirements.yaml.
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
        # `free` is false for a project's file that nobody has trusted.
        foreign = any(layer.value and not layer.source.free for layer in layers)
        found = resolve_sections(self.sections, [*layers, environment_layer(self.environ)], notices)
        return self._with_users_share(found, foreign) if str(project) else found

    def _with_users_share(self, resolved: Resolved, foreign: bool) -> Resolved:
        """Tells sections what the user's own files say. A project nobody trusted can only add to that and tighten it."""
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
                    # Below the settings file of the same layer, so that this one wins.
                    layers.append(as_section(self._layer(layer, file.path, trusted, notices), file.section))
            layers.append(move_into_sections(self._layer(layer, path, trusted, notices), self.elsewhere))
        return layers

    def section_of(self, path: Path, section: str) -> Resolved:
        """That file alone as a whole settings file, or as the section itself; a person named it, so it is trusted."""
        notices = Notices()
        # As the user's own layer: a person who names a file has looked at it.
        root = self._layer("user", path, {}, notices)
        known_names = {*self.sections, *(name for e in self.elsewhere.values() for name in e.names)}
        whole = root if set(root.value) <= known_names else as_section(root, section)
        return resolve_sections(self.sections, [move_into_sections(whole, self.elsewhere)], notices)

    def defaults(self) -> Resolved:
        return resolve_sections(self.sections, [], Notices())

    def full_name(self, dotted: str) -> str:
        """`requirements.x` is `gates.requirements.x` where it may stand at the top."""
        first = dotted.partition(".")[0]
        return next((f"{name}.{dotted}" for name, e in self.elsewhere.items() if first in e.names), dotted)

    def check(self, layer: str, path: Path, content: bytes) -> tuple[Notice, ...]:
        """What would be said about that content, were it the file's."""
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
        # Trust is for this very content: a file that changes must be trusted again.
        free = source.free or trust.is_trusted(path, content, trusted)
        root, problems = _parse_yaml(content, Source(layer, str(path), free))
        for notice in problems:
            notices.add(notice)
        return root


def _parse_yaml(content: bytes, source: Source) -> tuple[Node, list[Notice]]:
    from holdfast.settings.yaml_document import parse_document

    return parse_document(content, source)


# Settings at the speed of a hook: files are looked at once a second at most, and a fault never gets out.

SETTLED_S = 1.0
YOUNG_FRESH_S = 0.1
"""A file that changed less than the first ago may still be being written, and is looked at again after the second."""

# For each file its stamp; None where there is no such file.
Signature = tuple[tuple[int, ...] | None, ...]


@dataclass(slots=True)
class _Entry:
    resolved: Resolved
    signature: Signature | None
    until: float
    used: float


class SettingsCache:
    def __init__(
        self, settings: Settings, *, clock: Callable[[], float] = time.monotonic, fresh: float = 1.0, limit: int = 256
    ) -> None:
        self.settings, self.clock, self.fresh, self.limit = settings, clock, fresh, limit
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Lock()

    def for_project(self, project: str = "") -> Resolved:
        """Never raises. What is returned is shared: read it only."""
        now = self.clock()
        entry = self._entries.get(project)
        # Without the lock: reading an entry of a dictionary is safe, and hooks come at the same time.
        if entry is not None and now < entry.until:
            entry.used = now
            return entry.resolved
        with self._lock:
            return self._refresh(project, now)

    def look_again(self, project: str = "") -> Resolved:
        """As the files are at this moment: for commands of people, who have just changed one."""
        with self._lock:
            return self._refresh(project, self.clock())

    def forget(self) -> None:
        with self._lock:
            self._entries.clear()

    def _refresh(self, project: str, now: float) -> Resolved:
        entry = self._entries.get(project)
        signature = self._signature(project)
        # Without a signature it is not known whether something changed, so it is read again each time.
        if entry is None or signature is None or signature != entry.signature:
            entry = _Entry(self._load(project), signature, now, now)
            self._entries[project] = entry
            self._evict()
        fresh = min(self.fresh, YOUNG_FRESH_S) if _is_young(signature) else self.fresh
        entry.until, entry.used = now + fresh, now
        return entry.resolved

    def _load(self, project: str) -> Resolved:
        try:
            return self.settings.load(project)
        except Exception as error:  # P1: a hook must not fail for its settings
            notice = Notice(
                str(project)[:200], 0, 0, f"settings could not be read: {error!r}"[:300], "Defaults are used."
            )
            defaults = self.settings.defaults()
            return Resolved(defaults, defaults.trees, [notice])

    def _signature(self, project: str) -> Signature | None:
        """Taken before reading, so that a change in between is seen the next time. None: cannot be known."""
        try:
            # Trusting a file changes what it may set, so the list of trusted files counts, too.
            paths = [path for _, path in self.settings.all_files(project)] + [self.settings.config_dir / trust.FILE]
            return tuple(_file_stamp(path) for path in paths)
        except (ValueError, TypeError):
            return None

    def _evict(self) -> None:
        while len(self._entries) > self.limit:
            # The one that was not used for the longest time.
            del self._entries[min(self._entries, key=lambda name: self._entries[name].used)]


def _file_stamp(path: Path) -> tuple[int, ...] | None:
    try:
        file_stat = path.stat()
    except OSError:
        return None
    # Several numbers, because an editor may replace a file within one tick of the clock and keep its size.
    return file_stat.st_mtime_ns, file_stat.st_ctime_ns, file_stat.st_size, file_stat.st_ino


def _is_young(signature: Signature | None) -> bool:
    newest = max((max(stamp[:2]) for stamp in signature or () if stamp), default=0)
    return abs(time.time_ns() - newest) < SETTLED_S * 1_000_000_000


# The JSON Schema of a settings file, for editors.


def json_schema(settings: Settings) -> dict[str, Any]:
    references, parts = msgspec.json.schema_components(settings.sections.values(), ref_template="#/$defs/{name}")
    properties = dict(zip(settings.sections, references, strict=True))
    for section, elsewhere in settings.elsewhere.items():
        below = f"{properties[section]['$ref']}/properties"
        properties |= {name: {"$ref": f"{below}/{name}"} for name in elsewhere.names}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Holdfast settings",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "$defs": parts,
    }
