"""Views of the code index: status, search, why a file is indexed or not, and a session's flag."""

import contextlib
from collections.abc import Iterator
from typing import Any

import apsw
import msgspec

from holdfast.analysis.search import inspect, symbols
from holdfast.analysis.search.answer import Question
from holdfast.analysis.search.index import claim
from holdfast.analysis.search.index.build import read_progress
from holdfast.analysis.search.index.database import IndexDamaged
from holdfast.analysis.search.index.places import IndexDir, index_dir_of
from holdfast.analysis.search.searcher import NoIndex, cached_searcher
from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.ports import EventQuery
from holdfast.features.reindex.commands import required_project
from holdfast.features.reindex.jobs import checkout_of
from holdfast.features.reindex.settings import Settings, settings_or_default
from holdfast.features.reindex.state import CHECKOUT, SESSION, Checkout

LONGEST_QUESTION = 2_000
MOST_HITS = 100
RUNS = 10


def status(call: Call) -> dict[str, Any]:
    project = required_project(call)
    root, _ = checkout_of(project)
    index_dir = index_dir_of(call.state_dir, root)
    doc = _load_checkout(call)
    holder = claim.claim_holder(index_dir.claim)
    return {
        "project": project,
        "root": root,
        "index": _with_age(inspect.index_summary(index_dir), doc),
        "run": msgspec.to_builtins(doc.run),
        "progress": read_progress(index_dir) if holder else None,
        "claim": msgspec.structs.asdict(holder) if holder else None,
        "last": msgspec.to_builtins(doc.last),
        "decided": msgspec.to_builtins(doc.decided),
        "newest": msgspec.to_builtins(doc.newest),
        "now": call.now,
    }


def watch(call: Call) -> dict[str, Any]:
    """The part of `status` that waiting clients poll."""
    project = required_project(call)
    index_dir = index_dir_of(call.state_dir, checkout_of(project)[0])
    doc = _load_checkout(call)
    return {
        "run": msgspec.to_builtins(doc.run),
        "last": msgspec.to_builtins(doc.last),
        "progress": read_progress(index_dir),
    }


def runs(call: Call) -> list[dict[str, Any]]:
    """Decisions and ends, newest first, from the log."""
    query = EventQuery(
        project=required_project(call),
        kinds=("reindex.decided", "reindex.finished"),
        limit=int(call.args.get("limit") or RUNS),
        newest=True,
    )
    return [
        {"at": e.at, "kind": e.kind, "session": e.session, **e.data.as_dict()}
        for e in reversed(call.reader.events(query))
    ]


def search(call: Call) -> dict[str, Any]:
    text = str(call.args.get("query") or "").strip()
    if not text:
        raise CommandRefused("ask for something", fix='For example: holdfast search "where are retries counted"')
    index_dir, settings = _index_dir(call), _call_settings(call)
    question = Question(
        text=text[:LONGEST_QUESTION],
        lang=str(call.args.get("lang") or ""),
        path=str(call.args.get("path") or ""),
        kind=str(call.args.get("kind") or ""),
        limit=max(1, min(int(call.args.get("limit") or 10), MOST_HITS)),
    )
    with _translate_index_errors(call):
        answer = cached_searcher(index_dir).answer(question, settings.index())
    root, _ = checkout_of(required_project(call))
    return dict(_with_age({"query": question.text, "root": root, **msgspec.to_builtins(answer)}, _load_checkout(call)))


def related(call: Call) -> dict[str, Any]:
    """Code similar to `file`:`line`."""
    root, _ = checkout_of(required_project(call))
    path = inspect.path_within(root, str(call.args.get("file") or ""))
    line = max(1, int(call.args.get("line") or 1))
    limit = max(1, min(int(call.args.get("limit") or 10), MOST_HITS))
    known = _required_outline(call, path)
    if line > known.lines:
        raise CommandRefused(
            f"{path} has {known.lines} lines in the index, not {line}",
            fix=f"Its definitions: holdfast search outline {path}",
        )
    with _translate_index_errors(call):
        answer = cached_searcher(_index_dir(call)).related(path, line, limit, _call_settings(call).index())
    return {"path": path, "line": line, **msgspec.to_builtins(answer)}


def outline(call: Call) -> dict[str, Any]:
    """The definitions of a file, in order."""
    root, _ = checkout_of(required_project(call))
    path = inspect.path_within(root, str(call.args.get("file") or ""))
    return dict(msgspec.to_builtins(_required_outline(call, path)))


def _required_outline(call: Call, path: str) -> symbols.Outline:
    with _translate_index_errors(call), cached_searcher(_index_dir(call)).read() as db:
        known = symbols.file_outline(db, path)
    if known is None:
        raise CommandRefused(f"{path} is not in the index", fix=f"See why: holdfast search index why {path}")
    return known


def symbol(call: Call) -> dict[str, Any]:
    """A name: its definitions, uses and tests."""
    name = str(call.args.get("symbol") or "").strip()[:LONGEST_QUESTION]
    if not name:
        raise CommandRefused("a name is needed", fix="For example: holdfast search symbol parse_header")
    with _translate_index_errors(call), cached_searcher(_index_dir(call)).read() as db:
        return dict(msgspec.to_builtins(symbols.find_symbol(db, name)))


@contextlib.contextmanager
def _translate_index_errors(call: Call) -> Iterator[None]:
    try:
        yield
    except NoIndex:
        problem = f"{required_project(call)} has no index yet"
        raise CommandRefused(problem, fix="Run: holdfast search index run") from None
    except apsw.Error as error:
        raise IndexDamaged(str(error), fix="Run: holdfast search index rebuild") from None


def _with_age(summary: Any, doc: Checkout) -> Any:
    """`at`: when it last matched the checkout, which a run without changes confirms too."""
    return {**summary, "at": max(summary["at"], doc.good_at)} if summary and summary.get("at") else summary


def why(call: Call) -> dict[str, Any]:
    """Whether a file is indexed, and if not, why."""
    root, _ = checkout_of(required_project(call))
    name = str(call.args.get("file") or "")
    with _translate_index_errors(call):
        return inspect.explain_file(_index_dir(call), root, name, _call_settings(call).index())


def left_out(call: Call) -> list[dict[str, str]]:
    with _translate_index_errors(call):
        return inspect.files_left_out(_index_dir(call), int(call.args.get("limit") or 1000))


def flag(call: Call) -> dict[str, Any]:
    """For `should_show_first_prompt_status` and the seed's debug commands."""
    newest = _load_checkout(call).newest
    stored = newest.session_id if newest else ""
    session = str(call.args.get("session") or call.session or stored)
    doc = SESSION.load(call.reader, session) if session else None
    return {
        "known": doc is not None,
        "session_id": session,
        "stored_id": stored,
        "shown": bool(doc and doc.shown),
        "last_reindex": msgspec.to_builtins(doc.last_reindex) if doc else None,
        "state_file": settings_or_default(call.settings).state_file,
    }


def _load_checkout(call: Call) -> Checkout:
    project = required_project(call)
    return CHECKOUT.load(call.reader, project) or Checkout(project=project)


def _index_dir(call: Call) -> IndexDir:
    return index_dir_of(call.state_dir, checkout_of(required_project(call))[0])


def _call_settings(call: Call) -> Settings:
    return settings_or_default(call.settings)
