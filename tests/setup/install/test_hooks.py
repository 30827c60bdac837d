"""Hook entries in settings files: in without harm, out to the byte, and refused where that cannot be promised."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agents import AGENTS
from holdfast.core.errors import InstallRefused
from holdfast.setup.install import hooks as install
from holdfast.setup.install import hooks_text, locations
from holdfast.setup.install.json_edit import parse_json
from holdfast.setup.install.mcp_servers import status_line_of

CLAUDE = AGENTS["claude-code"]
EVENTS = [hook.event for hook in CLAUDE.hooks if hook.register]
SRC = Path(install.__file__).parents[3]


@dataclass
class World:
    root: Path

    def __post_init__(self):
        self.home, self.project = self.root / "home", self.root / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.client = self.root / "bin" / "holdfast-hook"
        self.client.parent.mkdir()
        self.client.write_text("#!/bin/sh\n")
        self.client.chmod(0o755)
        self.file = self.project / ".claude" / "settings.json"
        self.state = self.home / ".local/state/holdfast"

    def settings(self, text: str | bytes) -> Path:
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_bytes(text.encode() if isinstance(text, str) else text)
        return self.file

    def install(self, level="project"):
        return install.install_hooks(CLAUDE, level, self.project)

    def remove(self, level="project"):
        return install.remove_hooks(CLAUDE, level, self.project)

    def refused(self, work=None) -> InstallRefused:
        before = self.file.read_bytes() if self.file.is_file() else None
        with pytest.raises(InstallRefused) as refusal:
            (work or self.install)()
        assert (self.file.read_bytes() if self.file.is_file() else None) == before
        assert refusal.value.where and refusal.value.fix
        return refusal.value


def enter(patch: pytest.MonkeyPatch, world: World) -> World:
    for name in ("HOLDFAST_STATE", "XDG_STATE_HOME", "HOLDFAST_CONFIG"):
        patch.delenv(name, raising=False)
    patch.setenv("HOME", str(world.home))
    patch.setattr(hooks_text, "_script_folders", lambda: [world.client.parent])
    return world


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch):
    return enter(monkeypatch, World(tmp_path))


# ---- many files: in, again, out ----

OURS_OLD = (
    '{"type": "command", "command": "/old/bin/holdfast-hook", "args": ["ask", "claude-code", "Stop"], "timeout": 1}'
)
OTHER = '{"type": "command", "command": "echo holdfast-hook", "timeout": 5}'
FILES = {
    "empty": "",
    "blank": " \n\t\n",
    "only a byte order mark": "\ufeff",
    "empty object": "{}",
    "empty object, newline": "{}\n",
    "empty object, room": "{ }\n",
    "empty object, lines": "{\n}\n",
    "minified": '{"a":1,"b":{"c":[1,2]}}',
    "one line with spaces": '{"a": 1, "b": [true, null]}\n',
    "minified, empty hooks": '{"a":1,"hooks":{}}',
    "tabs": '{\n\t"model": "opus",\n\t"permissions": {\n\t\t"allow": []\n\t}\n}\n',
    "four spaces, no newline at the end": '{\n    "model": "opus"\n}',
    "CRLF": '{\r\n  "model": "opus",\r\n  "x": {\r\n    "y": 1\r\n  }\r\n}\r\n',
    "CR": '{\r  "model": "opus"\r}\r',
    "byte order mark": '\ufeff{\n  "model": "opus"\n}\n',
    "comments": '// I\n{\n  /* a */ "a": 1, // one, and\n  "b": "// no comment, /* here */" // 2\n  // z\n}\n// end\n',
    "comment in an empty object": "{\n  // nothing yet\n}\n",
    "block comment in an empty object": "{ /* nothing yet */ }",
    "trailing commas": '{\n  "a": [1, 2,],\n  "hooks": {"Stop": [],},\n}\n',
    "trailing comma and a remark": '{\n  "a": 1, // note\n}\n',
    "other hooks": '{\n  "hooks": {\n    "Stop": [\n      {\n        "hooks": [\n          '
    + OTHER
    + "\n        ]\n      }\n    ]\n  }\n}\n",
    "other hooks inline": '{\n  "hooks": {"Stop": [{"matcher": "", "hooks": [' + OTHER + ']}]},\n  "z": 1\n}\n',
    "unknown events of any shape": '{"hooks": {"Later": {"odd": [1]}, "Other": null, "Third": "x"}}',
    "empty event": '{\n  "hooks": {\n    "Stop": [],\n    "PreToolUse": []\n  }\n}\n',
    "odd shapes elsewhere": '{"env": [[[]]], "": {"": ""}, "hooks ": 1, "n": -0.0e-7, "big": 1' + "0" * 400 + "}",
    "unicode": '{\n  "näme": "日本 \\u00e9 \\ud83d\\ude00 😀 \u2028",\n  "esc": "\\"}{[],//"\n}\n',
    "duplicate names": '{"a": 1, "a": 2, "b": {"c": 1, "c": 2}}',
    "hooks first": '{"hooks": {}, "a": 1}',
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_in_twice_and_out_again(world, text):
    file = world.settings(text)
    first = world.install()
    written = file.read_bytes()
    assert {e.event for e in install.installed_hooks(CLAUDE, "project", world.project)} == set(EVENTS)
    assert install.verify_installation(CLAUDE, "project", world.project) == []
    assert hooks_text.foreign_values(written.decode()) == hooks_text.foreign_values(text)
    assert first.changes and first.diff
    assert not world.install().changes
    assert file.read_bytes() == written
    world.remove()
    assert file.read_bytes() == text.encode()
    assert list((world.state / "installs").iterdir()) == [world.state / "installs" / "lock"]


STRICT = {name: text for name, text in FILES.items() if "comment" not in name and "trailing" not in name}


@pytest.mark.parametrize("text", STRICT.values(), ids=STRICT.keys())
def test_what_was_json_stays_json_and_nothing_foreign_is_rewritten(world, text):
    file = world.settings(text)
    world.install()
    written = file.read_bytes().decode()
    seen = json.loads(written.removeprefix("\ufeff"))
    assert all(seen["hooks"][event][-1]["hooks"][0]["args"][-1] == event for event in EVENTS)
    letters = iter(written)
    assert all(letter in letters for letter in "".join(text.split())), "the old text is still there, in its order"


LOOSE = {"empty", "blank", "only a byte order mark", "empty object, room", "empty object, lines"}
LOOSE |= {"block comment in an empty object", "trailing commas", "trailing comma and a remark"}


@pytest.mark.parametrize("name", FILES)
def test_what_another_wrote_meanwhile_stays(world, name):
    """Then even the text comes back, but for blanks inside empty brackets and commas before closing ones."""
    file = world.settings(text := FILES[name])
    world.install()
    file.write_bytes(file.read_bytes() + b"\n\n")
    world.remove()
    rest = file.read_bytes().decode()
    assert hooks_text.foreign_values(rest) == hooks_text.foreign_values(text)
    assert "holdfast" not in rest.replace("echo holdfast-hook", "")
    assert name in LOOSE or rest == text + "\n\n"


def test_a_new_line_for_each_event_in_the_files_own_manner(world):
    file = world.settings(FILES["tabs"])
    world.install()
    lines = file.read_text().splitlines()
    assert lines[4] == "\t}," and lines[5] == '\t"hooks": {'
    assert lines[6].startswith('\t\t"SessionStart": [{"hooks": [{"type": "command"')
    assert lines[-2:] == ["\t}", "}"]
    world.settings(FILES["CRLF"])
    world.install()
    assert b"\n" not in file.read_bytes().replace(b"\r\n", b"")


def test_a_file_and_folder_of_ours_disappear_again(world):
    plan = world.install()
    assert plan.created and plan.before is None and world.file.is_file()
    world.remove()
    assert list(world.project.iterdir()) == []


def test_a_folder_with_something_else_in_it_stays(world):
    world.install()
    (world.file.parent / "notes.md").write_text("mine")
    world.remove()
    assert [p.name for p in world.file.parent.iterdir()] == ["notes.md"]


def test_a_file_of_ours_in_which_somebody_wrote_stays_with_that(world):
    world.install()
    text = world.file.read_text()
    world.file.write_text(text.replace("{\n", '{\n  "model": "opus",\n', 1))
    world.remove()
    assert world.file.read_text() == '{\n  "model": "opus"\n}\n'


def test_a_file_reformatted_by_the_agent_gives_up_our_entries_only(world):
    file = world.settings('{"model":"opus","hooks":{"Stop":[{"hooks":[' + OTHER + "]}]}}")
    world.install()
    file.write_text(json.dumps({**json.loads(file.read_text()), "theme": "dark"}, indent=2))
    world.remove()
    assert json.loads(file.read_text()) == {
        "model": "opus",
        "hooks": {"Stop": [{"hooks": [json.loads(OTHER)]}]},
        "theme": "dark",
    }


def test_an_entry_moved_into_another_group_is_found(world):
    file = world.settings('{"hooks":{"Stop":[{"matcher":"x","hooks":[' + OTHER + "," + OURS_OLD + "]}]}}")
    world.remove()
    assert json.loads(file.read_text()) == {"hooks": {"Stop": [{"matcher": "x", "hooks": [json.loads(OTHER)]}]}}


# ---- upgrades ----


def test_older_entries_are_updated_in_place_and_doubled_or_dropped_ones_go(world):
    group = '{"hooks": [' + OURS_OLD + "]}"
    gone = OURS_OLD.replace('"Stop"', '"FileChanged"')
    shell = '{"type": "command", "command": "\'/o d/python3\' -I -S /x/holdfast/hook.py tell claude-code Setup"}'
    world.settings(
        f'{{\n  "hooks": {{\n    "Stop": [{group}, {group}],\n    "FileChanged": [{{"hooks": [{gone}]}}],\n'
        f'    "Setup": [{{"hooks": [{shell}]}}]\n  }},\n  "a": 1\n}}\n'
    )
    world.install()
    hooks = json.loads(world.file.read_text())["hooks"]
    assert len(hooks["Stop"]) == len(hooks["Setup"]) == 1 and "FileChanged" not in hooks
    assert hooks["Stop"][0]["hooks"][0]["command"] == str(world.client)
    assert list(hooks)[:2] == ["Stop", "Setup"]
    world.remove()
    assert json.loads(world.file.read_text()) == {"a": 1}


def test_an_upgrade_still_gives_the_first_bytes_back(world, monkeypatch):
    file = world.settings(FILES["comments"])
    world.install()
    newer = world.root / "newer"
    shutil.copytree(world.client.parent, newer)
    monkeypatch.setattr(hooks_text, "_script_folders", lambda: [newer])
    assert any("out of date" in problem for problem in install.verify_installation(CLAUDE, "project", world.project))
    assert world.install().changes
    assert str(newer).encode() in file.read_bytes()
    world.remove()
    assert file.read_bytes() == FILES["comments"].encode()


def test_an_edit_between_two_installs_is_part_of_what_comes_back(world):
    file = world.settings('{\n  "model": "opus"\n}\n')
    world.install()
    ours = file.read_bytes()
    file.write_bytes(ours.replace(b'"opus"', b'"sonnet"'))
    world.install()
    world.remove()
    assert file.read_bytes() == b'{\n  "model": "sonnet"\n}\n'
    world.install()
    file.write_bytes(ours)  # an older version was checked out again
    world.remove()
    assert file.read_bytes() == b'{\n  "model": "opus"\n}\n'


def test_without_its_record_an_installation_is_still_taken_out(world):
    file = world.settings(FILES["tabs"])
    world.install()
    shutil.rmtree(world.state)
    world.remove()
    assert file.read_text() == FILES["tabs"]


# ---- the command ----


def test_the_entry_is_the_exec_form_with_the_absolute_native_client(world):
    world.install()
    entry = json.loads(world.file.read_text())["hooks"]["PreToolUse"][0]["hooks"][0]
    assert entry == {
        "type": "command",
        "command": str(world.client),
        "args": ["ask", "claude-code", "PreToolUse"],
        "timeout": 15,
    }


def test_without_the_native_client_python_runs_and_a_removed_script_never_refuses_a_tool(world, tmp_path):
    world.client.unlink()
    command = hooks_text.client_command()
    assert command[0] == str(Path(sys.executable).absolute()) and command[-1] == str(SRC / "holdfast/hook.py")
    assert hooks_text.is_ours({"command": command[0], "args": command[1:]})
    script = tmp_path / "hook.py"
    script.write_text("import sys\ndef run():\n    print(sys.argv)\n")
    call = [*command[:-1], str(script), "ask", "claude-code", "Stop"]
    assert subprocess.run(call, capture_output=True, text=True).stdout == f"{call[5:]}\n"
    script.unlink()
    assert subprocess.run(call, capture_output=True).returncode == 0


def test_the_state_directory_is_named_only_where_a_hook_would_not_find_it(world, monkeypatch):
    assert hooks_text.state_words(world.state) == []
    assert hooks_text.state_words(world.root / "s") == ["--state", str(world.root / "s")]
    monkeypatch.setenv("XDG_STATE_HOME", str(world.root / "xdg"))
    assert hooks_text.state_words(world.state) == ["--state", str(world.state)]
    monkeypatch.setenv("HOLDFAST_STATE", str(world.root / "own"))
    world.install()
    args = json.loads(world.file.read_text())["hooks"]["Stop"][0]["hooks"][0]["args"]
    assert args == ["--state", str(world.root / "own"), "ask", "claude-code", "Stop"]


@pytest.mark.parametrize(
    ("value", "ours"),
    [
        ({"command": "/a/holdfast-hook", "args": ["ask"]}, True),
        ({"command": "/a/holdfast-hook ask claude-code Stop"}, True),
        ({"command": "holdfast-hook ask"}, True),
        ({"command": "python3", "args": ["-I", "/x/holdfast/hook.py"]}, True),
        ({"command": "echo holdfast-hook"}, False),
        ({"command": "/a/my-holdfast-hook"}, False),
        ({"command": "it's broken"}, False),
        ({"command": 7}, False),
        ({"url": "http://localhost/holdfast-hook"}, False),
        (None, False),
    ],
)
def test_which_entries_are_ours(value, ours):
    assert hooks_text.is_ours(value) is ours


# ---- looking ----


def test_verify_says_what_is_wrong(world):
    assert len(install.verify_installation(CLAUDE, "project", world.project)) == len(EVENTS)
    world.settings('{"disableAllHooks": true}')
    world.install()
    world.client.chmod(0o644)
    problems = install.verify_installation(CLAUDE, "project", world.project)
    assert any("disableAllHooks" in p for p in problems)
    assert sum(f"{world.client} is not there" in p for p in problems) == len(EVENTS)
    found = install.installed_hooks(CLAUDE, "project", world.project)
    assert {item.missing for item in found} == {str(world.client)}


def test_two_levels_at_once_are_seen(world):
    world.install("project")
    assert install.duplicate_hooks(CLAUDE, world.project) == []
    world.install("user")
    doubles = install.duplicate_hooks(CLAUDE, world.project)
    assert {d.event for d in doubles} == set(EVENTS)
    assert set(doubles[0].paths) == {world.file, world.home / ".claude/settings.json"}


def test_home_as_project_is_one_file_and_no_double(world):
    install.install_hooks(CLAUDE, "user", world.home)
    assert install.duplicate_hooks(CLAUDE, world.home) == []


# ---- refusals ----


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3, "comma"),
        ('{\n  "a": \n}', 3, "missing"),
        ('{\n  "a": "x\n}', 2, "control character"),
        ('{"a": 1', 1, "missing"),
        ("{} {}", 1, "follows"),
        ("{'a': 1}", 1, "quotes"),
        ("{\n/* no end\n}", 2, "quotes"),
        ("[1]", 1, "object"),
        ('"hooks"', 1, "object"),
        ('{\n"hooks": []}', 2, "hooks"),
        ('{\n"hooks": null}', 2, "hooks"),
        ('{"hooks":\n{"Stop": {}}}', 2, "Stop"),
        ('{"hooks":\n{"Stop":\n[1]}}', 3, "Stop"),
        ('{"hooks": {"Stop": [{"hooks": {}}]}}', 1, "Stop"),
        ('{"hooks": {},\n"hooks": {}}', 2, "twice"),
        ('{"hooks": {"Stop": [],\n"Stop": []}}', 2, "twice"),
        ("[" * 500, 1, "deep"),
        (b'{"a":\n"\xff"}', 2, "UTF-8"),
    ],
)
def test_a_file_we_do_not_understand_is_left_alone(world, text, line, word):
    world.settings(text)
    refusal = world.refused()
    assert refusal.where == f"{world.file}:{line}"
    assert word.lower() in refusal.detail.lower()


def test_read_only_file_and_folder(world):
    world.settings("{}").chmod(0o444)
    assert "read-only" in world.refused().message
    world.file.chmod(0o644)
    world.file.parent.chmod(0o555)
    assert "read-only" in world.refused().message
    world.file.parent.chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_somebody_else(world):
    os.chown(world.settings("{}"), 65534, -1)
    assert "belongs to user 65534" in world.refused().message


def test_a_folder_in_its_place_and_a_project_that_is_not_there(world):
    world.file.mkdir(parents=True)
    world.refused()
    with pytest.raises(InstallRefused):
        install.plan_install(CLAUDE, "project", world.root / "nowhere")
    with pytest.raises(InstallRefused):
        install.plan_install(CLAUDE, "galaxy", world.project)


def test_links_inside_are_followed_and_stay_links(world):
    real = world.home / "dotfiles.json"
    real.write_text('{"a": 1}')
    world.file.parent.mkdir()
    world.file.symlink_to(real)
    plan = world.install()
    assert world.file.is_symlink() and plan.path == real and b"holdfast-hook" in real.read_bytes()
    world.remove()
    assert world.file.is_symlink() and real.read_text() == '{"a": 1}'


def test_a_linked_folder_is_followed(world):
    (world.home / "dotfiles").mkdir()
    (world.home / ".claude").symlink_to(world.home / "dotfiles")
    world.install("user")
    assert (world.home / "dotfiles/settings.json").is_file()
    world.remove("user")
    assert list((world.home / "dotfiles").iterdir()) == []


def test_links_that_lead_outside_or_nowhere_are_refused(world):
    outside = world.root / "outside.json"
    outside.write_text("{}")
    world.file.parent.mkdir()
    for target in (outside, world.home / "gone.json", world.file):
        world.file.unlink(missing_ok=True)
        world.file.symlink_to(target)
        with pytest.raises(InstallRefused):
            world.install()
    assert outside.read_text() == "{}"


def test_a_change_between_plan_and_apply_is_seen(world):
    world.settings("{}")
    plan = install.plan_install(CLAUDE, "project", world.project)
    world.settings('{"a": 1}')
    assert "changed meanwhile" in world.refused(lambda: install.apply_plan(plan)).message
    world.install()
    plan = install.plan_removal(CLAUDE, "project", world.project)
    world.file.write_text(world.file.read_text() + " ")
    world.refused(lambda: install.apply_plan(plan))


def test_a_plan_writes_nothing(world):
    plan = install.plan_install(CLAUDE, "user", world.project)
    assert plan.created and "+    " in plan.diff
    assert list(world.home.iterdir()) == [] and list(world.project.iterdir()) == []


# ---- the file itself ----


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_the_mode_is_kept(world, mode):
    file = world.settings("{}")
    file.chmod(mode)
    world.install()
    assert stat.S_IMODE(file.stat().st_mode) == mode
    world.remove()
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_what_we_remember_is_for_our_eyes_only(world):
    world.settings('{"env": {"TOKEN": "x"}}')
    world.install()
    folder = world.state / "installs"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(f.stat().st_mode) for f in folder.iterdir()} == {0o600}


def test_a_write_that_fails_leaves_the_old_file(world, monkeypatch):
    file = world.settings("{}")

    def fails(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fails)
        with pytest.raises(InstallRefused) as refusal:
            install.apply_plan(install.plan_install(CLAUDE, "project", world.project))
    assert "No space left" in refusal.value.message
    assert file.read_text() == "{}"


def killed_at(world: World, verb: str, call: int) -> int:
    """Runs install or remove in a process of its own, killed as it makes the numbered system call."""
    work = (
        "import sys; from pathlib import Path; from holdfast.setup.install import hooks as install; from holdfast.agents import AGENTS;"
        "from holdfast.setup.install import hooks_text; hooks_text._script_folders = lambda: [Path(sys.argv[2])];"
        "getattr(install, sys.argv[1] + '_hooks')(AGENTS['claude-code'], 'project', Path(sys.argv[3]))"
    )
    calls = "fsync,rename,unlink,mkdir,rmdir"
    strace = ["strace", "-qq", "-o", "/dev/null", "-e", f"inject={calls}:signal=KILL:when={call}"]
    python = [sys.executable, "-c", work, verb, str(world.client.parent), str(world.project)]
    env = {**os.environ, "PYTHONPATH": str(SRC), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([*strace, *python], env=env, capture_output=True).returncode


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("text", [None, FILES["comments"]], ids=["no file", "a file"])
@pytest.mark.parametrize("verb", ["install", "remove"])
def test_killed_at_any_step_the_file_is_old_or_new_and_comes_back(world, text, verb):
    original = None if text is None else world.settings(text).read_bytes()
    world.install()
    new = world.file.read_bytes()
    if verb == "install":
        world.remove()
    for call in range(1, 12):
        rc = killed_at(world, verb, call)
        assert rc in (0, -9, 137)
        assert (world.file.read_bytes() if world.file.exists() else None) in (original, new)
        world.remove()
        assert (world.file.read_bytes() if world.file.exists() else None) == original
        assert not locations.partial_of(world.file).exists()
        if verb == "remove":
            world.install()
        if rc == 0:
            break
    assert rc == 0 and call > 2, "some calls were met, and the last run went through"


# ---- any settings at all ----

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(lambda name: name != "hooks")
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | names
anything = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=10
)
hook = st.fixed_dictionaries({"type": st.just("command"), "command": names})
group = st.fixed_dictionaries({"hooks": st.lists(hook, max_size=2)}, optional={"matcher": names})
known_events = st.dictionaries(st.sampled_from(EVENTS[:6]), st.lists(group, max_size=2), max_size=3)
sections = st.builds(lambda known, odd: {**odd, **known}, known_events, st.dictionaries(names, anything, max_size=2))
objects = st.builds(
    lambda rest, hooks: rest if hooks is None else {**rest, "hooks": hooks},
    st.dictionaries(names, anything, max_size=4),
    st.none() | sections,
)


def written(value, rnd, newline, blank, notes) -> str:
    """One of the many ways to write a value down."""

    def gap():
        note = rnd.choice(["/* , { */", f"// ] , {newline}"]) if notes and rnd.random() < 0.2 else ""
        return rnd.choice(["", *blank]) + note + rnd.choice(["", *blank])

    def one(item):
        if isinstance(item, dict) and item:
            members = [f"{gap()}{text(k)}{gap()}:{gap()}{one(v)}{gap()}" for k, v in item.items()]
            return "{" + ",".join(members) + "}"
        if isinstance(item, list) and item:
            return "[" + ",".join(f"{gap()}{one(v)}{gap()}" for v in item) + "]"
        return text(item)

    def text(item):
        return json.dumps(item, ensure_ascii=rnd.random() < 0.5)

    return gap() + one(value) + gap()


texts = st.builds(
    written,
    objects,
    st.randoms(use_true_random=False),
    st.just("\n"),
    st.sampled_from([[], [" "], ["\n", "\n  "], ["\r\n\t", " "], ["\n    ", "\n"]]),
    st.booleans(),
)
ENTRIES = {event: {"type": "command", "command": "/a/holdfast-hook", "args": ["ask", event]} for event in EVENTS}
GROUPS = {event: {"hooks": [entry]} for event, entry in ENTRIES.items()}
LAYOUTS = pytest.mark.parametrize("wanted", [GROUPS, ENTRIES], ids=["in groups", "in lists"])


@LAYOUTS
@settings(max_examples=80, deadline=None)
@given(text=texts)
def test_any_text_takes_ours_in_and_gives_it_back(wanted, text):
    put_in = hooks_text.with_ours(text, wanted)
    assert hooks_text.foreign_values(put_in) == hooks_text.foreign_values(text)
    hooks = parse_json(put_in).value["hooks"]
    assert all(hooks[event][-1] == wanted[event] for event in EVENTS)
    assert hooks_text.with_ours(put_in, wanted) == put_in
    assert hooks_text.without_ours(put_in, hooks_text.parts_of(text)) == text


@LAYOUTS
@settings(max_examples=60, deadline=None)
@given(text=texts, older=st.sets(st.sampled_from([*EVENTS, "Gone"]), min_size=1))
def test_any_mixture_of_older_entries_ends_the_same(wanted, text, older):
    old = {event: {"command": "/old/holdfast-hook", "args": [event]} for event in older}
    mixed = hooks_text.with_ours(text, {e: {"hooks": [o]} for e, o in old.items()} if wanted is GROUPS else old)
    put_in = hooks_text.with_ours(mixed, wanted)
    found = hooks_text.ours_in(parse_json(put_in))
    assert sorted(event for event, _, _ in found) == sorted(EVENTS)
    assert hooks_text.foreign_values(put_in) == hooks_text.foreign_values(text)
    assert hooks_text.foreign_values(hooks_text.without_ours(put_in)) == hooks_text.foreign_values(text)


@settings(max_examples=30, deadline=None)
@given(value=objects, text_seed=st.randoms(use_true_random=False), edit=st.booleans())
def test_any_file_comes_back_to_the_byte_and_keeps_an_edit(value, text_seed, edit):
    text = written({"mark": "BEFORE", **value}, text_seed, "\n", ["\n  "], True)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        world = enter(patch, World(Path(folder)))
        file = world.settings(text)
        world.install()
        if edit:
            file.write_bytes(file.read_bytes().replace(b"BEFORE", b"AFTER", 1))
        world.remove()
        assert file.read_bytes() == text.encode().replace(b"BEFORE", b"AFTER" if edit else b"BEFORE", 1)


def test_the_real_home_is_never_touched(world):
    """Every path comes from HOME of the environment and from the project given."""
    plans = [install.plan_install(CLAUDE, level, world.project) for level in locations.install_levels(CLAUDE)]
    assert all(plan.path.is_relative_to(world.root) and plan.state.is_relative_to(world.root) for plan in plans)
    assert hashlib.sha256(b"").hexdigest() not in {r for p in plans if p.record for r in p.record.results}


def test_a_file_of_our_making_goes_also_after_an_upgrade(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks and status line share a file: each sees the other's entry as somebody's."""
    parts = [CLAUDE, status_line_of(CLAUDE)]
    for part in parts:
        install.install_hooks(part, "user", world.project)
    newer = world.root / "newer" / "holdfast-hook"
    shutil.copytree(world.client.parent, newer.parent)
    monkeypatch.setattr(hooks_text, "_script_folders", lambda: [newer.parent])
    for part in parts:
        install.install_hooks(part, "user", world.project)
    assert str(newer) in (world.home / ".claude/settings.json").read_text()
    for part in reversed(parts):
        install.remove_hooks(part, "user", world.project)
    assert not (world.home / ".claude/settings.json").exists()


def test_hooks_that_were_put_in_and_are_gone_are_named_and_others_are_not(world):
    assert install.lost_hooks(AGENTS.values(), world.project) == []
    world.install()
    assert install.lost_hooks(AGENTS.values(), world.project) == []
    world.file.write_text("{}")
    lost = install.lost_hooks(AGENTS.values(), world.project)
    assert (
        len(lost) == 1
        and "Claude Code: Holdfast's hooks are missing" in lost[0]
        and "holdfast install --agent claude-code" in lost[0]
    )
    world.file.write_text("{")
    assert len(install.lost_hooks(AGENTS.values(), world.project)) == 1
    world.settings("{}")
    world.install()
    world.remove()
    assert install.lost_hooks(AGENTS.values(), world.project) == [], "taken out by us"
