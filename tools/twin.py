"""Plays transcripts through the hooks, imports them into another state folder, and compares what both say."""

import json
import posixpath
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tools.players import CannotPlay, Player, Record, load_player, record_now  # noqa: E402

from holdfast.core.event import Event  # noqa: E402
from holdfast.core.kinds.check_events import CheckFinished  # noqa: E402
from tests.kit import World, wait_until  # noqa: E402

IGNORED = frozenset(
    "at began since now started_at ended_at end_at first last seq of upto first_seq last_seq events ms duration_ms idle "
    "process processed hook pid transcript injected recent looked as_of turn_at turn_end turn_first".split()
)
"""Times and numbers of events: a replay takes place now, and derives in a moment what took hours."""
ORIGINS = frozenset("origin source imported reason detail end branch content why_unknown".split())
"""An imported session says so, and only a live one can look at its worktree."""
DEEDS = frozenset(("prompt.submitted", "tool.started", "tool.finished", "tool.failed", "permission.denied"))
UNEQUAL = re.compile(r"\.summary\.text$|\.turns\[\d+\]\.(?:tokens\b|total_tokens|cost)")
"""A text that names the duration; and what turns cost, as the replay writes a transcript in a moment."""
ONE_SIDED = frozenset(("session.started", "session.ended", "git.acted", "decision.made"))
"""Rows that say where an import began and ended, what only a look at the worktree shows, and what an agent was told."""
NUMBER = re.compile(r"\[\d+\]")
MOST_SHOWN, ROUNDING = 12, 20
MOMENT_S = 0.002
"""Between records, so that no two of them have the same time."""


class Compared(NamedTuple):
    equal: int
    total: int
    differing: list[str]


class Twin(NamedTuple):
    agent: str
    views: dict[str, Compared]


def place_transcript(world: World, player: Player, transcript: Path) -> Path:
    name = transcript.name
    if player.agent == "codex":
        folder = world.home / ".codex" / "sessions"
        name = name if name.startswith("rollout-") else f"rollout-{name}"
    else:
        folder = world.home / ".claude" / "projects" / "-twin"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def play(world: World, player: Player, records: list[Record], transcript: Path) -> None:
    """The records appear in the session's transcript as the hooks fire."""
    path = place_transcript(world, player, transcript)
    env = {"CLAUDE_PROJECT_DIR": player.folder} if player.agent == "claude-code" else {}
    common = {"session_id": player.session, "transcript_path": str(path), "cwd": player.folder}

    def fire(hooks: Iterator[tuple[str, Record]]) -> None:
        for event, fields in hooks:
            world.reply(event, {**common, **fields}, agent=player.agent, env=env)

    with path.open("w") as file:
        fire(iter([("SessionStart", {"source": "startup"})]))
        for record in records:
            file.write(json.dumps(record_now(record)) + "\n")
            file.flush()
            time.sleep(MOMENT_S)
            fire(player.take(record))
        fire(player.end())


def views_of(world: World, session: str) -> dict[str, Any]:
    events = world.events(session=session)
    ran = {event.seq: event for event in events}
    checks = {(event.data.of, event.data.runner, event.data.kind, event.data.dir): event
              for event in events if event.kind == "check.finished"}  # fmt: skip
    return {
        "session": world.view("sessions.show", id=session),
        "timeline": _all_rows(world, session),
        "checks": Counter(_check_line(event, ran[event.data.of]) for event in checks.values()),
        "cost": world.view("cost.report", by="session"),
        "history": Counter(
            (event.kind, event.tool, str(event.get("command") or event.get("prompt") or ""))
            for event in events
            if event.kind in DEEDS
        ),
    }  # fmt: skip


def _all_rows(world: World, session: str) -> list[Record]:
    rows: list[Record] = []
    before = 0
    while True:
        page = world.view("sessions.rows", id=session, limit=500, **({"before": before} if before else {}))
        rows = [*page["rows"], *rows]
        before = page["older"]
        if not before:
            return [row for row in rows if row["kind"] not in ONE_SIDED]


def _check_line(event: Event, ran: Event) -> tuple[Any, ...]:
    data: CheckFinished = event.data
    # Where the folder is no repository on this machine, a live check names it from where the command ran.
    folder = posixpath.normpath(
        posixpath.join(event.project if ran.data.imported or ran.data.repo else ran.data.cwd, data.dir)
    )
    return data.runner, data.kind, folder, data.verdict, data.passed, data.failed, data.command


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in IGNORED | ORIGINS:
                yield from leaves(inner, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for n, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{n}]")
    elif not UNEQUAL.search(path):
        yield path, value


def compare(live: Any, imported: Any) -> Compared:
    if isinstance(live, Counter):
        return _compare_counts(live, imported)
    return _compare_rows(live, imported) if isinstance(live, list) else _compare_fields(live, imported)


