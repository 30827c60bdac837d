"""`undo`, `rescue` and `diff` as a person uses them, with real hooks and a real daemon."""

import hashlib
import json
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.features.workspace.git_files import read_blob
from tests.kit import Agent, World, git, wait_until


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    (made.project / "src").mkdir()
    (made.project / "a").write_text("committed\n")
    (made.project / "src" / "b").write_text("b\n")
    run(made, "git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm first")
    made.start()
    yield made
    made.close()


def run(world: World, command: str) -> None:
    subprocess.run(command, shell=True, cwd=world.project, check=True, capture_output=True)


def shell(world: World, agent: Agent, command: str, call: str = "") -> None:
    """One call of the agent's shell."""
    agent.before("Bash", call=call, command=command)
    run(world, command)
    agent.after("Bash", call=call, command=command)


def text(world: World, name: str) -> str:
    return (world.project / name).read_text()


@pytest.mark.quick
def test_undo_brings_back_what_the_last_call_destroyed_and_is_undone_itself(world: World) -> None:
    agent = world.session()
    agent.start()
    (world.project / "a").write_text("committed\nby the person\n")
    (world.project / "new").write_bytes(b"\x00binary\xff")
    (world.project / "new").chmod(0o751)
    shell(world, agent, "git reset -q --hard; git clean -fdq; rm -rf src")
    world.cli("undo", "--yes")
    assert text(world, "a") == "committed\nby the person\n"
    assert text(world, "src/b") == "b\n"
    assert (world.project / "new").read_bytes() == b"\x00binary\xff"
    assert stat.S_IMODE((world.project / "new").stat().st_mode) == 0o751
    world.cli("undo", "--yes")
    assert text(world, "a") == "committed\n"
    assert not (world.project / "new").exists()
    world.cli("undo", "--yes")
    assert text(world, "a") == "committed\nby the person\n"


def test_of_many_files_only_the_first_are_listed(world: World) -> None:
    agent = world.session("one")
    agent.start()
    shell(world, agent, "for n in $(seq 30); do echo $n > new$n; done; echo > 'a\nb'")
    told = world.cli("undo", "--yes").splitlines()
    assert len(told) == 22, told
    assert "and 11 more files" in told[-2]
    assert "a\\nb" in told[0]


def test_it_shows_the_difference_and_does_nothing_unasked(world: World) -> None:
    agent = world.session()
    agent.start()
    shell(world, agent, "echo more >> a")
    shown = world.cli("undo", code=1)
    assert "-more" in shown
    assert "Add --yes" in shown
    assert text(world, "a") == "committed\nmore\n"


def test_one_call_a_turn_a_session_a_file_and_a_moment(world: World) -> None:
    one, two = world.session("one"), world.session("two")
    for agent in (one, two):
        agent.start()
    one.prompt("first")
    shell(world, one, "echo 1 > one", call="first")
    one.prompt("second")
    shell(world, one, "echo 2 > two", call="second")
    shell(world, one, "echo 3 > three; echo 3 > a", call="third")
    shell(world, two, "echo 4 > four", call="fourth")
    world.cli("undo", "--call", "second", "--yes")
    assert not (world.project / "two").exists()
    world.cli("undo", "--yes")
    world.cli("undo", "--turn", "--session", "one", "--yes")
    assert [name for name in ("one", "two", "three", "four") if (world.project / name).exists()] == ["one", "four"]
    world.cli("undo", "a", "--to", "1h", "--yes", code=1)
    world.cli("undo", "--session", "two", "--yes")
    assert not (world.project / "four").exists()
    world.cli("undo", "--to", "1h", "--yes")
    assert not (world.project / "one").exists()
    assert text(world, "a") == "committed\n"


def test_newer_work_is_named_and_kept(world: World) -> None:
    agent = world.session()
    agent.start()
    shell(world, agent, "echo agent > a")
    (world.project / "a").write_text("newer, by the person\n")
    shown = world.cli("undo", code=1)
    assert "changed again by a person" in shown
    world.cli("undo", "--yes")
    assert text(world, "a") == "committed\n"
    world.cli("undo", "--yes")
    assert text(world, "a") == "newer, by the person\n"


