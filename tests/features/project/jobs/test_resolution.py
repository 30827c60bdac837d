"""Project resolution (S1-10, O1-b): signals vote by weight, confidence is the share, a person's word wins."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.kinds.project_events import Signal
from holdfast.features.project.jobs import resolution as resolve
from holdfast.features.project.jobs.resolution import MappedProject

KNOWN = {
    "dotfiles": MappedProject(["/home/u/.local/share/chezmoi", "dot_claude"], ["beppe-system-bootstrap"]),
    "manga": MappedProject(["/home/u/*/Comics", "/media/comics"]),
}


def signals(
    pwd: str = "/home/u/x", remote: str = "", recent: tuple[str, ...] = (), override: str = ""
) -> dict[str, Signal]:
    first = resolve.pwd_signal(pwd, pwd, KNOWN)
    return {
        "pwd": first,
        "git": resolve.git_signal(remote, KNOWN),
        "recent_files": resolve.recent_signal(recent, pwd, first.project, KNOWN),
        "user_override": resolve.override_signal(override),
    }


def test_all_agree_and_nothing_else_is_known() -> None:
    told = resolve.vote_on_project(signals("/home/u/engine", "git@h:me/engine.git", ("/home/u/engine/a.py",)))
    assert (told.project, told.confidence, told.alternatives) == ("engine", 1.0, [])


def test_a_little_doubt_is_kept_for_projects_that_are_known() -> None:
    told = resolve.vote_on_project(signals("/home/u/.local/share/chezmoi"), KNOWN)
    assert (told.project, told.confidence) == ("dotfiles", 0.95)
    assert told.alternatives == [Signal(project="manga", confidence=0.05, reason="No recent manga-related activity")]


def test_signals_that_disagree_are_alternatives_by_their_share() -> None:
    told = resolve.vote_on_project(signals("/home/u/a", "https://h/me/b.git", ("/home/u/Books/Comics/1.md",)))
    assert told.project == "a"
    assert told.confidence == pytest.approx(0.9 / 2.2, abs=0.01)
    assert [one.project for one in told.alternatives] == ["b", "manga"]


def test_a_persons_word_wins_over_all_signals() -> None:
    told = resolve.vote_on_project(signals("/home/u/a", "h:me/a.git", ("/home/u/a/x.py",), "b"))
    assert (told.project, told.confidence) == ("b", 1.0)
    assert told.alternatives[0].project == "a"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/u/.local/share/chezmoi", "dotfiles"),
        ("/home/u/.local/share/chezmoi/sub/dir", "dotfiles"),
        ("/home/u/.local/share/chezmoi-other", ""),
        ("/srv/dot_claude/agents", "dotfiles"),
        ("/home/u/Library/Comics", "manga"),
        ("/home/u/Library/Comics/one", "manga"),
    ],
)
def test_the_mapping_names_folders_pieces_and_globs(path: str, name: str) -> None:
    assert resolve.named_by_path(path, KNOWN) == name


def test_the_mapping_file_in_both_forms_and_broken(tmp_path: Path) -> None:
    file = tmp_path / "project_mapping.yml"
    file.write_text("projects:\n  a: {paths: [~/a], remotes: x}\n  b: [/b, /c]\n")
    assert resolve.read_mapping(str(file)) == {
        "a": MappedProject([str(Path.home() / "a")], ["x"]),
        "b": MappedProject(["/b", "/c"]),
    }
    for broken in ("[", "- a\n- b", "a: &x [*x]", "\x00", "projects: 7", ""):
        file.write_text(broken)
        assert isinstance(resolve.read_mapping(str(file)), dict)
    assert resolve.read_mapping(str(tmp_path / "missing")) == {}


@given(st.text(max_size=300))
def test_a_name_is_always_a_safe_folder(name: str) -> None:
    safe = resolve.safe_name(name)
    assert safe
    assert "/" not in safe
    assert not safe.startswith(".")
    assert len(safe) <= 80


NAMES = st.sampled_from(["a", "b", "c", None])


@given(NAMES, NAMES, NAMES, st.lists(st.sampled_from(["a", "d", "e"])))
def test_shares_never_exceed_the_whole(pwd: str | None, git: str | None, recent: str | None, others: list[str]) -> None:
    said = {
        kind: Signal(project=name or "", confidence=resolve.WEIGHTS[kind] if name else 0.0)
        for kind, name in (("pwd", pwd), ("git", git), ("recent_files", recent))
    }
    told = resolve.vote_on_project(said, others)
    total = told.confidence + sum(one.confidence for one in told.alternatives)
    assert total <= 1.03, "up to rounding"
    assert all(told.confidence >= one.confidence for one in told.alternatives)


def test_a_mapping_file_that_is_too_large_is_none(tmp_path: Path) -> None:
    (tmp_path / "m.yml").write_text("a: [" + "x," * 200_000 + "]")
    assert resolve.read_mapping(str(tmp_path / "m.yml")) == {}
