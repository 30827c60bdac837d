"""SESSION_STATE.md of each project, a copy for each day, GLOBAL_STATE.md: views in the seed's places (S1-18)."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.core.feature import File
from holdfast.core.ports import Doc, Ref
from holdfast.features.project import everywhere
from holdfast.features.project.document import document, lock, pattern
from holdfast.features.project.model import EVERYWHERE, PROJECT, iso
from holdfast.features.project.settings import DEFAULTS, ProjectSettings
from holdfast.features.project.yamltext import dump

NAME = "SESSION_STATE.md"
HEAD = "# Written by Holdfast from its log. What is changed here by hand is set aside at the next writing.\n"
SEAL = "# holdfast-seal: "


def files(ref: Ref, doc: Doc, settings: ProjectSettings | None) -> Iterator[File]:
    settings = settings or DEFAULTS
    if not settings.files:
        return
    if ref.kind == PROJECT and doc.get("folder"):
        content = sealed(text(document(doc, doc["at"])))
        folder = Path(settings.sessions_folder).expanduser() / doc["folder"]
        day = str(iso(doc["at"]))[:10]
        yield File(folder / NAME, content, ours=is_ours)
        yield File(folder / "history" / day / NAME, content, ours=is_ours)
    elif ref == EVERYWHERE:
        content = sealed(text(everywhere.document(doc, lock, pattern)))
        yield File(Path(settings.global_file).expanduser(), content, ours=is_ours)


def text(found: dict[str, Any]) -> str:
    """Each section under its own line, as in the seed."""
    parts = [HEAD]
    for name, value in found.items():
        if isinstance(value, dict | list):
            parts.append(f"\n# {'─' * 4} {name} {'─' * (100 - len(name))}\n")
        parts.append(dump({name: value}))
    return "".join(parts)


def sealed(written: str) -> bytes:
    content = written.encode()
    return content + f"{SEAL}{_digest(content)}\n".encode()


def is_ours(content: bytes) -> bool:
    """Whether it is exactly what we wrote: a hand-edited file is not, nor is another program's."""
    body, _, seal = content.rpartition(SEAL.encode())
    return bool(body) and seal.strip() == _digest(body).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
