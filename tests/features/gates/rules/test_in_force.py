"""What is stricter, what is looser, and what stays in force meanwhile."""

import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.app import open_settings
from holdfast.core.kinds.gates_events import GatesRulesAccepted
from holdfast.features.gates.rules.in_force import keep_strict
from holdfast.features.gates.settings import GateSettings
from tests.features.gates.stage import PROJECT, Stage

BASE: dict[str, Any] = {
    "scope": "session", "paths": ["src/**"], "auto_resolve_skill": "review", "manual": False, "ttl": 600,
}  # fmt: skip


def settings(**more: Any) -> GateSettings:
    return GateSettings.of({"requirements": {"reviewed": BASE}, **more})


def changed(**fields: Any) -> GateSettings:
    return GateSettings.of({"requirements": {"reviewed": {**BASE, **fields}}})


@pytest.mark.parametrize(
    "looser",
    [
        {"enabled": False}, {"scope": "permanent"}, {"paths": ["src/a.py"]}, {"except_paths": ["src/b.py"]},
        {"auto_resolve_skill": ["review", "x"]}, {"manual": True}, {"ttl": 0}, {"ttl": 9000}, {"check": "stop"},
        {"trigger_tools": ["NoSuchTool"]}, {"command_pattern": "zzz"}, {"type": "stop_only"}, {"carry_over": 300},
        {"approval_ttl": 9999},
    ],
    ids=str,
)  # fmt: skip
def test_what_asks_for_less_is_not_taken(looser: dict[str, Any]) -> None:
    found, differences = keep_strict(settings(), changed(**looser))
    assert found.requirements["reviewed"] == settings().requirements["reviewed"]
    assert differences


@pytest.mark.parametrize(
    "tighter",
    [{"scope": "single_use"}, {"paths": ["src/**", "lib/**"]}, {"paths": []}, {"ttl": 60}, {"check": "both"},
     {"message": "other words"}, {"auto_resolve_skill": []}],
    ids=str,
)  # fmt: skip
def test_what_asks_for_more_counts_at_once(tighter: dict[str, Any]) -> None:
    found, differences = keep_strict(settings(), changed(**tighter))
    assert found.requirements["reviewed"] == changed(**tighter).requirements["reviewed"]
    assert not differences


@pytest.mark.parametrize(
    "loose",
    [{"requirements": {}}, {"enabled": False, "requirements": {}}, {"inherit": False, "requirements": {}},
     {"requirements": {"reviewed": BASE}, "plan_files": ["**"]},
     {"requirements": {"reviewed": BASE}, "hooks": {"stop": {"max_refusals": 1, "verify_scopes": []}}},
     {"requirements": {"reviewed": BASE}, "agents_may_approve": True}],
    ids=str,
)  # fmt: skip
def test_gates_as_a_whole_are_not_loosened_either(loose: dict[str, Any]) -> None:
    found, differences = keep_strict(settings(), GateSettings.of(loose))
    assert differences
    assert keep_strict(settings(), found)[1] == []


def rules_that(stage: Stage, settings_now: GateSettings, at: int) -> str:
    """What becomes of an edit after the settings changed on disk at that moment."""
    settings_now.__dict__["changed_at"] = at
    stage.settings = stage.simulation.settings = settings_now
    return stage.take("tool.started", tool="Edit", action="edit", paths=[f"{PROJECT}/src/a.py"], settings_at=at).verdict


def test_settings_loosened_while_a_call_runs_do_not_count_and_are_shown() -> None:
    stage = Stage(settings())
    stage.start()
    stage.take("tool.started", tool="Bash", action="shell", command="python3 x.py", call="c1")
    changed_at = stage.later(1).now
    stage.later(1).take(
        "tool.finished", tool="Bash", action="shell", command="python3 x.py", call="c1", ok=True, exit_code=0
    )
    assert rules_that(stage.later(5), GateSettings.of({"requirements": {}}), changed_at) == "deny"
    assert any("is gone" in entry.text for entry in stage.simulation.get("gates.attention", "all").entries)


