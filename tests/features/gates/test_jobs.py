"""Skills that requirements name: found where agents keep them, named when nobody has them."""

from pathlib import Path

import pytest

from holdfast.features.gates.jobs import missing_skills
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
