"""Waiting hooks, answers, links and notifications, with a real daemon and the real hook client."""

import http.client
import json
import random
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.held_questions import HeldQuestion, HeldQuestions
from tests.features.attention.servers import http_receiver
from tests.kit import World, hook_command, wait_until

NOW = 1_000_000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


class Asking:
    """A permission hook that waits."""

    def __init__(self, world: World, command: str, session: str = "s-1", *, python: bool = False) -> None:
        common = {"session_id": session, "transcript_path": "/x.jsonl", "cwd": str(world.project)}
        world.hook("UserPromptSubmit", {**common, "prompt": "clean up"})
        self._world, self._common, self._input = world, common, {"command": command}
        payload = {**common, "hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": self._input}
        self.process = subprocess.Popen(
            [*hook_command(python), "wait", "claude-code", "PermissionRequest"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=world.env, cwd=world.project,
        )  # fmt: skip
        assert self.process.stdin
        self.process.stdin.write(json.dumps(payload).encode())
        self.process.stdin.close()
        wait_until(lambda: bool(self.waits()), "the hook waits")

    def needs(self) -> list[dict[str, Any]]:
        return [one for one in self._world.view("attention.list")["needs"] if one["text"] == self._input["command"]]

    def waits(self) -> Any:
        return self.needs() and self._world.view("attention.show", id=self.needs()[0]["id"])["waits"]

    @property
    def id(self) -> str:
        return str(self.needs()[0]["id"])

    def run_in_terminal(self) -> None:
        self._world.hook(
            "PostToolUse", {**self._common, "tool_name": "Bash", "tool_input": self._input, "tool_use_id": "t1"}
        )

    def reply(self) -> dict[str, Any]:
        assert self.process.stdout
        out = self.process.stdout.read()
        assert self.process.wait(10) == 0
        return json.loads(out)["hookSpecificOutput"]["decision"] if out else {}


@pytest.mark.quick
@pytest.mark.parametrize("python", [False, True])
def test_an_answer_reaches_the_waiting_hook_once(world: World, python: bool) -> None:
    world.start()
    asking = Asking(world, "rm -rf build", python=python)
    named = asking.id
    world.cli("notify", "answer", named, "deny", "not now")
    assert asking.reply() == {"behavior": "deny", "message": "not now"}
    assert "settled" in world.cli("notify", "answer", named, "allow", code=1)
    (answered,) = world.events(kinds=("attention.answered",))
    assert (answered.data.verdict, answered.data.how, bool(answered.data.who)) == ("deny", "command line", True)


def test_what_is_settled_in_the_terminal_lets_the_hook_go(world: World) -> None:
    world.start()
    asking = Asking(world, "make clean")
    asking.run_in_terminal()
    assert asking.reply() == {}
    assert asking.needs() == []


def test_a_killed_hook_is_waited_for_no_longer(world: World) -> None:
    world.start()
    asking = Asking(world, "make clean")
    asking.process.kill()
    asking.process.wait()
    wait_until(lambda: not asking.waits(), "it is not held")
    assert "does not wait" in world.cli("notify", "answer", asking.id, "allow", code=1)


def test_the_daemons_end_ends_the_wait(world: World) -> None:
    world.start()
    asking = Asking(world, "make clean")
    world.cli("daemon", "stop")
    assert asking.reply() == {}


def test_with_no_seconds_nothing_waits(world: World) -> None:
    world.cli("config", "set", "attention.answer_seconds", "0")
    # A running daemon looks at its settings every second.
    world.cli("daemon", "restart")
    began = time.monotonic()
    done = world.hook(
        "PermissionRequest", {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}}, mode="wait"
    )
    assert done.stdout == b""
    assert time.monotonic() - began < 5


