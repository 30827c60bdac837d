"""Transcripts as they get damaged: nothing is lost beside the damage, nothing is merged, and what is skipped is counted."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.analysis.transcripts import Found, ImportLocation, Skipped
from holdfast.core.event import Event
from holdfast.setup.imports import IMPORTERS
from tests.kit import World

SAMPLES = Path(__file__).parent / "samples"
FOLDERS = {"claude-code": ".claude/projects/-p", "codex": ".codex/sessions/2026/11/15"}
AGENTS = tuple(FOLDERS)
YEAR_MS = 365 * 86_400_000
ENDS = ("session.ended", "turn.ended")


def lines_of(agent: str) -> list[str]:
    return next(SAMPLES.glob("claude.jsonl" if agent == "claude-code" else "rollout-*")).read_text().splitlines()


def session_of(agent: str) -> str:
    records = map(json.loads, lines_of(agent))
    return next(
        one.get("sessionId") or one["payload"]["id"] for one in records if "sessionId" in one or "payload" in one
    )


def write(home: Path, agent: str, lines: list[str], name: str = "one") -> Path:
    folder = home / FOLDERS[agent]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{'rollout-' if agent == 'codex' else ''}{name}.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def read(home: Path, agent: str) -> tuple[list[Event], list[Skipped]]:
    place = ImportLocation(home, home)
    found: Iterator[Found] = (
        one for file in IMPORTERS[agent].find_files(place) for one in IMPORTERS[agent].read(file, place)
    )
    events, skipped = [], []
    for one in found:
        (events if isinstance(one, Event) else skipped).append(one)  # type: ignore[arg-type]
    return events, [one for one in skipped if not one.expected]


def as_session(agent: str, ident: str, n: int) -> list[str]:
    """The same work by another session: with the same messages it would be a fork."""
    name = json.dumps(ident)[1:-1]
    return [line.replace(session_of(agent), name).replace('"uuid": "', f'"uuid": "{n}') for line in lines_of(agent)]


def deeds(events: list[Event]) -> list[tuple[str, str, str]]:
    """Without the ends, which a cut file has elsewhere."""
    return [(one.key, one.kind, one.session) for one in events if one.kind not in ENDS]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_file_that_is_cut_anywhere_says_what_it_said_until_then(agent: str, tmp_path: Path) -> None:
    file = write(tmp_path, agent, lines_of(agent))
    whole, content = deeds(read(tmp_path, agent)[0]), file.read_bytes()
    for cut in random.Random(7).sample(range(len(content)), 60):
        file.write_bytes(content[:cut])
        events, skipped = read(tmp_path, agent)
        assert deeds(events) == whole[: len(deeds(events))]
        # At most the line that is cut; each with the number of its line.
        assert len(skipped) <= 1 and all(one.where.rpartition(":")[2].isdigit() and one.why for one in skipped)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "repeat",
    [
        lambda lines: [line for line in lines for _ in range(2)],
        lambda lines: [*lines, *lines],
        lambda lines: [*lines, *lines[len(lines) // 2 :]],
    ],
)
def test_what_is_written_twice_happened_once(
    agent: str, repeat: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    write(tmp_path, agent, lines_of(agent))
    once = {(key, kind) for key, kind, _ in deeds(read(tmp_path, agent)[0])}
    write(tmp_path, agent, repeat(lines_of(agent)))
    world = World(tmp_path / "world")
    try:
        write(world.home, agent, repeat(lines_of(agent)))
        world.cli("import", agent)
        rows = world.view("sessions.list", all=True)["sessions"]
        told = [one.kind for one in world.events(session=session_of(agent))]
    finally:
        world.close()
    assert [row["id"] for row in rows] == [session_of(agent)]
    assert told.count("prompt.submitted") == sum(kind == "prompt.submitted" for _, kind in once)
    assert told.count("tool.finished") == sum(kind == "tool.finished" for _, kind in once)


def test_two_sessions_in_one_file_stay_two(tmp_path: Path) -> None:
    """Claude Code names the session in each record; an editor or a merge may mix two files."""
    one = lines_of("claude-code")
    other = [line.replace(session_of("claude-code"), "22222222-0000-4000-8000-000000000000") for line in one]
    other = [line.replace('"uuid": "', '"uuid": "2').replace('"toolu_', '"toolu_2') for line in other]
    write(tmp_path, "claude-code", one)
    alone = read(tmp_path, "claude-code")[0]
    write(tmp_path, "claude-code", [line for pair in zip(one, other, strict=True) for line in pair])
    events = read(tmp_path, "claude-code")[0]
    for session in (session_of("claude-code"), "22222222-0000-4000-8000-000000000000"):
        calls = [event.tool for event in events if event.session == session and event.kind == "tool.started"]
        assert calls == [event.tool for event in alone if event.kind == "tool.started"]


ODD = [
    "../../../etc/passwd", "a/b", "..", ".", "~root", "a\\b", "a\nb", "a\x00b", "\u202eevil", "x" * 5_000, "con", "-rf",
    "文档", "$(touch x)", "a'b\"c", "%2e%2e%2f",
]  # fmt: skip


@pytest.mark.parametrize("agent", AGENTS)
def test_ids_with_any_characters_are_sessions_of_their_own_and_no_paths(agent: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        for n, odd in enumerate(ODD):
            write(world.home, agent, as_session(agent, odd, n), f"f{n}")
        before = {path for path in tmp_path.rglob("*") if world.paths.state not in path.parents}
        world.cli("import", agent)
        rows = world.view("sessions.list", all=True, limit=100)["sessions"]
        assert len(rows) == len({row["id"] for row in rows}) == len(ODD)
        for row in rows:
            assert world.view("sessions.show", id=row["id"])["id"] == row["id"]
        made = {path for path in tmp_path.rglob("*") if world.paths.state not in path.parents} - before
        assert not [path for path in made if path.name in ("passwd", "b", "x")]
    finally:
        world.close()


@pytest.mark.parametrize("agent", AGENTS)
def test_ids_that_begin_alike_are_shown_apart(agent: str, tmp_path: Path) -> None:
    """Ids that grow with time share their first characters."""
    ids = [f"019ddb75-a272-7d50-b41d-{n:012x}" for n in (1, 2, 17)]
    world = World(tmp_path)
    try:
        for n, ident in enumerate(ids):
            write(world.home, agent, as_session(agent, ident, n), f"f{n}")
        world.cli("import", agent)
        rows = world.view("sessions.list", all=True)["sessions"]
        assert sorted(row["id"] for row in rows) == ids
        assert len({row["alias"] for row in rows}) == len(ids)
        for row in rows:
            assert world.json("session", "show", row["alias"])["id"] == row["id"]
        assert "019ddb75" in world.cli("session", "show", "019ddb75", code=1), "several begin with it: which is asked"
    finally:
        world.close()


def shifted(agent: str, by: Callable[[int], int]) -> list[str]:
    """Each record's time, moved by a clock that was set meanwhile."""
    from datetime import UTC, datetime

    def moved(n: int, record: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(record.get("timestamp"), str):
            return record
        at = datetime.fromisoformat(record["timestamp"]).timestamp() * 1000 + by(n)
        return {**record, "timestamp": datetime.fromtimestamp(max(0, at) / 1000, UTC).isoformat()}

    return [json.dumps(moved(n, json.loads(line))) for n, line in enumerate(lines_of(agent))]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "jump",
    [
        lambda n: -YEAR_MS if n % 2 else 0,
        lambda n: 20 * YEAR_MS if n == 12 else 0,
        lambda n: -n * 3_600_000,
        lambda _: -100 * YEAR_MS,
    ],
)
def test_clocks_that_jump_lose_nothing_and_no_figure_is_negative(
    agent: str, jump: Callable[[int], int], tmp_path: Path
) -> None:
    world = World(tmp_path)
    try:
        write(tmp_path / "plain", agent, lines_of(agent))
        calls = sum(event.kind == "tool.finished" for event in read(tmp_path / "plain", agent)[0])
        write(world.home, agent, shifted(agent, jump))
        world.cli("import", agent)
        (row,) = world.view("sessions.list", all=True)["sessions"]
        shown = world.view("sessions.show", id=row["id"])
        assert shown["tools"] == calls
        assert shown["duration_ms"] >= 0 and all(turn.get("duration_ms", 0) >= 0 for turn in shown["turns"])
        seqs = [entry["seq"] for entry in world.view("sessions.timeline", id=row["id"])["entries"]]
        assert len(seqs) == len(set(seqs)) > 0
    finally:
        world.close()


@pytest.mark.parametrize("agent", AGENTS)
def test_hostile_lines_are_counted_and_the_others_read(agent: str, tmp_path: Path) -> None:
    good = lines_of(agent)
    write(tmp_path, agent, good)
    whole = deeds(read(tmp_path, agent)[0])
    bad = ["[" * 100_000, '{"a":' * 5_000, '{"type": 7, "timestamp": 1e999}', '"text"', "null", '{"type": "user", "message": 3}',
           '{"\\ud800": "\\udfff"}', "\x00\x01", '{"type":"session_meta","payload":[]}']  # fmt: skip
    write(tmp_path, agent, [line for n, one in enumerate(good) for line in (one, bad[n % len(bad)])])
    events, skipped = read(tmp_path, agent)
    assert [one[1:] for one in deeds(events)] == [one[1:] for one in whole]
    # What is there twice is skipped as such.
    assert len(skipped) >= len(bad) - 1 and all(one.why for one in skipped)
