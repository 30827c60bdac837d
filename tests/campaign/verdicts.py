"""Gate questions under load while the daemon is stopped and continued, also ended by force: what is answered is right, and what
did not arrive is on record."""

import itertools
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from holdfast.core.kinds.engine_events import AnswerUndelivered
from tests.campaign.acks import serving
from tests.kit import World, wait_until

FULL = 500
LOAD = 20
PAUSES_S = (1.5, 0.1, 2.6)
"""Slowed, hardly, and for longer than a question waits."""
KILL_EVERY = 9
RULES = "requirements:\n  planned: {manual: false}\n"


def run(folder: Path, size: int, load: int = LOAD) -> str:
    world = World(folder)
    (world.project / ".holdfast").mkdir()
    (world.project / ".holdfast" / "settings.yaml").write_text(RULES)
    try:
        serving(world)
        world.session("s").start()
        stop = threading.Event()
        thread = threading.Thread(target=_disturb, args=(world, stop, size >= FULL))
        thread.start()
        try:
            with ThreadPoolExecutor(load) as pool:
                answers = dict(pool.map(lambda n: _ask(world, n), range(size)))
        finally:
            stop.set()
            thread.join()
        return _judge(world, answers)
    finally:
        world.close()


def _ask(world: World, number: int) -> tuple[str, str]:
    """Every fourth only looks, and must never be refused."""
    call, looks = f"c{number}", number % 4 == 0
    tool = {"tool_name": "Read" if looks else "Edit", "tool_input": {"file_path": str(world.project / f"{number}.py")}}
    payload = {"session_id": "s", "cwd": str(world.project), "tool_use_id": call, **tool}
    reply = world.reply("PreToolUse", payload, python=number % 5 == 0)
    verdict = reply.get("hookSpecificOutput", {}).get("permissionDecision", "none")
    assert not (looks and verdict != "none"), f"{call} only looks, and got {verdict}"
    return call, "looked" if looks else verdict


def _disturb(world: World, stop: threading.Event, with_kills: bool) -> None:
    for number, pause in zip(itertools.count(1), itertools.cycle(PAUSES_S), strict=False):
        pid = world.pid
        if pid > 0:
            ended = with_kills and number % KILL_EVERY == 0
            _signal(pid, signal.SIGKILL if ended else signal.SIGSTOP)
            stop.wait(pause)
            _signal(pid, signal.SIGCONT)
        if stop.wait(0.3):
            return


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _judge(world: World, answers: dict[str, str]) -> str:
    lost = {call for call, verdict in answers.items() if verdict == "none"}
    assert set(answers.values()) <= {"deny", "none", "looked"}, "an answer is wrong"
    serving(world)
    wait_until(_all_recorded(world, lost), f"the {len(lost)} verdicts that did not arrive are on record")
    recorded = _recorded(world)
    delivered = {call for call, verdict in answers.items() if verdict == "deny"}
    assert not recorded & delivered, "a verdict that arrived is called lost"
    return f"{len(answers)} questions, 0 wrong, {len(lost)} not delivered, all of them on record"


def _all_recorded(world: World, lost: set[str]) -> Callable[[], bool]:
    return lambda: lost <= _recorded(world)


def _recorded(world: World) -> set[str]:
    found = world.events(kinds=("answer.undelivered",), limit=2_000)
    return {one.data.call for one in found if isinstance(one.data, AnswerUndelivered)}