def _compare_fields(live: Any, imported: Any, path: str = "") -> Compared:
    one, other = dict(leaves(live, path)), dict(leaves(imported, path))
    names = list(one | other)
    differing = [name for name in names if not _is_same(name, one.get(name), other.get(name))]
    lines = [f"{name}: live {one.get(name)!r:.90}, imported {other.get(name)!r:.90}" for name in differing]
    return Compared(len(names) - len(differing), len(names), lines)


def _is_same(name: str, one: Any, other: Any) -> bool:
    """Money is rounded per hour and commit, so sums of the same calls differ by some millionths of a dollar."""
    if "cost" in name and isinstance(one, int) and isinstance(other, int):
        return abs(one - other) <= ROUNDING
    return bool(one == other)


def _compare_rows(live: list[Record], imported: list[Record]) -> Compared:
    """Rows of the same happening are compared field by field; a row that only one side has differs in each field."""
    sides = [[(row["kind"], row["tool"], row["call"], row["text"][:60]) for row in rows] for rows in (live, imported)]
    found = [Compared(0, 0, [])]
    for what, i, j, k, m in SequenceMatcher(None, *sides, autojunk=False).get_opcodes():
        pairs = zip(live[i:j], imported[k:m], strict=False) if what in ("equal", "replace") else ()
        paired = min(j - i, m - k) if what in ("equal", "replace") else 0
        found += [_compare_fields(one, other, f"[{i + n}]") for n, (one, other) in enumerate(pairs)]
        found += [_missing("live", row) for row in live[i + paired : j]]
        found += [_missing("imported", row) for row in imported[k + paired : m]]
    return Compared(
        sum(one.equal for one in found),
        sum(one.total for one in found),
        [line for one in found for line in one.differing],
    )


def _missing(side: str, row: Record) -> Compared:
    line = f"only {side}: {row['kind']}: {row['tool']} {row['text']!r:.90}"
    return Compared(0, len(dict(leaves(row))), [line])


def _compare_counts(live: Counter[Any], imported: Counter[Any]) -> Compared:
    lines = [*(f"only live: {one}" for one in live - imported), *(f"only imported: {one}" for one in imported - live)]
    return Compared((live & imported).total(), (live | imported).total(), lines)


def compare_twins(transcript: Path, root: Path) -> Twin:
    player, records = load_player(transcript)
    live, imported = World(root / "live"), World(root / "imported")
    try:
        live.start()
        play(live, player, records, transcript)
        wait_until(lambda: _is_settled(live, player.session), "the live session is summed up")
        imported.start()
        shutil.copy(transcript, place_transcript(imported, player, transcript))
        imported.cli("import", player.agent)
        one, other = views_of(live, player.session), views_of(imported, player.session)
        return Twin(player.agent, {name: compare(one[name], other[name]) for name in one})
    finally:
        live.close()
        imported.close()


def _is_settled(world: World, session: str) -> bool:
    kinds = Counter(event.kind for event in world.events(session=session))
    did = kinds["prompt.submitted"] + kinds["tool.finished"] + kinds["tool.failed"]
    return kinds["session.summarised"] > 0 or (kinds["session.ended"] > 0 and not did)


Sums = dict[tuple[str, str], list[int]]


def main(transcripts: list[str]) -> Sums:
    """By agent and view: how many fields are equal, and of how many."""
    sums: Sums = {}
    often: Counter[tuple[str, str, str]] = Counter()
    for name in transcripts:
        twin = _compare_one(Path(name))
        for view, (equal, total, differing) in twin.views.items() if twin else ():
            before = sums.get((twin.agent, view), [0, 0])
            sums[twin.agent, view] = [before[0] + equal, before[1] + total]
            often.update((twin.agent, view, _field_of(line)) for line in differing)
            print(f"  {view:<9} {equal}/{total}")
            for line in differing[:MOST_SHOWN]:
                print(f"    {line}")
    for (agent, view, field), count in often.most_common(40):
        print(f"{count:>5}  {agent} {view} {field}")
    return sums


def _compare_one(transcript: Path) -> Twin | None:
    print(transcript)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return compare_twins(transcript, Path(folder))
    except (CannotPlay, OSError) as reason:
        print(f"  not played: {reason}")
    except Exception as error:  # One session of hundreds: it is named, and the others go on.
        print(f"  failed: {type(error).__name__}: {str(error)[:300]}")
    return None


def _field_of(line: str) -> str:
    """Without the number of the row, and of a missing row only its kind."""
    name, _, rest = line.partition(": ")
    return f"{name} {rest.partition(':')[0]}"[:60] if name.startswith("only") else NUMBER.sub("[]", name)


if __name__ == "__main__":
    for (agent, view), (equal, total) in sorted(main(sys.argv[1:]).items()):
        print(f"{agent:<12} {view:<9} {equal}/{total}  {100 * equal / max(1, total):.2f} %")
