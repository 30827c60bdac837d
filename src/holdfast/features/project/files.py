"""SESSION_STATE.md of each project, a copy for each day, and GLOBAL_STATE.md: views at their documented places."""

import hashlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.core.event import Event
from holdfast.core.feature import File
from holdfast.core.ports import Doc, Ref
from holdfast.features.project.document.text import HEAD_MARK, dump_yaml, format_time
from holdfast.features.project.document.v4 import global_document, project_document
from holdfast.features.project.settings import DEFAULTS, ProjectSettings
from holdfast.features.project.state import GLOBAL, PROJECT, Project

NAME = "SESSION_STATE.md"
HEAD = f"{HEAD_MARK} Tasks that are added here by hand become tasks; other changes are written over.\n"
SEAL = "# holdfast-seal: "


def files(ref: Ref, doc: Doc, settings: ProjectSettings | None) -> Iterator[File]:
    settings = settings or DEFAULTS
    if not settings.files:
        return
    if ref.kind == PROJECT.kind and doc.folder:
        content = seal_text(document_text(project_document(doc, doc.at)))
        folder = document_path(doc, settings).parent
        yield File(folder / NAME, content, ours=is_ours, adopt=partial(_adopt_file, doc))
        # One copy for each day, written over until the day is over.
        yield File(folder / "history" / format_time(doc.at)[:10] / NAME, content, ours=is_ours)
    elif ref.kind == GLOBAL.kind:
        content = seal_text(document_text(global_document(doc)))
        yield File(Path(settings.global_file).expanduser(), content, ours=is_ours)


def document_path(doc: Project, settings: ProjectSettings) -> Path:
    return Path(settings.sessions_folder).expanduser() / doc.folder / NAME


def _adopt_file(doc: Project, path: Path, content: bytes) -> list[Event]:
    from holdfast.features.project.document.adoption import adopt_document

    return adopt_document(doc, path, content, time.time_ns() // 1_000_000)


def document_text(document: dict[str, Any]) -> str:
    """Each section under its own line."""
    parts = [HEAD]
    for name, value in document.items():
        if isinstance(value, dict | list):
            parts.append(f"\n# {'─' * 4} {name} {'─' * (100 - len(name))}\n")
        parts.append(dump_yaml({name: value}))
    return "".join(parts)


def seal_text(written: str) -> bytes:
    content = written.encode()
    return content + f"{SEAL}{_content_digest(content)}\n".encode()


def is_ours(content: bytes) -> bool:
    """Whether it is exactly what we wrote: a hand-edited file is not, nor is another program's."""
    body, _, seal = content.rpartition(SEAL.encode())
    return bool(body) and seal.strip() == _content_digest(body).encode()


def _content_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
