"""Jobs of the code index: running it, cancelling stale runs, searching for suggestions."""

import os
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.analysis.redact import rules_environment
from holdfast.analysis.search.answer import Hit, Question
from holdfast.analysis.search.index import checkout, freshness
from holdfast.analysis.search.index.build import Result, Task
from holdfast.analysis.search.index.places import index_dir_of, root_of
from holdfast.analysis.search.searcher import NoIndex, cached_searcher
from holdfast.core import git
from holdfast.core.event import Event, own_event
from holdfast.core.feature import JobCall
from holdfast.core.job import Ran
from holdfast.core.kinds.reindex_events import ChunksSuggested, RunFinished
from holdfast.core.ports import EventQuery
from holdfast.features.reindex.files import is_home
from holdfast.features.reindex.settings import Settings, settings_or_default
from holdfast.features.reindex.state import FAILED, KILLED, NOT_READY, SKIPPED, TIMEOUT, UNCHANGED
from holdfast.paths import write_atomically

WORKER = [sys.executable, "-m", "holdfast.analysis.search.worker"]
# Lower priority than the agents' own work.
NICE = 15


def index(call: JobCall) -> list[Event]:
    """Never raises: a failed run ends too, or the next one would wait for it."""
    payload = call.job.payload
    try:
        settings = settings_or_default(call.settings(payload["project"]))
        outcome = _index_project(call, settings)
    except Exception as error:
        outcome = {"status": FAILED, "reason": f"{type(error).__name__}: {error}"[:500]}
    about = {name: str(payload.get(name) or "") for name in ("run", "trigger")}
    return [_finished_event(call, {**about, **outcome})]


def _index_project(call: JobCall, settings: Settings) -> dict[str, Any]:
    project = str(call.job.payload["project"])
    root, repo = checkout_of(project)
    if why := unfit_root_reason(root):
        return {"status": SKIPPED, "cause": NOT_READY, "reason": why, "root": root}
    index_dir = index_dir_of(call.state_dir, root)
    where = {"root": root, "branch": checkout.current_branch(root)}
    rebuild = call.job.payload.get("rebuild") is True
    # Sizes and times are compared here, before a process is started.
    if not rebuild and freshness.is_unchanged(index_dir, root, settings.index()):
        return {"status": UNCHANGED, "reason": "nothing changed", **where, **freshness.index_counts(index_dir)}
    task = Task(
        root=root, folder=str(index_dir.folder), run=str(call.job.payload["run"]), repo=repo, rebuild=rebuild,
        settings=settings.index(),
    )  # fmt: skip
    return {**where, **_run_worker(call, task, settings)}


def _run_worker(call: JobCall, task: Task, settings: Settings) -> dict[str, Any]:
    ran = call.run(
        WORKER,
        # Not in the checkout: no file there may be imported as a module.
        cwd="/",
        env=_worker_environment(settings),
        stdin=msgspec.json.encode(task),
        timeout=settings.timeout_s,
        nice=NICE,
    )
    if ran.timed_out:
        return {"status": TIMEOUT, "reason": f"it took longer than {settings.timeout_s} s"}
    try:
        result = msgspec.json.decode(ran.out, type=Result)
    except msgspec.DecodeError:
        # Without a result the worker did not finish.
        return {"status": KILLED, "reason": _last_words(ran)}
    counts = msgspec.structs.asdict(result.counts) | {"chunks": result.chunks, "new_chunks": result.counts.chunks}
    # Another process holds the index: not a failure.
    status = result.status if result.status != "claimed" else SKIPPED
    return {"status": status, "reason": result.reason, "note": result.note, "ms": result.ms, **counts}


def _last_words(ran: Ran) -> str:
    words = ran.err.decode("utf-8", "replace").strip().splitlines()
    return f"the run ended with code {ran.code}" + (f": {words[-1][:300]}" if words else "")


def _worker_environment(settings: Settings) -> dict[str, str]:
    # Only what the worker needs.
    names = {*git.KEPT_VARIABLES, "PYTHONPATH", "VIRTUAL_ENV", "HOLDFAST_FEATURES", settings.key_variable}
    return {name: os.environ[name] for name in names if name in os.environ} | dict(rules_environment())


def checkout_of(project: str) -> tuple[str, str]:
    """(the checkout's folder, its repository). A home folder under git is not the checkout of everything in it."""
    root, repo = root_of(project)
    return (project, "") if root != project and is_home(root) else (root, repo)


def unfit_root_reason(root: str) -> str:
    if not os.path.isdir(root):
        return f"{root} is not there"
    # A home folder or the root would index everything a person has.
    if os.path.realpath(root) == "/" or is_home(root):
        return f"{root} is no project"
    return "" if os.access(root, os.R_OK | os.X_OK) else f"{root} cannot be read"


def cancel(call: JobCall) -> list[Event]:
    """The run checks for this file a few times a second and stops; what it has done stays."""
    root, _ = checkout_of(str(call.job.payload["project"]))
    index_dir = index_dir_of(call.state_dir, root)
    if index_dir.folder.is_dir():
        write_atomically(index_dir.cancel, str(call.job.payload["run"]).encode("ascii", "replace"))
    return []


def _finished_event(call: JobCall, outcome: Mapping[str, Any]) -> Event:
    payload = call.job.payload
    finished = msgspec.convert(outcome, RunFinished)
    # `now` is when the job began; the run's duration gives its end.
    at = call.now + int(finished.ms)
    return own_event(finished, at, session=payload.get("session") or "", project=payload["project"])


# ── what fits a prompt ──────────────────────────────────────────────────────────────────────────────────────────────────

MOST_SUGGESTED = 3
SHORTEST_PROMPT = 12


def suggest(call: JobCall) -> list[Event]:
    payload = call.job.payload
    settings = settings_or_default(call.settings(payload["project"]))
    prompt = str(payload.get("prompt") or "").strip()
    if not settings.context or len(prompt) < SHORTEST_PROMPT:
        return []
    index_dir = index_dir_of(call.state_dir, checkout_of(payload["project"])[0])
    try:
        # In characters: a pasted file as a prompt is no question.
        answer = cached_searcher(index_dir).answer(Question(text=prompt[:2000], limit=MOST_SUGGESTED), settings.index())
    except NoIndex:
        return []
    fitting = [msgspec.to_builtins(hit) for hit in answer.hits if _is_relevant_hit(hit, settings.context_score)]
    # Checked after the search, which takes the time.
    if not fitting or not _is_newest(call, payload["session"], payload.get("of", 0)):
        return []
    suggested = ChunksSuggested(of=payload.get("of", 0), chunks=fitting)
    return [own_event(suggested, call.now, session=payload["session"], project=payload["project"])]


def _is_newest(call: JobCall, session: str, prompt: int) -> bool:
    """Whether the prompt is still the newest; another may have arrived during the search."""
    query = EventQuery(session=session, kinds=("prompt.submitted",), limit=1, newest=True)
    return all(event.seq <= prompt for event in call.reader.events(query))


def _is_relevant_hit(hit: Hit, least: float) -> bool:
    """Named outright, or close in meaning: a shared word alone does not justify a suggestion."""
    if "symbol" in hit.why or "path" in hit.why:
        return True
    near = [float(why.split()[1]) for why in hit.why if why.startswith("meaning ")]
    return bool(near) and near[0] >= least
