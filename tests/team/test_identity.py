"""A project is the same in every clone, and two repositories are never one."""

import subprocess
from pathlib import Path

import pytest

from holdfast.team.identity import identify_project, normalise_remote


@pytest.mark.parametrize(
    ("address", "normal"),
    [
        ("git@Example.org:team/app.git", "example.org/team/app"),
        ("ssh://git@example.org:22/team/app.git", "example.org/team/app"),
        ("ssh://git@example.org:2222/team/app", "example.org:2222/team/app"),
        ("https://user:secret@example.org/team/app.git/", "example.org/team/app"),
        ("https://example.org:443//team//app?token=x#y", "example.org/team/app"),
        ("http://[::1]:8080/app.git", "[::1]:8080/app"),
        ("example.org:team/app", "example.org/team/app"),
        ("https://example.org/Team/App", "example.org/Team/App"),
        ("/srv/git/app.git", ""),
        ("../app", ""),
        ("file:///srv/git/app.git", ""),
        ("C:\\git\\app", ""),
        ("", ""),
        ("https://example.org/", ""),
    ],
)
def test_an_address_has_one_normal_form_without_users_and_secrets(address: str, normal: str) -> None:
    assert normalise_remote(address) == normal


def run_git(folder: Path, *words: str) -> None:
    who = {f"GIT_{part}_{what}": "x@y" for part in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    dates = {"GIT_AUTHOR_DATE": "2024-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2024-01-01T00:00:00Z"}
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **who, **dates}
    subprocess.run(
        ["git", "-c", "init.defaultBranch=main", *words], cwd=folder, env=env, check=True, capture_output=True
    )


def a_repository(folder: Path, remote: str, text: str = "x") -> Path:
    folder.mkdir()
    run_git(folder, "init")
    (folder / "file").write_text(text)
    run_git(folder, "add", ".")
    run_git(folder, "commit", "-m", "first")
    if remote:
        run_git(folder, "remote", "add", "origin", remote)
    return folder


def test_two_clones_at_different_paths_are_one_project_and_unrelated_ones_are_two(tmp_path: Path) -> None:
    one = identify_project(str(a_repository(tmp_path / "one", "git@example.org:a/b.git")))
    two = identify_project(str(a_repository(tmp_path / "two", "https://example.org/a/b")))
    other = identify_project(str(a_repository(tmp_path / "three", "https://example.org/a/b", "another beginning")))
    assert one.shared and two.shared and other.shared
    assert one.shared == two.shared and one.shared.id != other.shared.id


def test_what_others_could_not_know_is_not_shared_and_says_why(tmp_path: Path) -> None:
    assert "not in a git repository" in identify_project(str(tmp_path)).problem
    assert "no remote address" in identify_project(str(a_repository(tmp_path / "a", ""))).problem
    assert "no remote address" in identify_project(str(a_repository(tmp_path / "b", "/srv/app.git"))).problem
    shallow = a_repository(tmp_path / "c", "https://example.org/a/b")
    (shallow / ".git" / "shallow").write_text("")
    assert "shallow clone" in identify_project(str(shallow)).problem
