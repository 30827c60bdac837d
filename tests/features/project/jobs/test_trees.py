"""Trees that should have the same content."""

import os
from pathlib import Path
from typing import Any

from holdfast.core.kinds.project_events import TreeFacts
from holdfast.features.project.jobs import trees
from holdfast.features.project.settings import Tree


def facts(tmp_path: Path, **options: Any) -> TreeFacts:
    named = {"source": Tree(path="src"), "target": Tree(path="dst", source="source", **options)}
    return trees.tree_facts("target", named, str(tmp_path))


def test_in_sync_is_by_content_not_by_time(tmp_path: Path) -> None:
    for folder in ("src/sub", "dst/sub"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "f").write_text("same")
    os.utime(tmp_path / "dst/sub/f", (1, 1))
    (tmp_path / "dst/extra").write_text("its own affair")
    assert facts(tmp_path).in_sync is True
    (tmp_path / "dst/sub/f").write_text("SAME")
    os.utime(tmp_path / "dst/sub/f", (1, 1))
    found = facts(tmp_path)
    assert (found.in_sync, found.differing) == (False, ["sub/f"])
    (tmp_path / "dst/sub/f").unlink()
    assert facts(tmp_path).in_sync is False


def test_chezmois_names(tmp_path: Path) -> None:
    (tmp_path / "src/dot_config").mkdir(parents=True)
    (tmp_path / "dst/.config").mkdir(parents=True)
    (tmp_path / "src/dot_config/private_executable_x").write_text("1")
    (tmp_path / "dst/.config/x").write_text("1")
    (tmp_path / "src/run_once_install.sh").write_text("never compared")
    (tmp_path / "src/dot_bashrc.tmpl").write_text("never compared")
    assert facts(tmp_path, naming="chezmoi").in_sync is True


def test_trees_that_are_missing_or_closed_are_said(tmp_path: Path) -> None:
    assert "No such file" in facts(tmp_path).problem
    (tmp_path / "dst").mkdir()
    found = facts(tmp_path)
    assert (found.in_sync, "No such file" in found.problem) == (False, True)
    (tmp_path / "src").mkdir()
    os.symlink(tmp_path, tmp_path / "src" / "loop")
    assert facts(tmp_path).in_sync is True, "links are not followed"
