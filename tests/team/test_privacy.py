"""What leaves a machine, and as which project."""

import itertools
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.core.event import Event
from holdfast.core.kinds import KINDS, TEAM_KINDS
from holdfast.paths import Paths
from holdfast_team.identity import identify_project, normalise_remote
from holdfast_team.membership import Membership, TeamFiles
from holdfast_team.protocol import LEVELS
from holdfast_team.sent import describe_level, list_words, send_words
from holdfast_team.sharing import BY_LEVEL, FULL_KINDS, share_event

# A project is the same in every clone, and two repositories are never one.


@pytest.mark.parametrize(
    ("address", "normal"),
    [
        ("git@Example.org:team/app.git", "example.org/team/app"),
        ("ssh://git@example.org:22/team/app.git", "example.org/team/app"),
        ("ssh://git@example.org:2222/team/app", "example.org/team/app"),
        ("https://example.org:8443/team/app", "example.org/team/app"),
        ("git+ssh://ann@example.org/team/app.git", "example.org/team/app"),
        ("git@example.org:/team/app.git", "example.org/team/app"),
        ("ssh://git@ssh.example.org:443/Team/App.git", "example.org/team/app"),
        ("git@altssh.example.org:team/app.git", "example.org/team/app"),
        ("https://example.org./team/my%20app", "example.org/team/my app"),
        ("git@ssh.dev.azure.com:v3/acme/shop/app", "dev.azure.com/acme/shop/app"),
        ("https://ann@dev.azure.com/acme/shop/_git/app", "dev.azure.com/acme/shop/app"),
        ("ssh.example/team/app", ""),
        ("https://user:secret@example.org/team/app.git/", "example.org/team/app"),
        ("https://example.org:443//team//app?token=x#y", "example.org/team/app"),
        ("http://[::1]:8080/app.git", "[::1]/app"),
        ("example.org:team/app", "example.org/team/app"),
        ("https://example.org/Team/App", "example.org/team/app"),
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


def test_an_identity_stays_when_another_history_is_joined_and_on_a_branch_that_begins_anew(tmp_path: Path) -> None:
    main = a_repository(tmp_path / "main", "git@example.org:a/b.git")
    before = identify_project(str(main)).shared
    other = a_repository(tmp_path / "other", "", "another beginning")
    run_git(main, "fetch", str(other), "main:theirs")
    run_git(main, "merge", "--allow-unrelated-histories", "-X", "ours", "-m", "joined", "theirs")
    assert identify_project(str(main)).shared == before
    clone = tmp_path / "clone"
    run_git(tmp_path, "clone", str(main), str(clone))
    run_git(clone, "remote", "set-url", "origin", "https://example.org/a/b")
    run_git(clone, "switch", "--orphan", "pages")
    run_git(clone, "commit", "--allow-empty", "-m", "a new beginning")
    assert identify_project(str(clone)).shared == before


def test_a_fork_is_another_project_and_an_abbreviated_address_is_spelled_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / ".gitconfig").write_text('[url "https://example.org/"]\n\tinsteadOf = ex:\n')
    found = [
        identify_project(str(a_repository(tmp_path / name, remote))).shared
        for name, remote in (("one", "ex:a/b"), ("two", "git@example.org:a/b"), ("fork", "git@example.org:ann/b"))
    ]
    assert found[0] and found[0] == found[1] != found[2]


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


# What leaves a machine, by level: names, numbers and verdicts, and text only where the level says so.

CANARY = "the-quick-brown-canary"
ROOT = "/home/ann/work/app"
TEXT_FIELDS = frozenset(
    "prompt message command output error text input summary instructions reason reasons title description subject answer"
    " args why detail contexts notices details metadata transcript cwd commands open".split()
)
NAMES = frozenset(
    "branch source model action paths lane_type trigger kind runner selection verdict commit commits verb day of_kind"
    " requirements method tokens".split()
)
"""Fields of facts that hold words: each is a name from a list, of a file, a branch, a model or a rule."""


def filled(type_: Any) -> Any:
    """A value of a type with the canary wherever there can be text."""
    if isinstance(type_, msgspec.inspect.StrType | msgspec.inspect.AnyType):
        return CANARY
    if isinstance(type_, msgspec.inspect.ListType):
        return [filled(type_.item_type)]
    if isinstance(type_, msgspec.inspect.DictType):
        return {CANARY: filled(type_.value_type)}
    if isinstance(type_, msgspec.inspect.StructType):
        return {field.encode_name: filled(field.type) for field in type_.fields}
    if isinstance(type_, msgspec.inspect.UnionType):
        return filled(type_.types[0])
    return True if isinstance(type_, msgspec.inspect.BoolType) else 1


def an_event(kind: str, **data: Any) -> Event:
    given = data or filled(msgspec.inspect.type_info(KINDS[kind]))
    return Event(key="k", kind=kind, at=1, session="s", project=ROOT, agent="a", tool="Bash", data=given, seq=1)


def shared_text(kind: str, level: str, **data: Any) -> str:
    found = share_event(an_event(kind, **data), level, "p", ROOT)
    return msgspec.json.encode(found.data).decode() if found else ""


@pytest.mark.parametrize("level", ["presence", "facts"])
def test_no_field_of_text_is_in_the_lists_of_presence_and_facts(level: str) -> None:
    assert {name for fields in BY_LEVEL[level].values() for name in fields} & TEXT_FIELDS == set()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_only_named_fields_leave_whatever_an_event_holds(kind: str) -> None:
    """Every kind there is, filled with text to the brim: a new kind or field leaves nothing before somebody lists it."""
    for level in ("presence", "facts"):
        found = share_event(an_event(kind), level, "p", ROOT)
        texts = {name for name, value in (found.data if found else {}).items() if CANARY in str(value)}
        assert texts <= ({"branch"} if level == "presence" else NAMES), (kind, texts)


def test_every_level_shows_what_the_one_below_it_shows() -> None:
    for lower, higher in itertools.pairwise(LEVELS):
        for kind, fields in BY_LEVEL[lower].items():
            assert kind in FULL_KINDS if higher == "full" else fields <= BY_LEVEL[higher][kind]


def test_files_are_named_from_the_project_and_those_outside_do_not_leave() -> None:
    paths = [f"{ROOT}/src/a.py", "/home/ann/.ssh/id_rsa", f"{ROOT}/../b.py", "~/c", "src/d.py", ROOT]
    assert (
        shared_text("tool.finished", "facts", paths=paths, action="edit")
        == '{"action":"edit","paths":["src/a.py","src/d.py"]}'
    )


def test_full_has_text_but_neither_processes_nor_folders_of_this_machine() -> None:
    text = shared_text("prompt.submitted", "full", prompt="hello", cwd=ROOT, pid=7, transcript=f"{ROOT}/t", repo=ROOT)
    assert text == '{"prompt":"hello"}'


def test_full_names_no_folder_of_this_machine_in_inputs_judgements_and_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    text = shared_text(
        "tool.finished", "full",
        input={"file_path": f"{ROOT}/src/a.py", "content": "new", "other": "/home/ann/diary/2026.txt"},
        judgement={"cwd": ROOT, "verb": "test"},
        output=f"{ROOT}/src/a.py:3 failed, see /home/ann/.cache/x and {ROOT}",
    )  # fmt: skip
    assert ROOT not in text
    assert "/home/ann" not in text
    assert '"file_path":"src/a.py"' in text
    assert '"content":"new"' in text
    assert '"other":"2026.txt"' in text
    assert "src/a.py:3 failed, see ~/.cache/x and ." in text


@pytest.mark.parametrize("level", LEVELS)
def test_what_came_from_the_team_does_not_go_back_to_it(level: str) -> None:
    assert [kind for kind in TEAM_KINDS if shared_text(kind, level)] == []


def test_half_a_surrogate_does_not_stop_a_batch() -> None:
    assert shared_text("prompt.submitted", "full", prompt="a\ud800b") == '{"prompt":"a?b"}'


# Words that somebody sends by a command.


class Heard:
    """A server that takes everything."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []

    def request(self, _method: str, _path: str, _answer: Any, body: Any) -> dict[str, str]:
        self.bodies.append(body)
        return {}


def test_words_are_redacted_and_on_record_before_they_leave(tmp_path: Path) -> None:
    files, heard = TeamFiles(Paths(tmp_path / "state").prepare()), Heard()
    secret = "ghp_" + "a1B2c3D4e5" * 4
    send_words(files, heard, "/v1/memory", dict, {"text": f"use {secret} here"}, 7)  # type: ignore[arg-type]
    [words] = list_words(files)
    assert [words.body] == heard.bodies and (words.at, words.path) == (7, "/v1/memory")
    assert secret not in str(heard.bodies) and "use [redacted:" in words.body["text"]


def test_a_level_is_described_as_a_whole() -> None:
    for lower, higher in itertools.pairwise(LEVELS):
        assert describe_level(higher).startswith(f"{describe_level(lower).removesuffix('; no text')}; also ")
    assert [level for level in LEVELS if "no text" in describe_level(level)] == ["presence", "facts"]


# Worktrees of one repository.


def test_a_file_in_a_worktree_has_the_name_it_has_in_the_project_and_another_repository_leaves_nothing() -> None:
    inside, beside = f"{ROOT}/.trees/x/src/a.py", "/elsewhere/x/src/a.py"
    for worktree, path in ((f"{ROOT}/.trees/x", inside), ("/elsewhere/x", beside)):
        same = an_event("tool.finished", paths=[path, f"{ROOT}/b.py"], worktree=worktree, repo=f"{ROOT}/.git")
        found = share_event(same, "facts", "p", ROOT)
        assert found and found.data["paths"] == ["src/a.py", "b.py"]
    other = an_event("tool.finished", paths=[beside], worktree="/elsewhere/x", repo="/elsewhere/x/.git")
    found = share_event(other, "facts", "p", ROOT)
    assert found and found.data["paths"] == []


def test_what_is_chosen_for_a_repository_holds_in_its_worktrees(tmp_path: Path) -> None:
    main = a_repository(tmp_path / "main", "git@example.org:a/b.git")
    run_git(main, "worktree", "add", str(tmp_path / "tree"))
    identity = identify_project(str(tmp_path / "tree"))
    assert (identity.root, identity.home) == (str(tmp_path / "tree"), str(main))
    assert identity.shared == identify_project(str(main)).shared
    membership = Membership(
        url="", token="", tenant="", person="", role="member", machine="", levels={str(main): "none"}
    )
    assert membership.level_for(identity.root, identity.home) == "none"
