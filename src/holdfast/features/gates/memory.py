"""Whether any rules are in force on this machine, known also when the settings have been emptied."""

from pathlib import Path

from holdfast.paths import default_state_dir

NAME = "gates-in-force"
_known: dict[str, bool] = {}


def marker() -> Path:
    return default_state_dir() / NAME


def any_in_force() -> bool:
    """Asked for every hook: the file is looked at once, later changes are noted here."""
    path = str(marker())
    if path not in _known:
        _known[path] = marker().exists()
    return _known[path]


def note_in_force() -> None:
    """Rules were accepted that ask for something."""
    if not any_in_force():
        _known[str(marker())] = True
