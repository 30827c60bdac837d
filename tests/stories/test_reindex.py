"""Seed 000 in its users' words, through the real hook: the first prompt of a session refreshes the code index, once."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from holdfast.analysis.search.index.claim import claim_holder
from holdfast.core.ports import Ref
from tests.analysis.search.serving import served
from tests.kit import World, git, wait_until

STATE = "logs/state/session-reindex-tracking.json"
ADA, BOB = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def world(tmp_path: Path):
    made = World(tmp_path)
    git(made.project, "init", "-q")
    (made.project / "wheel.py").write_text(
        'def turn_wheel(degrees):\n    """Turn the wheel."""\n    return degrees % 360\n'
    )
    git(made.project, "add", "-A")
    git(made.project, "commit", "-qm", "first")
    yield made
    made.close()


def decided(world: World, session: str = "") -> list[tuple[str, str, str]]:
    events = world.events(kinds=("reindex.decided",), session=session)
    return [(e.data["trigger"], e.data["decision"], e.data["reason"]) for e in events]


def finished(world: World) -> list[str]:
    return [e.data["status"] for e in world.events(kinds=("reindex.finished",))]


def file(world: World) -> dict | None:
    try:
        return json.loads((world.project / STATE).read_text())
    except (OSError, ValueError):
        return None


def shows(world: World, session: str, shown: bool) -> None:
    wanted = {"session_id": session, "first_semantic_search_shown": shown}
    wait_until(lambda: file(world) == wanted, f"the file shows {wanted}, not {file(world)}")


@pytest.mark.quick
def test_startup_first_prompt_triggers_second_does_not(world: World) -> None:
    """S0-1, S0-2, S0-5, S0-10, S0-11, S0-18: the seed's startup flow, and its file byte for byte."""
    agent = world.session(ADA)
    agent.start()
    shows(world, ADA, False)
    agent.prompt("please turn the wheel")
    shows(world, ADA, True)
    agent.prompt("and again")
    agent.prompt("and again")
    assert decided(world) == [("first_prompt", "run", "reindex_spawned")]
    wait_until(lambda: finished(world) == ["completed"], "the index is made")
    text = (world.project / STATE).read_text()
    assert text == json.dumps({"session_id": ADA, "first_semantic_search_shown": True}, indent=2)
    assert "wheel.py:1" in world.cli("search", "turn_wheel")


def test_restart_with_a_new_id_resets_and_triggers_again(world: World) -> None:
    """S0-4, S0-12, S0-14.5: whatever `source` says; a flag that sticks is impossible."""
    first = world.session(ADA)
    first.start()
    first.prompt("one")
    shows(world, ADA, True)
    second = world.session(BOB)
    second.start("resume")
    shows(world, BOB, False)
    second.prompt("two")
    shows(world, BOB, True)
    assert [d[0] for d in decided(world)] == ["first_prompt", "first_prompt"]


@pytest.mark.parametrize("source", ["compact", "resume"])
def test_the_same_id_keeps_its_flag(world: World, source: str) -> None:
    """S0-13, C1: compaction and a resume under the same id are the same session: no second run."""
    agent = world.session(ADA)
    agent.start()
    agent.prompt("one")
    shows(world, ADA, True)
    agent.start(source)
    agent.prompt("two")
    shows(world, ADA, True)
    assert [d[0] for d in decided(world)] == ["first_prompt"]
    told = [(e.data.source, e.data.shown) for e in world.events(kinds=("reindex.initialized",))]
    assert told == [("startup", False), (source, True)]


def test_a_known_session_resumes_where_another_one_was_meanwhile(world: World) -> None:
    """S0-4, S0-12: the file names another one, so the flag is reset and the next prompt refreshes the index."""
    ada, bob = world.session(ADA), world.session(BOB)
    ada.start()
    ada.prompt("one")
    shows(world, ADA, True)
    ada.end()
    bob.start()
    bob.prompt("one")
    shows(world, BOB, True)
    bob.end()
    ada.start("resume")
    shows(world, ADA, False)
    ada.prompt("two")
    shows(world, ADA, True)
    ada.prompt("three")
    assert [d[0] for d in decided(world, ADA)] == ["first_prompt", "first_prompt"]


