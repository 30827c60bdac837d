"""Skills that requirements name: found where agents keep them, named when nobody has them."""

from pathlib import Path

import pytest

from holdfast.features.gates.jobs import find_main_branch, missing_skills
from tests.features.gates.stage import rules


@pytest.mark.parametrize(
    "place",
    [
        "project/.claude/skills/look/SKILL.md",
        "project/.claude/commands/look.md",
        "project/.codex/skills/look/SKILL.md",
        "home/.claude/skills/look/SKILL.md",
        "home/.claude/plugins/cache/market/tool/1.0/skills/look/SKILL.md",
    ],
)
def test_a_skill_is_found_where_agents_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    settings = rules(a={"auto_resolve_skill": ["look", "other"]}, b={"auto_resolve_skill": "plugin:thing"}, c={})
    assert missing_skills(settings, str(tmp_path / "project")) == ["look", "other"]
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text("x")
    assert missing_skills(settings, str(tmp_path / "project")) == []


def test_a_hostile_name_is_not_looked_for(tmp_path: Path) -> None:
    assert missing_skills(rules(a={"auto_resolve_skill": "../../etc/passwd"}), str(tmp_path)) == []


def test_the_main_branch_is_the_remotes_or_the_one_that_is_there(tmp_path: Path) -> None:
    assert find_main_branch(str(tmp_path)) == ""
    heads, remotes = tmp_path / ".git" / "refs" / "heads", tmp_path / ".git" / "refs" / "remotes" / "origin"
    heads.mkdir(parents=True)
    (tmp_path / ".git" / "packed-refs").write_text(f"{'a' * 40} refs/heads/master\n")
    assert find_main_branch(str(tmp_path)) == "master"
    (heads / "main").write_text("a" * 40)
    assert find_main_branch(str(tmp_path)) == "main"
    remotes.mkdir(parents=True)
    (remotes / "HEAD").write_text("ref: refs/remotes/origin/next\n")
    assert find_main_branch(str(tmp_path)) == "next"
