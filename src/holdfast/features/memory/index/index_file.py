"""The memory index as a file."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

TEXTS = ("prompt.submitted", "turn.ended", "turn.answer_read", "memory.observed", "memory.kept")
"""The events whose words are indexed."""
FOLDER = "derived"
"""In the state directory: files that can be rebuilt from the log; emptied when something is forgotten."""
FORMAT = 2
"""Raise it when the index or the tokenizer changes."""


def index_path(state_dir: Path) -> Path:
    return state_dir / FOLDER / "memory.npz"


def pack_index(arrays: Mapping[str, Any], about: Mapping[str, Any]) -> bytes:
    import numpy as np

    whole = io.BytesIO()
    words = np.frombuffer(msgspec.json.encode({**about, "format": FORMAT}), np.uint8)
    np.savez(whole, about=words, **arrays)
    return whole.getvalue()


def read_index(path: Path) -> tuple[dict[str, Any], dict[str, Any]] | None:
    import zipfile

    import numpy as np

    try:
        # Loading a pickle would run code from the file.
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        about = msgspec.json.decode(arrays.pop("about").tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, msgspec.DecodeError):
        return None
    return (arrays, about) if isinstance(about, dict) and about.get("format") == FORMAT else None


def remove_index(path: Path) -> None:
    mark_path(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def mark_path(path: Path) -> Path:
    """How far the file goes, readable without numpy."""
    return path.with_suffix(".json")


def mark_content(seq: int) -> bytes:
    return msgspec.json.encode({"format": FORMAT, "seq": seq})


def indexed_until(path: Path) -> int:
    try:
        content = msgspec.json.decode(mark_path(path).read_bytes())
        return int(content["seq"]) if content["format"] == FORMAT and path.is_file() else 0
    except (OSError, msgspec.DecodeError, KeyError, TypeError, ValueError):
        return 0
