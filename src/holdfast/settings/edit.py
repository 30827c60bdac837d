"""Changing one value of a settings file as a careful person would: comments, order and everything else stay."""

import io
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.util import load_yaml_guess_indent

from holdfast import trust
from holdfast.core.errors import BadSettings
from holdfast.paths import private_folder, write_atomically
from holdfast.settings.document import parse, parse_text
from holdfast.settings.file import read_file
from holdfast.settings.node import Node, Source
from holdfast.settings.notice import Notice
from holdfast.settings.settings import FILES, Settings


def set_value(settings: Settings, layer: str, dotted: str, value: Any, project: str | Path = "") -> tuple[Notice, ...]:
    """Writes only what holds; else BadSettings and nothing is changed. Text is read as YAML where that fits.

    Answers what is still to be said about the project's settings (that the file must be trusted first, say).
    """
    path = _path(settings, layer, project)
    before = read_file(path) or b""
    _readable(before, layer, path)
    content = _first_that_holds(settings, layer, path, before, dotted, _readings(value))
    trusted = layer != "user" and trust.trusted(path, before, settings.config_dir)
    private_folder(path.parent) if layer == "user" else path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path.resolve(), content, _mode(path, layer))
    if trusted:  # it was the user who changed it
        trust.trust(path, content, settings.config_dir)
    return settings.load(project).notices


def _path(settings: Settings, layer: str, project: str | Path) -> Path:
    if layer not in FILES:
        raise BadSettings(f"there is no layer {layer!r}", fix=f"Use one of: {', '.join(FILES)}.")
    if layer != "user" and not str(project):
        raise BadSettings(f"the layer {layer!r} needs a project")
    return settings.file(layer, project)


def _mode(path: Path, layer: str) -> int:
    """A project's file is committed and read by colleagues; the others are the user's own."""
    return path.stat().st_mode & 0o777 if path.exists() else (0o644 if layer == "project" else 0o600)


def _readable(content: bytes, layer: str, path: Path) -> None:
    root, notices = parse(content, Source(layer, str(path)))
    if notices and not root.value:
        raise BadSettings(notices[0].message, where=f"{path}:{notices[0].line}", fix="Correct it there first.")


def _readings(value: Any) -> list[Any]:
    if not isinstance(value, str):
        return [value]
    read = Node(parse_text(value, Source("", "")), Source("", "")).plain()
    return [read, value] if read not in (value, {}) else [value]


def _first_that_holds(settings: Settings, layer: str, path: Path, before: bytes, dotted: str, values: list) -> bytes:
    complaint = None
    for value in values:
        content = _edited(before, dotted.split("."), value)
        complaint = _complaint(settings.check(layer, path, content), settings.full_name(dotted))
        if complaint is None:
            return content
    assert complaint is not None
    raise BadSettings(complaint.message.rstrip("."), where=str(path), fix=complaint.fix.replace(_BELOW, ""))


_BELOW = "Until it is corrected, what the layer below says counts."


def _complaint(notices: tuple[Notice, ...], dotted: str) -> Notice | None:
    """About this value, what it is part of, or what is part of it; older faults elsewhere do not stand in the way."""

    def about(notice: Notice) -> bool:
        return (
            not notice.path or f"{notice.path}.".startswith(f"{dotted}.") or f"{dotted}.".startswith(f"{notice.path}.")
        )

    return next((notice for notice in notices if about(notice)), None)


def _edited(before: bytes, names: list[str], value: Any) -> bytes:
    text = before.decode("utf-8-sig")
    root, indent, offset = load_yaml_guess_indent(text) if text.strip() else (None, None, None)
    yaml = YAML()
    yaml.preserve_quotes, yaml.width = True, 4096
    if indent:
        yaml.indent(mapping=2, sequence=indent, offset=offset or 0)
    root = yaml.load(text) if text.strip() else None
    root = CommentedMap() if root is None else root
    _put(root, names, value)
    out = io.BytesIO()
    yaml.dump(root, out)
    return out.getvalue()


def _put(node: Any, names: list[str], value: Any) -> None:
    for name in names[:-1]:
        if not isinstance(node.get(name), dict):
            node[name] = CommentedMap()
        node = node[name]
    node[names[-1]] = value
