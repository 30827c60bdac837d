"""The seed's file as a view: `logs/state/session-reindex-tracking.json`, of the newest session (S0-1, S0-2)."""

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.core.feature import File
from holdfast.core.feature import Settings as AnySettings
from holdfast.core.ports import Ref
from holdfast.features.reindex import state_file
from holdfast.features.reindex.settings import settings_or_default
from holdfast.features.reindex.state import CHECKOUT, Checkout, LastRun


def files(ref: Ref, doc: Checkout, settings: AnySettings) -> Iterator[File]:
    # No file in a home folder, in the root or in a folder that is gone.
    if ref.kind != CHECKOUT.kind or not doc.newest or not _may_hold(doc.project):
        return
    mine = settings_or_default(settings)
    path = Path(doc.project) / mine.state_file
    if not _stays_inside(path, doc.project):
        return
    yield File(
        path, state_file.render_state_file(doc.newest, mine.state_file_version, _last_run(doc)), mode=0o644, hidden=path
    )


def _may_hold(project: str) -> bool:
    return project.startswith("/") and project != "/" and os.path.isdir(project) and not _is_home(project)


def _is_home(folder: str) -> bool:
    return os.path.realpath(folder) == os.path.realpath(os.path.expanduser("~"))


def _stays_inside(path: Path, project: str) -> bool:
    """A repository may hold a link where our folder would be."""
    real = os.path.realpath(path.parent)
    root = os.path.realpath(project)
    return real == root or real.startswith(f"{root}{os.sep}")


def _last_run(doc: Checkout) -> LastRun | None:
    return LastRun(doc.last.trigger, doc.last.status, doc.last.at) if doc.last else None
