"""Says what an undo or a rescue would do, as a difference of texts, before anything is touched."""

import difflib
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from holdfast.core.errors import CommandRefused
from holdfast.core.feature import Call
from holdfast.core.kinds.workspace_events import FileChange
from holdfast.core.times import now_ms
from holdfast.features.workspace import line_edits
from holdfast.features.workspace.content_store import UNKEPT, ContentStore, Seen, path_of, text_of
from holdfast.features.workspace.git_files import many_blobs
from holdfast.features.workspace.observe import WORKSPACE
from holdfast.features.workspace.recorder import Recorder
from holdfast.features.workspace.settings import DEFAULTS, WorkspaceSettings
from holdfast.features.workspace.timeline import Request, Step, Target, choose, read_steps, targets
from holdfast.features.workspace.watched_root import WatchedRoot, content_of

MOST_DIFF_LINES, MOST_DIFF_BYTES, CONTEXT = 400, 1 << 20, 3
WAIT_S = 15.0


class FilePlan(msgspec.Struct, frozen=True):
    path: str
    act: str
    """`restore`, `create`, `delete`, `mode` or `missing`: the earlier content is not kept any more."""
    added: int = 0
    removed: int = 0
    later: tuple[str, ...] = ()
    """Who changed the file again afterwards."""
    merged: bool = False
    """Whether those later changes stay; otherwise they are taken back too."""
    diff: str = ""


class Plan(msgspec.Struct, frozen=True):
    what: str
    root: str
    session: str
    id: str
    """Changes with the files it is about: a plan that was shown is carried out only if it still holds."""
    files: tuple[FilePlan, ...]
    targets: tuple[Target, ...]
    now: tuple[Seen, ...]


class Here(msgspec.Struct, frozen=True):
    """The worktree that a request is about."""

    recorder: Recorder
    root: WatchedRoot
    settings: WorkspaceSettings

    @property
    def name(self) -> str:
        return text_of(self.root.root)


def find_here(call: Call) -> Here:
    settings = call.settings or DEFAULTS
    if not settings.snapshots:
        raise CommandRefused(
            "snapshots are off here", fix="Switch them on with: holdfast config set workspace.snapshots on"
        )
    recorder = WORKSPACE.recorder(call.state_dir)
    folder = os.path.abspath(str(call.args.get("dir") or call.project))
    root = recorder.root_for(folder, settings) or recorder.lost_root(folder, settings)
    if root is None:
        raise CommandRefused(
            f"{folder} is in no git repository",
            fix="Go to your project and repeat it, or name it in workspace.folders.",
        )
    with recorder.lock:
        recorder.drain(root)
    return Here(recorder, root, settings)


def request_of(call: Call, root: str) -> Request:
    args = call.args
    own = call.session if call.caller and call.who.is_agent else ""
    paths = tuple(_relative(str(one), root) for one in args.get("paths") or ())
    words = {name: str(args.get(name) or "") for name in ("call", "session", "to")}
    return Request(**words, turn=bool(args.get("turn")), paths=paths, own=own)


def _relative(path: str, root: str) -> str:
    whole = os.path.normpath(os.path.join(root, path))
    if whole != root and not whole.startswith(f"{root}/"):
        raise CommandRefused(f"{path} is not in {root}")
    return text_of(os.path.relpath(whole, root))


def steps_of(call: Call, here: Here) -> list[Step]:
    """What is in the log. The background writes it within a moment; what was captured just now is waited for."""
    if not here.recorder.settle(WAIT_S):
        raise CommandRefused("the latest changes are still being recorded", fix="Repeat it in a moment.")
    return read_steps(call.reader, here.name, call.now, here.settings.days)


def plan_undo(call: Call) -> tuple[Here, Plan]:
    here = find_here(call)
    steps = steps_of(call, here)
    if not steps:
        raise CommandRefused("nothing changed here that Holdfast knows of", fix=_elsewhere(here))
    chosen = choose(steps, request_of(call, here.root.root), call.reader, call.now)
    return here, make_plan(here, chosen.what, chosen.session, targets(chosen))


def _elsewhere(here: Here) -> str:
    """A removed worktree is looked for in the one that is left."""
    known = here.recorder.store.known_roots().items()
    other = next((root for root, repo in known if repo == here.root.place.shared and root != here.root.root), "")
    return f"In another worktree: holdfast undo --dir {text_of(other)}" if other else "See: holdfast status"


def make_plan(here: Here, what: str, session: str, wanted: Sequence[Target]) -> Plan:
    with many_blobs(here.root.place.shared):
        return _make_plan(here, what, session, wanted)


