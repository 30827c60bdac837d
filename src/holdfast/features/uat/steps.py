"""The steps of a run as calls come and go. `doc` is a fresh copy of the run's document; its lists are not shared."""

from collections.abc import Mapping
from typing import Any

from holdfast.core.ports import Doc
from holdfast.features.uat.model import COMPLETED, FAILED, IN_PROGRESS, PENDING, SETTABLE, SKIPPED


def fresh(wanted: Mapping[str, Any]) -> Doc:
    return {"status": PENDING, "start": None, "end": None, "done": 0, "bad": 0, "wanted": int(wanted.get("calls", 1))}


def began(doc: Doc, number: int, at: int) -> None:
    """A call of that step is under way. The steps before it are over, whatever became of them."""
    if not _there(doc, number):
        return
    for earlier in range(min(doc["current"], number), number):
        _leave(doc, earlier)
    step = doc["steps"][number - 1]
    start = at if step["start"] is None else min(step["start"], at)
    _change(doc, number, status=IN_PROGRESS, start=start, end=None)
    doc["current"] = number


def called(doc: Doc, number: int, at: int, *, ok: bool) -> None:
    """A call of that step ended. A failed step may be tried again; a finished one may go on."""
    if not _there(doc, number):
        return
    step = doc["steps"][number - 1]
    done, bad = step["done"] + ok, step["bad"] + (not ok)
    status = FAILED if not ok else COMPLETED if done >= step["wanted"] else IN_PROGRESS
    end = None if status == IN_PROGRESS else at
    _change(doc, number, done=done, bad=bad, status=status, end=end)


def put(doc: Doc, number: Any, status: Any, at: int) -> None:
    """S3-17: by hand or by a hook."""
    if not _there(doc, number) or status not in SETTABLE:
        return
    step = doc["steps"][number - 1]
    start = at if step["start"] is None else step["start"]
    _change(doc, number, status=status, start=start, end=None if status == IN_PROGRESS else at)
    doc["current"] = number


def close(doc: Doc) -> None:
    """At the end of the run a step in the middle stays what it was: cut off, and visibly so."""
    for number, step in enumerate(doc["steps"], 1):
        if step["status"] == IN_PROGRESS and step["done"] >= 1 and not _running(doc, number):
            _change(doc, number, status=COMPLETED, end=step["end"] or doc["touched"])


def all_over(doc: Doc) -> bool:
    """The last step ended well: nothing of the scenario is left to do."""
    return bool(doc["steps"]) and doc["steps"][-1]["status"] == COMPLETED


def gave_up(doc: Doc) -> bool:
    """The last step failed and nobody is trying it again."""
    return bool(doc["steps"]) and doc["steps"][-1]["status"] == FAILED


def duration(step: Mapping[str, Any]) -> int | None:
    return None if step["start"] is None or step["end"] is None else max(0, step["end"] - step["start"])


def _leave(doc: Doc, number: int) -> None:
    if number < 1:
        return
    step = doc["steps"][number - 1]
    if step["status"] == PENDING:
        _change(doc, number, status=SKIPPED)
    elif step["status"] == IN_PROGRESS and not _running(doc, number):
        _change(doc, number, status=COMPLETED if step["done"] else FAILED, end=doc["touched"])


def _running(doc: Doc, number: int) -> bool:
    return any(entry["step"] == number for entry in doc["open"].values())


def _there(doc: Doc, number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= len(doc["steps"])


def _change(doc: Doc, number: int, **fields: Any) -> None:
    doc["steps"] = [{**s, **fields} if n == number else s for n, s in enumerate(doc["steps"], 1)]