@pytest.mark.quick
def test_an_agent_cannot_answer_its_own_question(world: World) -> None:
    world.start()
    asking = Asking(world, "rm -rf build")
    agent = world.root / "codex"
    agent.write_text('#!/bin/bash\n"$@"\nexit $?\n')
    agent.chmod(0o755)
    words = [str(agent), "holdfast", "notify", "answer", asking.id, "allow"]
    refused = subprocess.run(words, env=world.env, cwd=world.project, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "person's to do" in refused.stdout + refused.stderr
    assert asking.waits()


# ── links ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def held(*keys: str) -> HeldQuestions:
    questions = HeldQuestions()
    for key in keys:
        questions.add(HeldQuestion(key, "s", "Bash", key, {}, NOW + 10_000, blocking=False))
    return questions


@pytest.mark.quick
def test_a_link_is_good_once_for_its_question_until_its_end():
    questions = held("a", "b")
    link, other = questions.new_link("a", NOW + 1000), questions.new_link("b", NOW + 1000)
    assert (questions.look_up(link, NOW), questions.look_up(link, NOW + 1000)) == ("a", "")
    swapped = f"{link.partition('.')[0]}.{other.partition('.')[2]}"
    assert questions.redeem(swapped, NOW) == ""
    assert (questions.redeem(link, NOW), questions.redeem(link, NOW)) == ("a", "")
    questions.remove("b")
    assert questions.redeem(other, NOW) == ""


@pytest.mark.quick
def test_none_of_ten_thousand_forged_links_is_taken():
    questions = held("a")
    link = questions.new_link("a", NOW + 1000)
    name, _, signature = link.partition(".")
    chance = random.Random(38)
    for _ in range(5_000):
        at = chance.randrange(len(signature))
        changed = signature[:at] + chance.choice("0123456789abcdef".replace(signature[at], "")) + signature[at + 1 :]
        assert questions.redeem(f"{name}.{changed}", NOW) == ""
        assert questions.redeem(f"{secrets.token_urlsafe(12)}.{signature}", NOW) == ""
    assert questions.redeem(link, NOW) == "a"


def ask_page(address: str, method: str, path: str, body: Any = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection(address.partition("//")[2], timeout=20)
    headers = {"content-type": "application/json"} if body is not None else {}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.fixture
def dashboard(world: World) -> Iterator[Callable[[], str]]:
    def start() -> str:
        told = world.cli("dashboard", "--no-open", "--json")
        return str(json.loads(told.splitlines()[-1])["data"]["address"])

    yield start
    world.cli("dashboard", "--stop", code=None)


def test_a_link_in_a_notification_answers_and_shows_nothing_without_the_code(world: World, dashboard: Any) -> None:
    with http_receiver() as got:
        rules = "attention:\n  rules: [{channels: [webhook]}]\n  typed_seconds: 0\n  link_code: tulip\n"
        config = world.root / "config"
        config.mkdir(exist_ok=True)
        file = config / "settings.yaml"
        file.write_text(f"{rules}  webhook: {got.address('/hook')}\n")
        world.start()
        address = dashboard()
        file.write_text(f"{rules}  webhook: {got.address('/hook')}\n  address: {address}\n")
        asking = Asking(world, "rm -rf build")
        wait_until(lambda: got.requests, "it is notified")
        link = json.loads(got.requests[0][2])["needs"][0]["link"]
    path = link.removeprefix(address)
    status, page = ask_page(address, "GET", path)
    assert (status, "rm -rf build" in page) == (403, False)
    assert ask_page(address, "POST", path, {"verdict": "allow", "code": "rose"})[0] >= 400
    status, page = ask_page(address, "POST", f"{path}/show", {"code": "tulip"})
    assert (status, "rm -rf build" in page, "clean up" in page) == (200, True, True)
    status, told = ask_page(address, "POST", path, {"verdict": "allow", "code": "tulip"})
    assert status == 200, told
    assert asking.reply() == {"behavior": "allow"}
    assert ask_page(address, "POST", path, {"verdict": "deny", "code": "tulip"})[0] >= 400
    assert [event.data.how for event in world.events(kinds=("attention.answered",))] == ["link"]


# ── notifications ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_waiting_is_notified_of_within_two_seconds_and_never_twice(world: World) -> None:
    took = []
    with http_receiver() as got:
        (world.root / "config").mkdir(exist_ok=True)
        text = (
            f"attention:\n  rules: [{{channels: [webhook]}}]\n  typed_seconds: 0\n  webhook: {got.address('/hook')}\n"
        )
        (world.root / "config" / "settings.yaml").write_text(text)
        world.start()
        asked = []
        for n in range(5):
            began, before = time.monotonic(), len(got.requests)
            asked.append(Asking(world, f"make {n}", session=f"s-{n}"))
            wait_until(lambda before=before: len(got.requests) > before, "it is notified")
            took.append(time.monotonic() - began)
        for one in asked:
            one.run_in_terminal()
            one.reply()
        named = [need["id"] for _, _, body in got.requests for need in json.loads(body)["needs"]]
    assert len(named) == len(set(named)) == 5
    print("waiting to notification, with the prompt's hook:", [f"{one:.1f} s" for one in took])
    assert sorted(took)[2] < 2


def test_a_receiver_that_fails_is_tried_again_and_shown(world: World) -> None:
    with http_receiver() as got:
        got.status["/hook"] = 500
        (world.root / "config").mkdir(exist_ok=True)
        text = f"attention:\n  rules: [{{channels: [webhook]}}]\n  webhook: {got.address('/hook')}\n"
        (world.root / "config" / "settings.yaml").write_text(text)
        world.start()
        world.cli("notify", "test", "webhook")
        wait_until(lambda: got.requests, "it was tried")
        got.status["/hook"] = 200
        wait_until(lambda: world.events(kinds=("attention.sent",)), "it was sent in the end")
        assert len({headers["X-Holdfast-Id"] for _, headers, _ in got.requests}) == 1


@pytest.mark.full
def test_a_thousand_waiting_sessions_are_each_told_of_once(world: World) -> None:
    with http_receiver() as got:
        (world.root / "config").mkdir(exist_ok=True)
        text = (
            f"attention:\n  rules: [{{channels: [webhook]}}]\n  batch_seconds: 60\n  webhook: {got.address('/hook')}\n"
        )
        (world.root / "config" / "settings.yaml").write_text(text)
        world.start()
        world.cli("notify", "mute", "1h")
        call = {"cwd": str(world.project), "tool_name": "Bash", "tool_input": {"command": "make"}}
        with ThreadPoolExecutor(4) as agents:
            list(
                agents.map(
                    lambda n: world.hook("PermissionRequest", {"session_id": f"s-{n}", **call}, "tell"), range(1000)
                )
            )
        # Agents of other tests may run here without hooks, which is a need too.
        asking = [need for need in world.view("attention.list")["needs"] if need["kind"] == "permission"]
        assert len(asking) == 1000
        world.cli("notify", "mute", "0")

        def named() -> list[str]:
            needs = (need for _, _, body in got.requests for need in json.loads(body)["needs"])
            return [need["id"] for need in needs if need["kind"] == "permission"]

        wait_until(lambda: len(named()) >= 1000, "all are told of", 60, lambda: str(len(named())))
        assert len(set(named())) == len(named()) == 1000
        assert len(got.requests) <= 3
        assert "and 980 more" in json.loads(got.requests[0][2])["text"]


def test_a_receiver_that_hangs_keeps_nothing_else_back(world: World) -> None:
    with http_receiver() as got:
        got.hangs.clear()
        (world.root / "config").mkdir(exist_ok=True)
        text = f"attention:\n  typed_seconds: 0\n  rules: [{{channels: [webhook, terminal]}}]\n  webhook: {got.address('/hook')}\n"
        (world.root / "config" / "settings.yaml").write_text(text)
        world.start()
        asking = Asking(world, "make")
        wait_until(lambda: got.requests, "it is tried")
        wait_until(
            lambda: "terminal" in [one["channel"] for one in world.view("attention.status")["sent"]],
            "another channel is through",
            8,
        )
        world.cli("notify", "answer", asking.id, "allow")
        assert asking.reply() == {"behavior": "allow"}
        got.hangs.set()


def test_a_project_cannot_set_channels(world: World) -> None:
    with http_receiver() as got:
        folder = world.project / ".holdfast"
        folder.mkdir()
        rule = "attention:\n  typed_seconds: 0\n  rules: [{channels: [webhook]}]\n"
        (folder / "settings.yaml").write_text(f"{rule}  webhook: {got.address('/stolen')}\n")
        world.start()
        asking = Asking(world, "make")
        wait_until(
            lambda: world.view("attention.status")["sent"] or asking.needs()[0]["sent"] or time.sleep(4) is None,
            "time for it",
        )
        asking.run_in_terminal()
        assert got.requests == []


def test_mute_and_list(world: World) -> None:
    world.start()
    world.cli("notify", "mute", "1h")
    assert "silent for" in world.cli("notify", "list")
    world.cli("notify", "mute", "0")
    assert "silent for" not in world.cli("notify", "list")
    assert "is no time" in world.cli("notify", "mute", "soon", code=1)
    assert "not set up" in world.cli("notify", "test", "ntfy", code=1)
