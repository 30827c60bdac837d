"""Seed 001: state files of version 3 and 4, read as version 4, and checked."""

from holdfast.features.project.document.old_formats import (
    convert_next_actions_to_tasks,
    decode_text,
    derive_state_from_v3,
    migrate_v3_to_v4,
    parsed,
    read_state,
)
from holdfast.features.project.document.schema import check

__all__ = [
    "check", "convert_next_actions_to_tasks", "decode_text", "derive_state_from_v3", "migrate_v3_to_v4", "parsed", "read_state",
]  # fmt: skip