def test_later_edits_of_other_lines_stay(world: World) -> None:
    agent = world.session()
    agent.start()
    (world.project / "a").write_text("".join(f"{n}\n" for n in range(20)))
    shell(world, agent, "sed -i 's/^3$/three/' a", call="first")
    shell(world, agent, "sed -i 's/^15$/fifteen/' a", call="second")
    shown = world.cli("undo", "--call", "first", code=1)
    assert "(stays)" in shown
    world.cli("undo", "--call", "first", "--yes")
    assert text(world, "a") == "".join("fifteen\n" if n == 15 else f"{n}\n" for n in range(20))
    world.cli("undo", "--yes")
    shell(world, agent, "sed -i 's/^three$/3 again/' a", call="third")
    assert "cannot be told apart" in world.cli("undo", "--call", "first", code=1)
    world.cli("undo", "--call", "first", "--yes")
    assert text(world, "a") == "".join(f"{n}\n" for n in range(20))


def test_rescue_lists_what_is_nowhere_any_more(world: World) -> None:
    agent = world.session()
    agent.start()
    (world.project / "notes").write_text("one\ntwo\n")
    shell(world, agent, "ls")
    (world.project / "notes").unlink()
    assert "2 lines  removed by a person  notes" in world.cli("rescue")
    world.cli("rescue", "notes", "--to", "back/notes", "--yes")
    assert text(world, "back/notes") == "one\ntwo\n"
    assert "Nothing is lost" in world.cli("rescue")


def test_diff_between_two_moments(world: World) -> None:
    agent = world.session()
    agent.start()
    shell(world, agent, "echo 1 >> a", call="one")
    shell(world, agent, "echo 2 >> a", call="two")
    (second,) = [one.seq for one in world.events(kinds=("tool.started",)) if one.data.call == "two"]
    assert "+1\n" in (first := world.cli("diff", "1h", str(second)))
    assert "+2" not in first
    assert "+2" in (rest := world.cli("diff", str(second)))
    assert "+1\n" not in rest


def test_each_change_is_on_record_with_its_call(world: World) -> None:
    one, two = world.session("one"), world.session("two")
    one.start(), two.start()
    one.before("Edit", call="edit", file_path=str(world.project / "a"), old_string="c", new_string="C")
    two.before("Bash", call="shell", command="echo x > src/b")
    (world.project / "a").write_text("Committed\n")
    (world.project / "src" / "b").write_text("x\n")
    one.after("Edit", call="edit", file_path=str(world.project / "a"))
    two.after("Bash", call="shell", command="echo x > src/b")
    wait_until(lambda: len(world.events(kinds=("workspace.changed",))) == 2, "both are in the log")
    made = {
        e.data.call: (e.session, e.tool, [f.path for f in e.data.files])
        for e in world.events(kinds=("workspace.changed",))
    }
    assert made == {"edit": ("one", "Edit", ["a"]), "shell": ("two", "Bash", ["src/b"])}
    (call,) = world.view("workspace.of_session", session="one").values()
    assert (call["call"], call["files"]) == ("edit", [{"path": "a", "act": "changed", "lost": 0}])
    (row,) = [row for row in world.view("sessions.rows", id="two")["rows"] if row["kind"] == "workspace.changed"]
    assert row["text"] == "src/b"


def test_discarded_lines_are_counted(world: World) -> None:
    agent = world.session()
    agent.start()
    (world.project / "a").write_text("committed\n1\n2\n3\n")
    (world.project / "new").write_text("4\n")
    shell(world, agent, "echo own > scratch")
    shell(world, agent, "git checkout -q -- . && rm new scratch", call="loses")
    assert "(4 lines lost)" in world.cli("undo", "--list")


def test_reading_is_not_waited_for_and_off_is_off(world: World) -> None:
    agent = world.session()
    agent.start()
    agent.tool("Read", file_path=str(world.project / "a"))
    world.cli("config", "set", "workspace.snapshots", "off")
    shell(world, agent, "echo > a")
    assert "snapshots are off" in world.cli("undo", "--yes", code=1)
    assert "undo     off" in world.cli("status")