def test_a_session_that_ended_since_is_still_asked_what_it_did() -> None:
    stage = Stage(settings())
    stage.start()
    stage.take("tool.started", tool="Bash", action="shell", command="python3 x.py", call="c1")
    changed_at = stage.later(1).now
    stage.later(1).take("session.ended", reason="other")
    stage.settings = stage.simulation.settings = GateSettings.of({"requirements": {}})
    stage.later(5).take("session.started", "s-2", source="startup", settings_at=changed_at)
    assert stage.edit(session="s-2").verdict == "deny"


def test_settings_loosened_while_no_call_runs_are_the_persons() -> None:
    stage = Stage(settings())
    stage.start()
    stage.take("tool.started", tool="Bash", action="shell", command="ls", call="c1")
    stage.later(1).take("tool.finished", tool="Bash", action="shell", command="ls", call="c1", ok=True, exit_code=0)
    changed_at = stage.later(5).now
    assert rules_that(stage.later(5), GateSettings.of({"requirements": {}}), changed_at) == "none"


def test_settings_loosened_while_something_runs_that_an_agent_left_behind_wait_for_a_person() -> None:
    stage = Stage(settings())
    stage.start()
    changed_at = stage.later(5).now
    stage.settings = stage.simulation.settings = GateSettings.of({"requirements": {}})
    seen = {"settings_at": changed_at, "left_running": "python3 (process 4242)"}
    stage.later(5).take("prompt.submitted", prompt="go on", **seen)
    assert stage.edit().verdict == "deny"
    assert any("is gone" in entry.text for entry in stage.simulation.get("gates.attention", "all").entries)


def test_settings_that_were_read_anew_since_the_event_came_are_judged_by_their_own_time() -> None:
    """The event says when the settings before them were changed, which was long ago and nobody's call."""
    stage = Stage(settings())
    stage.start()
    before = stage.now
    stage.later(5).take("tool.started", tool="Bash", action="shell", command="python3 x.py", call="c1")
    loosened = GateSettings.of({"requirements": {}})
    loosened.__dict__["changed_at"] = stage.later(1).now
    stage.settings = stage.simulation.settings = loosened
    ended = {"tool": "Bash", "action": "shell", "command": "python3 x.py", "call": "c1", "ok": True, "exit_code": 0}
    stage.later(1).take("tool.finished", settings_at=before, **ended)
    assert rules_that(stage.later(5), loosened, loosened.changed_at) == "deny"


@pytest.mark.parametrize(("seconds", "verdict"), [(0, "deny"), (1, "none")])
def test_a_file_that_is_just_being_written_loosens_nothing_yet(seconds: int, verdict: str) -> None:
    """An editor empties a file before it writes it."""
    stage = Stage(settings())
    stage.start()
    changed_at = stage.later(5).now
    assert rules_that(stage.later(seconds), GateSettings.of({"requirements": {}}), changed_at) == verdict


def test_a_person_accepts_looser_rules() -> None:
    stage = Stage(settings())
    stage.start()
    loose = GateSettings.of({"requirements": {}})
    stage.take("tool.started", tool="Bash", action="shell", command="python3 x.py", call="c1")
    assert rules_that(stage.later(1), loose, stage.now) == "deny"
    for scope in ("", PROJECT):
        accepted = GatesRulesAccepted(scope=scope, digest=loose.digest, rules=loose.plain(), by="person")
        stage.take(accepted.KIND, "s-1", **accepted.as_dict())
    assert rules_that(stage.later(9), loose, stage.now) == "none"


def test_what_others_write_beside_a_missing_file_is_no_change_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon and the agents keep files of their own in ~/.claude, where a requirements.yaml may lie or not."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    claude = tmp_path / ".claude"
    claude.mkdir()
    files = open_settings().settings

    def changed_at() -> int:
        return files.load()["gates"].changed_at

    before = changed_at()
    time.sleep(0.02)
    (claude / "sessions.json").write_text("{}")
    assert changed_at() == before > 0
    time.sleep(0.02)
    (claude / "requirements.yaml").write_text("requirements: {}")
    written = changed_at()
    assert written > before
    time.sleep(0.02)
    (claude / "requirements.yaml").unlink()
    assert changed_at() > written
