"""Changes one value of a settings file and keeps everything else."""

import io
import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.util import load_yaml_guess_indent

from holdfast.core.errors import BadSettings
from holdfast.paths import private_folder, write_atomically
from holdfast.settings import trust
from holdfast.settings.bytes import read_file
from holdfast.settings.layers import FILES, Settings
from holdfast.settings.sections import Node, Notice, Source
from holdfast.settings.yaml_document import parse_document, parse_text


def set_value(settings: Settings, layer: str, dotted: str, value: Any, project: str | Path = "") -> tuple[Notice, ...]:
    """Write the value if it is valid, else raise BadSettings and change nothing. Text is read as YAML where it fits.

    Returns remaining notices about the project's settings, e.g. that the file must be trusted first.
    """
    path = _layer_file(settings, layer, project)
    before = read_file(path) or b""
    _check_readable(before, layer, path)
    content = _first_that_holds(settings, layer, path, before, dotted, _possible_values(value))
    # Checked before the write, which changes the content and ends the trust.
    trusted = layer != "user" and trust.is_file_trusted(path, before, settings.config_dir)
    private_folder(path.parent) if layer == "user" else path.parent.mkdir(parents=True, exist_ok=True)
    # Follows links: a settings file linked into another folder stays a link.
    write_atomically(path.resolve(), content, _file_mode(path, layer))
    if trusted:  # it was the user who changed it
        trust.trust_file(path, content, settings.config_dir)
    return settings.load(project).notices


def _layer_file(settings: Settings, layer: str, project: str | Path) -> Path:
    if layer not in FILES:
        raise BadSettings(f"there is no layer {layer!r}", fix=f"Use one of: {', '.join(FILES)}.")
    if layer != "user" and not str(project):
        raise BadSettings(f"the layer {layer!r} needs a project")
    return settings.file(layer, project)


def _file_mode(path: Path, layer: str) -> int:
    """A project's file is committed and read by colleagues; the others are private."""
    return path.stat().st_mode & 0o777 if path.exists() else (0o644 if layer == "project" else 0o600)


def _check_readable(content: bytes, layer: str, path: Path) -> None:
    root, notices = parse_document(content, Source(layer, str(path)))
    # A partly wrong file may be changed; an unreadable one may not.
    if notices and not root.value:
        raise BadSettings(notices[0].message, where=f"{path}:{notices[0].line}", fix="Correct it there first.")


def _possible_values(value: Any) -> list[Any]:
    if not isinstance(value, str):
        return [value]
    read = Node(parse_text(value, Source("", "")), Source("", "")).plain()
    # First as YAML, then as text: a text field may refuse a number.
    return [read, value] if read not in (value, {}) else [value]


def _first_that_holds(
    settings: Settings, layer: str, path: Path, before: bytes, dotted: str, values: list[Any]
) -> bytes:
    complaint = None
    for value in values:
        content = _edit_document(before, dotted.split("."), value)
        complaint = _relevant_notice(settings.check(layer, path, content), settings.full_name(dotted))
        if complaint is None:
            return content
    assert complaint is not None
    raise BadSettings(complaint.message.rstrip("."), where=str(path), fix=_UNTIL.sub("", complaint.fix))


_UNTIL = re.compile(r"\s*Until it is corrected, .*")
"""Meaningless for a value that is not written."""


def _relevant_notice(notices: tuple[Notice, ...], dotted: str) -> Notice | None:
    """Return a notice about this value, its parent or a part of it; older faults elsewhere don't matter."""

    def about(notice: Notice) -> bool:
        return (
            not notice.path or f"{notice.path}.".startswith(f"{dotted}.") or f"{dotted}.".startswith(f"{notice.path}.")
        )

    return next((notice for notice in notices if about(notice)), None)


def _edit_document(before: bytes, names: list[str], value: Any) -> bytes:
    text = before.decode("utf-8-sig")
    root, indent, offset = load_yaml_guess_indent(text) if text.strip() else (None, None, None)
    yaml = YAML()
    # Long lines must not be folded, and quotes stay as typed.
    yaml.preserve_quotes, yaml.width = True, 4096
    # The indentation is detected, so that changing one value changes one line.
    if indent:
        yaml.indent(mapping=2, sequence=indent, offset=offset or 0)
    root = yaml.load(text) if text.strip() else None
    root = CommentedMap() if root is None else root
    _put_value(root, names, value)
    out = io.BytesIO()
    yaml.dump(root, out)
    return out.getvalue()


def _put_value(node: Any, names: list[str], value: Any) -> None:
    for name in names[:-1]:
        if not isinstance(node.get(name), dict):
            node[name] = CommentedMap()
        node = node[name]
    node[names[-1]] = value