@pytest.mark.quick
def test_an_agent_may_undo_its_own_calls_only(world: World) -> None:
    agent, other = world.session("one"), world.session("two")
    agent.start(), other.start()
    shell(world, other, "echo by the other > a")
    refused = world.cli("undo", "--yes", code=1, HOLDFAST_SESSION="one", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="one")
    assert "person" in refused or "changed no file" in refused
    assert text(world, "a") == "by the other\n"


def test_erasing_a_text_reaches_the_versions(world: World) -> None:
    agent = world.session()
    agent.start()
    (world.project / "notes").write_text("zanzibar unicorn placebo quartz\n")
    shell(world, agent, "rm notes")
    assert "notes" in world.cli("rescue")
    world.cli("erase", "--text", "zanzibar unicorn placebo quartz", "--yes")
    assert "Nothing is lost" in world.cli("rescue")


def test_it_is_told_whose_lines_it_would_discard_and_what_others_changed(world: World) -> None:
    one, two = world.session("one"), world.session("two")
    one.start(), two.start()
    a = str(world.project / "a")
    two.tool("Read", file_path=a)
    shell(world, one, "echo by one >> a")
    told = two.before("Bash", command="ls")["hookSpecificOutput"]["additionalContext"]
    assert "a (by session one)" in told
    two.after("Bash", command="ls")
    assert two.before("Bash", command="ls -l") == {}
    two.after("Bash", command="ls -l")
    for harmless in ("rm -rf /tmp/elsewhere b", "git clean -fd"):
        assert two.before("Bash", command=harmless) == {}
        two.after("Bash", command=harmless)
    told = two.before("Bash", command="cd . && git checkout -- .")["hookSpecificOutput"]["additionalContext"]
    assert "would discard uncommitted lines of others: a (line 2 by session one)" in told
    two.after("Bash", command="git checkout -- .")
    assert one.before("Bash", command="git checkout -- a") == {}
    one.after("Bash", command="git checkout -- a")
    world.cli("config", "set", "workspace.discards", "refuse")

    def is_refused() -> bool:
        answer = two.before("Bash", command="git reset --hard")["hookSpecificOutput"]
        return answer.get("permissionDecision") == "deny"

    wait_until(is_refused, "the new setting counts")


def test_before_an_edit_it_is_told_once_whose_lines_are_there(world: World) -> None:
    one, two = world.session("one"), world.session("two")
    one.start(), two.start()
    edit = {"file_path": str(world.project / "a"), "old_string": "committed", "new_string": "x"}
    assert two.before("Edit", call="e0", **edit) == {}, "nobody else wrote there"
    two.after("Edit", call="e0", **edit)
    shell(world, one, "echo by one >> a", "c1")
    (world.project / "a").write_text("committed\nby one\nby the person\n")
    told = two.before("Edit", call="e1", **edit)["hookSpecificOutput"]
    assert "a (line 2 by session one), a (line 3 by a person)" in told["additionalContext"]
    assert "permissionDecision" not in told
    two.after("Edit", call="e1", **edit)
    assert "uncommitted lines" not in str(two.before("Edit", call="e2", **edit))
    assert "by session one" not in str(one.before("Edit", call="e3", **edit))


def test_clean_files_come_back_byte_for_byte(world: World) -> None:
    """Line ends, a submodule, a sparse checkout: files that git calls clean are not always as its objects are."""
    commit = "git -c user.name=a -c user.email=a@b commit -qm more"
    run(world, "mkdir far lib; echo far > far/file; cd lib; git init -q; echo x > x; git add x; " + commit)
    run(
        world,
        f"git add far lib; {commit}; git sparse-checkout set --no-cone '/*' '!/far/' && git config core.autocrlf true",
    )
    (world.project / "dos").write_bytes(b"one\r\ntwo\r\n")
    run(world, f"git add dos; {commit}")
    agent = world.session()
    agent.start()
    shell(world, agent, "true")
    wait_until(lambda: all(one["current"] for one in world.view("workspace.status")["roots"]), "it is watched")
    there = {name: (world.project / name).read_bytes() for name in ("a", "dos", "src/b", "lib/x")}
    assert not (world.project / "far").exists()
    shell(world, agent, "rm -rf a dos src")
    world.cli("undo", "--yes")
    assert {name: (world.project / name).read_bytes() for name in there} == there
    assert not (world.project / "far").exists()