@pytest.mark.parametrize("source", ["clear", "fork"])
def test_clear_and_fork_are_new_sessions(world: World, source: str) -> None:
    agent = world.session(ADA)
    agent.start()
    agent.prompt("one")
    other = world.session(BOB)
    other.start(source)
    other.prompt("two")
    assert [d[0] for d in decided(world, BOB)] == ["first_prompt"]


def test_two_live_sessions_do_not_reset_each_other(world: World) -> None:
    """The state is per session; the file shows the newest."""
    ada, bob = world.session(ADA), world.session(BOB)
    ada.start()
    ada.prompt("one")
    bob.start()
    shows(world, BOB, False)
    ada.prompt("two")
    shows(world, BOB, False)
    bob.prompt("one")
    shows(world, BOB, True)
    ada.prompt("three")
    assert [(e.session, e.data["trigger"]) for e in world.events(kinds=("reindex.decided",))] == [
        (ADA, "first_prompt"),
        (BOB, "first_prompt"),
    ]


def test_parallel_prompts_trigger_once(world: World) -> None:
    """S0-9, S0-10, S0-18: sixteen hooks at the same moment."""
    agent = world.session(ADA)
    agent.start()
    threads = [threading.Thread(target=agent.prompt, args=(f"prompt {n}",)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    world.drained()
    assert len(world.events(kinds=("prompt.submitted",))) == 16
    assert [d[0] for d in decided(world)] == ["first_prompt"]


@pytest.mark.parametrize(
    "damage", ["missing", "{", "[]", '"text"', '{"first_semantic_search_shown": true}', f'{{"session_id": "{ADA}"}}']
)
def test_a_broken_file_is_restored_and_the_job_does_not_fire_for_ever(world: World, damage: str) -> None:
    """S0-7, S0-8, S0-14.1 to .4, D2: missing, malformed, without its id, without its flag."""
    agent = world.session(ADA)
    agent.start()
    shows(world, ADA, False)
    for shown in (False, True):
        if damage == "missing":
            (world.project / STATE).unlink()
        else:
            (world.project / STATE).write_text(damage)
        agent.prompt(f"one, {shown}")
        shows(world, ADA, True)
    assert [d[0] for d in decided(world)] == ["first_prompt"]


def test_a_session_that_was_running_before_the_hooks_were_there(world: World) -> None:
    """No SessionStart was ever seen: the first prompt that is seen counts as the first."""
    agent = world.session(ADA)
    world.start()
    agent.prompt("one")
    shows(world, ADA, True)
    assert [d[0] for d in decided(world)] == ["first_prompt"]


def test_an_id_in_the_seeds_own_form_is_kept_whole(world: World) -> None:
    """S0-3, D1, D5: the id is the agent's; nothing is built from the clock, nothing is cut."""
    ids = ["session_20251212_154827", "session_20251212_154828"]
    for one in ids:
        agent = world.session(one)
        agent.start()
        agent.prompt("hello")
        shows(world, one, True)
    assert [e.session for e in world.events(kinds=("reindex.decided",))] == ids


def test_a_turn_that_changed_files_is_searchable_afterwards_and_the_cooldown_only_delays(world: World) -> None:
    """O0-c: prerequisites, cooldown, one at a time; what is skipped is made up for."""
    settings = world.root / "config" / "settings.yaml"
    settings.parent.mkdir()
    settings.write_text("reindex:\n  cooldown_s: 8\n")
    agent = world.session(ADA)
    agent.start()
    agent.prompt("write a brake")
    wait_until(lambda: finished(world) == ["completed"], "the first index is made")
    (world.project / "brake.py").write_text("def press_brake(force):\n    return -force\n")
    agent.tool("Write", file_path=str(world.project / "brake.py"), content="…")
    agent.stop()
    assert decided(world)[1] == ("turn_end", "skip", "cooldown_active")
    details = world.events(kinds=("reindex.decided",))[1].data["details"]
    assert 0 < details["remaining_s"] <= 8
    wait_until(lambda: len(finished(world)) == 2, "the run that was put off is made up for")
    assert "brake.py:1" in world.cli("search", "press_brake")


def test_a_turn_that_changed_nothing_asks_for_nothing(world: World) -> None:
    agent = world.session(ADA)
    agent.start()
    agent.prompt("look around")
    wait_until(lambda: finished(world) == ["completed"], "the index is made")
    agent.tool("Read", file_path=str(world.project / "wheel.py"))
    agent.stop()
    assert [d[0] for d in decided(world)] == ["first_prompt"]


def test_another_branch_is_indexed_when_it_is_seen(world: World) -> None:
    git(world.project, "checkout", "-qb", "gears")
    (world.project / "gear.py").write_text("def shift_gear(up):\n    return up + 1\n")
    git(world.project, "add", "-A")
    git(world.project, "commit", "-qm", "gears")
    git(world.project, "checkout", "-q", "main")
    agent = world.session(ADA)
    agent.start()
    agent.prompt("hello")
    wait_until(lambda: finished(world) == ["completed"], "main is indexed")
    assert "gear.py" not in world.cli("search", "shift_gear")
    git(world.project, "checkout", "-q", "gears")
    wait_until(
        lambda: agent.tool("Bash", command="git status") == {} and len(decided(world)) == 2, "the branch is seen"
    )
    assert decided(world)[1] == ("branch_switch", "run", "reindex_spawned")
    wait_until(lambda: len(finished(world)) == 2, "gears is indexed")
    assert "gear.py:1" in world.cli("search", "shift_gear")


def test_nothing_changed_is_known_without_reading_files(world: World) -> None:
    """O0-g."""
    os.utime(world.project / "wheel.py", (1_700_000_000, 1_700_000_000))
    world.cli("index", "run")
    told = world.json("index", "run")["last"]
    assert told["status"] == "unchanged"
    assert "Nothing changed" in world.cli("index", "run")
    (world.project / "new.py").write_text("x = 1\n")
    assert world.json("index", "run")["last"]["added"] == 1


def test_by_command_with_status_why_and_rebuild(world: World) -> None:
    (world.project / "logo.png").write_bytes(b"\x89PNG\0\0")
    assert "no index yet" in world.cli("search", "wheel", code=1)
    assert "no index yet" in world.cli("index", "status")
    assert "1 chunk" in world.cli("index", "run")
    told = world.cli("index", "status", "--runs", "5")
    assert "command" in told
    assert "reindex_spawned" in told
    assert "turn_wheel" in world.cli("index", "why", "wheel.py")
    assert "binary" in world.cli("index", "why", "logo.png", code=1)
    assert "no such file" in world.cli("index", "why", "nothing.py", code=1)
    before = world.json("search", "turn the wheel")["hits"]
    assert "completed" in world.json("index", "rebuild")["last"]["status"]
    after = world.json("search", "turn the wheel")["hits"]
    assert [h["path"] for h in after] == [h["path"] for h in before] == ["wheel.py"]


def test_the_daemon_dies_in_the_middle_and_the_next_one_goes_on(world: World) -> None:
    """D3, O0-h, P6: the run dies with its daemon, its claim is free at once, the index is whole afterwards."""
    for number in range(600):
        (world.project / f"part{number}.py").write_text(f"def part_{number}():\n    return {number}\n\n\n" * 40)
    agent = world.session(ADA)
    agent.start()
    agent.prompt("hello")
    wait_until(lambda: held(world), "the run has begun")
    world.kill()
    wait_until(lambda: not held(world), "the claim is free", 5.0)
    assert finished(world) == []
    world.start()
    assert world.json("index", "run")["last"]["status"] == "completed"
    assert "part599.py" in world.cli("search", "part_599")


def held(world: World) -> bool:
    return any(claim_holder(path) for path in (world.paths.state / "indexes").glob("*/claim"))


def test_the_seeds_functions_from_a_hook_script(world: World) -> None:
    """S0-5 to S0-8, S0-15, S0-17: importable under their names, and they never raise."""
    script = """
from holdfast.api import (initialize_session_state, mark_first_prompt_shown, migrate_session_state,
                          should_show_first_prompt_status, validate_session_state)
import json, pathlib
state = pathlib.Path('logs/state/session-reindex-tracking.json')
said = [should_show_first_prompt_status(), state.exists()]
initialize_session_state(source='startup')
said += [should_show_first_prompt_status(), json.loads(state.read_text())['first_semantic_search_shown']]
mark_first_prompt_shown()
said += [should_show_first_prompt_status(), json.loads(state.read_text())['first_semantic_search_shown']]
initialize_session_state(source='compact')
said += [should_show_first_prompt_status()]
state.write_text('{')
mark_first_prompt_shown()
said += [json.loads(state.read_text())['first_semantic_search_shown']]
said += [validate_session_state(json.loads(state.read_text())), migrate_session_state({'session_id': 'x'})['version']]
print(json.dumps(said))
"""
    done = _script(world, script, HOLDFAST_SESSION="session_20251212_154827")
    assert json.loads(done) == [True, False, True, False, False, True, False, True, True, 2]
    done = _script(world, script.replace("'startup'", "'resume'"), HOLDFAST_SESSION="session_20251212_163000")
    assert json.loads(done)[:3] == [True, True, True], "a new id begins anew"


def test_without_an_id_the_newest_session_of_the_project_is_meant(world: World) -> None:
    """D1: the clock is asked only where there never was a session, and only once."""
    script = "from holdfast.api import *\ninitialize_session_state()\nprint(open('logs/state/session-reindex-tracking.json').read())"
    first = json.loads(_script(world, script))
    assert first["session_id"].startswith("session_")
    assert json.loads(_script(world, script)) == first


def _script(world: World, text: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        env={**world.env, **env},
        cwd=world.project,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1] if "\n" not in done.stdout.strip() else done.stdout


def test_the_seeds_debug_commands(world: World) -> None:
    """S0-19: show the state, compare the ids, reset the flag and see that a prompt would trigger."""
    agent = world.session(ADA)
    agent.start()
    agent.prompt("one")
    shows(world, ADA, True)
    told = world.cli("index", "flag", HOLDFAST_SESSION=ADA)
    assert f"State file session:  {ADA}" in told
    assert "Sessions match:      True" in told
    assert "Would trigger:       False" in told
    assert "Would trigger:       True" in world.cli("index", "flag", "--reset", HOLDFAST_SESSION=ADA)
    shows(world, ADA, False)
    agent.prompt("two")
    assert [d[0] for d in decided(world)] == ["first_prompt", "first_prompt"]


def test_the_file_does_not_dirty_the_repository(world: World) -> None:
    agent = world.session(ADA)
    agent.start()
    shows(world, ADA, False)
    assert git(world.project, "status", "--porcelain") == ""


def test_a_link_in_the_repository_leads_the_file_nowhere(world: World) -> None:
    (world.project / "logs").symlink_to(world.home)
    agent = world.session(ADA)
    agent.start()
    agent.prompt("one")
    assert [d[0] for d in decided(world)] == ["first_prompt"]
    wait_until(lambda: finished(world) == ["completed"], "the index is made all the same")
    assert not (world.home / "state").exists()


def test_a_project_that_is_gone_is_not_tried_at_every_prompt(world: World, tmp_path: Path) -> None:
    """O0-c, O0-f: prerequisites_not_ready, marked all the same, tried again after a day."""
    gone = str(tmp_path / "gone")
    agent = world.session(ADA, cwd=gone)
    agent.env["CLAUDE_PROJECT_DIR"] = gone
    agent.start()
    agent.prompt("one")
    wait_until(lambda: finished(world) == ["skipped"], "the job has looked")
    other = world.session(BOB, cwd=gone)
    other.env["CLAUDE_PROJECT_DIR"] = gone
    other.start()
    other.prompt("one")
    assert decided(world)[1] == ("first_prompt", "skip", "prerequisites_not_ready")
    assert not Path(gone).exists()


def test_switched_off_it_only_keeps_the_flag(world: World) -> None:
    settings = world.root / "config" / "settings.yaml"
    settings.parent.mkdir()
    settings.write_text("reindex:\n  enabled: false\n")
    agent = world.session(ADA)
    agent.start()
    agent.prompt("one")
    shows(world, ADA, True)
    assert decided(world) == [("first_prompt", "skip", "prerequisites_not_ready")]
    assert "1 chunk" in world.cli("index", "run")


def test_state_is_replay(world: World) -> None:
    """P5."""
    agent = world.session(ADA)
    agent.start()
    agent.prompt("one")
    agent.tool("Write", file_path=str(world.project / "a.py"), content="x")
    agent.stop()
    agent.end()
    wait_until(lambda: "completed" in finished(world), "the run is through")
    assert world.json("rebuild", "reindex")["differences"] == []
    with world.reader() as reader:
        assert reader.state(Ref("reindex_session", ADA))["shown"] is True


def test_places_in_the_code_are_offered_when_that_is_switched_on(world: World) -> None:
    """Point 8: at most three, within the budget, once per prompt; off by default."""
    settings = world.root / "config" / "settings.yaml"
    settings.parent.mkdir()
    settings.write_text("reindex:\n  context: true\n")
    world.cli("index", "run")
    agent = world.session(ADA)
    agent.start()
    agent.prompt("why does turn_wheel give the wrong angle?")
    wait_until(lambda: world.events(kinds=("reindex.suggested",)), "a place was found")
    call = agent._next_call()
    agent.before("Bash", call, command="true")
    told = agent.after("Bash", call, command="true")
    assert "wheel.py:1 turn_wheel" in told["hookSpecificOutput"]["additionalContext"]
    agent.before("Bash", "again", command="true")
    assert agent.after("Bash", "again", command="true") == {}


def test_the_seeds_functions_without_a_daemon(world: World, tmp_path: Path) -> None:
    """S0-6, S0-9: no daemon can be had. They say so on stderr, never raise, and the file alone carries the flag."""
    (tmp_path / "no-folder").write_text("")
    script = """
from holdfast.api import initialize_session_state, mark_first_prompt_shown, should_show_first_prompt_status
import json, pathlib
state = pathlib.Path('logs/state/session-reindex-tracking.json')
said = [should_show_first_prompt_status()]
state.parent.mkdir(parents=True, exist_ok=True)
state.write_text('{ broken')
initialize_session_state(source='startup')
said += [json.loads(state.read_text())['session_id'], should_show_first_prompt_status()]
mark_first_prompt_shown()
said += [should_show_first_prompt_status()]
initialize_session_state(source='compact')
said += [should_show_first_prompt_status()]
print(json.dumps(said))
"""
    env = {**world.env, "HOLDFAST_STATE": str(tmp_path / "no-folder"), "HOLDFAST_SESSION": "session_20251212_154827"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=env, cwd=world.project, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, "session_20251212_154827", True, False, False]
    assert "holdfast: " in done.stderr
    assert "Traceback" not in done.stderr


def test_changing_the_model_embeds_again_while_the_old_vectors_answer(world: World) -> None:
    """Point 7, through the settings and the command line, with an endpoint in OpenAI's manner that takes its time."""
    (world.project / "brake.py").write_text("def press_brake(force):\n    return -force\n")
    world.cli("index", "run")
    settings = world.root / "config" / "settings.yaml"
    settings.parent.mkdir(exist_ok=True)
    with served() as (endpoint, url):
        endpoint.gate.clear()
        settings.write_text(f"reindex:\n  embedder: {url}\n  model: nomic\n")
        world.cli("daemon", "restart")
        world.cli("index", "run", "--no-wait")
        wait_until(lambda: endpoint.asked, "the new model is asked for vectors")
        told = world.json("search", "turn the wheel")
        assert "those of holdfast-code-" in told["note"]
        assert told["hits"][0]["path"] == "wheel.py"
        assert any(why.startswith("meaning") for why in told["hits"][0]["why"])
        endpoint.gate.set()
        wait_until(lambda: finished(world) == ["completed", "completed"], "the new vectors are there")
        assert world.json("search", "the wheel")["note"] == ""
        assert world.json("index", "status")["index"]["model"] == f"{url}/embeddings#nomic"


def test_a_folder_without_git_is_searched_too(world: World) -> None:
    shutil.rmtree(world.project / ".git")
    (world.project / "node_modules" / "left").mkdir(parents=True)
    (world.project / "node_modules" / "left" / "index.js").write_text("export function left() {}\n")
    time.sleep(0.06)
    assert "1 chunk" in world.cli("index", "run")
    assert "wheel.py:1" in world.cli("search", "turn the wheel")
    assert "not indexed (node_modules)" in world.cli("index", "why", "node_modules/left/index.js", code=1)