def _make_plan(here: Here, what: str, session: str, wanted: Sequence[Target]) -> Plan:
    kept: list[tuple[Target, Seen]] = []
    files: list[FilePlan] = []
    for asked in wanted:
        now = here.root.state_of(path_of(asked.path))
        target = _keep_later(here, asked, now) if asked.later else asked
        if (now.id, now.mode) == (target.id, target.mode) and target.id != UNKEPT:
            continue
        file = _plan_file(here, target, now, merged=target is not asked)
        if file is None:
            continue
        files.append(file)
        if file.act != "missing":
            kept.append((target, now))
    digest = hashlib.sha256(msgspec.json.encode([[t.path, t.id, t.mode, n.id, n.mode] for t, n in kept]))
    return Plan(
        what,
        here.name,
        session,
        digest.hexdigest()[:16],
        tuple(files),
        tuple(t for t, _ in kept),
        tuple(n for _, n in kept),
    )


def _keep_later(here: Here, target: Target, now: Seen) -> Target:
    """The file without the chosen changes and with all others; as it was before where they cannot be separated."""
    store, repo = here.recorder.store, here.root.place.shared
    merged = content_of(store, repo, now.id) if now.id and target.id else None
    for before, after in reversed(target.runs):
        texts = [content_of(store, repo, one) if one else None for one in (after, before)]
        if merged is None or texts[0] is None or texts[1] is None:
            return target
        merged = line_edits.merge(texts[0], merged, texts[1])
    if merged is None or stat.S_ISLNK(now.mode):
        return target
    return msgspec.structs.replace(target, id=store.put(merged, now.id, now_ms()), mode=now.mode)


def _plan_file(here: Here, target: Target, now: Seen, *, merged: bool) -> FilePlan | None:
    change = FileChange(path=target.path, before=now.id, after=target.id, was=now.mode, mode=target.mode)
    before, after = contents(here.recorder.store, text_of(here.root.place.shared), change)
    if target.id and after is None:
        return FilePlan(target.path, "missing", later=target.later)
    if before == after and now.id and target.id and _same_mode(now.mode, target):
        return None
    diff, added, removed = text_diff(change, before, after)
    act = "delete" if not target.id else "create" if not now.id else "mode" if before == after else "restore"
    return FilePlan(target.path, act, added, removed, target.later, merged, diff)


def _same_mode(mode: int, target: Target) -> bool:
    if target.id.startswith("git:"):
        return bool(mode & 0o100) == bool(target.mode & 0o100) and stat.S_IFMT(mode) == stat.S_IFMT(target.mode)
    return mode == target.mode


def contents(store: ContentStore, repo: str, change: FileChange) -> tuple[bytes | None, bytes | None]:
    before, after = (content_of(store, path_of(repo), one) for one in (change.before, change.after))
    return before, after


def text_diff(change: FileChange, before: bytes | None, after: bytes | None) -> tuple[str, int, int]:
    """A unified difference, and how many lines it adds and removes."""
    head = f"--- {change.path if change.before else '/dev/null'}\n+++ {change.path if change.after else '/dev/null'}\n"
    if before is None or after is None:
        return f"{head}(not kept)\n", 0, 0
    if before == after:
        return f"{head}mode {change.was & 0o7777:o} -> {change.mode & 0o7777:o}\n", 0, 0
    if b"\0" in before[:8000] + after[:8000] or len(before) + len(after) > MOST_DIFF_BYTES:
        return f"{head}binary or large: {len(before):,} -> {len(after):,} bytes\n", 0, 0
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, after))
    lines = list(difflib.unified_diff(old, new, lineterm="", n=CONTEXT))[2:]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    shown = lines[:MOST_DIFF_LINES]
    if len(lines) > len(shown):
        shown.append(f"… {len(lines) - len(shown)} more lines")
    return head + "\n".join(shown) + "\n", added, removed


def as_answer(plan: Plan) -> dict[str, Any]:
    return {
        "what": plan.what, "root": plan.root, "session": plan.session, "id": plan.id,
        "files": [msgspec.to_builtins(one) for one in plan.files],
    }  # fmt: skip


def changed_files(here: Here, changes: Iterable[FileChange]) -> list[dict[str, Any]]:
    with many_blobs(here.root.place.shared):
        return list(_shown_files(here, changes))


def _shown_files(here: Here, changes: Iterable[FileChange]) -> Iterator[dict[str, Any]]:
    for change in changes:
        before, after = contents(here.recorder.store, text_of(here.root.place.shared), change)
        if before == after and before is not None and bool(change.before) == bool(change.after):
            continue
        diff, added, removed = text_diff(change, before, after)
        yield {"path": change.path, "added": added, "removed": removed, "diff": diff}