def test_a_file_of_git_lfs_is_read_where_lfs_keeps_it(tmp_path: Path) -> None:
    content = b"large\0file"
    name = hashlib.sha256(content).hexdigest()
    (tmp_path / "pointer").write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{name}\nsize 10\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    oid = subprocess.check_output(["git", "hash-object", "-w", "pointer"], cwd=tmp_path, text=True).strip()
    kept = tmp_path / ".git" / "lfs" / "objects" / name[:2] / name[2:4] / name
    kept.parent.mkdir(parents=True)
    assert read_blob(str(tmp_path / ".git"), oid) is None
    kept.write_bytes(content)
    assert read_blob(str(tmp_path / ".git"), oid) == content
    kept.write_bytes(b"damaged")
    assert read_blob(str(tmp_path / ".git"), oid) is None


def test_no_program_of_the_repository_runs(world: World) -> None:
    run(
        world,
        "git config filter.own.smudge 'touch ran; cat'; echo '* filter=own' > .gitattributes; git add .gitattributes",
    )
    agent = world.session()
    agent.start()
    shell(world, agent, "rm a")
    world.cli("undo", "--yes")
    assert text(world, "a") == "committed\n"
    assert not list(world.project.rglob("ran"))


def test_a_session_is_told_that_head_moved_and_a_person_what_was_discarded(world: World) -> None:
    one, two = world.session("one"), world.session("two")
    one.start(), two.start()
    shell(world, two, "echo two > mine")
    shell(world, one, "git checkout -q -b other")
    told = two.before("Bash", command="ls")["hookSpecificOutput"]["additionalContext"]
    assert "HEAD moved: " in told
    assert "→ other" in told
    assert "by session one" in told
    two.after("Bash", command="ls")
    assert one.before("Bash", command="ls") == {}
    one.after("Bash", command="ls")
    (world.project / "a").write_text("committed\n1\n2\n")
    shell(world, one, "git checkout -q -- a", call="loses")
    wait_until(lambda: "2 lines lost" in world.cli("undo", "--list"), "the loss is in the log")
    said = one.before("Bash", command="ls")["systemMessage"]
    assert "2 uncommitted lines in 1 file discarded" in world.cli("status")
    assert "2 uncommitted lines in 1 file discarded; restore: holdfast undo --call loses" in said


def test_a_chosen_folder_outside_of_git_is_kept_too(tmp_path: Path) -> None:
    world = World(tmp_path)
    try:
        world.start()
        (world.project / "chapters").mkdir()
        (world.project / "chapters" / "one.md").write_text("first words\n")
        (world.project / ".gitignore").write_text("*.tmp\n")
        (world.project / "x.tmp").write_text("scratch")
        agent = world.session("s")
        agent.start()
        assert "name it in workspace.folders" in world.cli("undo", "--yes", code=1)
        world.cli("config", "set", "workspace.folders", json.dumps([str(world.project)]))
        # Settings are read again within a second; a person's own command reads them at once.
        assert "Nothing changed" in world.cli("undo", "--list")
        shell(world, agent, "rm -rf chapters x.tmp", "c")
        assert "1 line lost" in (shown := world.cli("undo", "--list")), shown
        world.cli("undo", "--yes")
        assert text(world, "chapters/one.md") == "first words\n"
        assert not (world.project / "x.tmp").exists()
        shell(world, agent, "mv chapters parts; echo more >> parts/one.md", "d")
        world.kill()
        (world.project / "parts" / "one.md").unlink()
        world.start()
        shell(world, agent, "true", "e")
        (world.project / "parts").mkdir(exist_ok=True)
        assert "parts/one.md" in world.cli("rescue")
        world.cli("rescue", "parts/one.md", "--yes")
        assert text(world, "parts/one.md") == "first words\nmore\n"
        assert not (world.project / ".git").exists()
        git(world.project, "init", "-q")
        shell(world, agent, ": > parts/one.md", "f")
        world.cli("undo", "--yes")
        assert text(world, "parts/one.md") == "first words\nmore\n"
    finally:
        world.close()
