"""Requirements as people write them: layers, files, mistakes. A mistake is named by line and hurts only itself."""

import os
from pathlib import Path

import pytest

from holdfast.features.gates import FEATURE
from holdfast.features.gates.settings import GateSettings, presets
from holdfast.settings import OtherPlacements, Resolved, Settings, json_schema, trust
from holdfast.settings.edit import set_value
from tests.features.gates.stage import Stage

SEED = """
requirements:
  architecture_reviewed:
    enabled: true
    scope: branch  # Not session!
    auto_resolve_skill: arch-review
"""


class Home:
    """The files that settings are read from, in a folder of their own."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        elsewhere = {"gates": OtherPlacements(FEATURE.settings_names, FEATURE.settings_files)}
        environ = {"HOME": str(self.home)}
        self.settings = Settings(
            {"gates": GateSettings}, config_dir=root / "config", environ=environ, elsewhere=elsewhere
        )

    def write(self, name: str, text: str | bytes) -> Path:
        path = {"~": self.home, "@": self.settings.config_dir}.get(name[0], self.project) / name.lstrip("~@/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def load(self) -> Resolved:
        return self.settings.load(self.project)

    def gates(self) -> GateSettings:
        return self.load()["gates"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_nothing_written_is_no_gate(home: Home) -> None:
    assert home.gates().rules == ()
    assert home.load().notices == ()


@pytest.mark.parametrize(
    "file", [".holdfast/settings.yaml", ".claude/requirements.yaml", ".claude/requirements.local.yaml",
             "~/.claude/requirements.yaml", "@settings.yaml", ".holdfast/settings.local.yaml"],
)  # fmt: skip
def test_the_seeds_snippet_works_verbatim_in_each_place(home: Home, file: str) -> None:
    """S2-17."""
    home.write(file, SEED)
    (rule,) = home.gates().rules
    assert (rule.name, rule.scope, rule.resolved_by("arch-review")) == ("architecture_reviewed", "branch", True)
    assert home.load().notices == ()


def test_the_cascade(home: Home) -> None:
    """S2-19: user < project < local, field by field."""
    home.write("~/.claude/requirements.yaml", "requirements:\n  a: {scope: branch, message: from user}\n  b: {}\n")
    home.write(".claude/requirements.yaml", "requirements:\n  a: {message: from project}\n  c: {}\n")
    home.write(".claude/requirements.local.yaml", "requirements:\n  c: {enabled: false}\n")
    found = home.gates().requirements
    assert (found["a"].scope, found["a"].message) == ("branch", "from project")
    assert [rule.name for rule in home.gates().rules] == ["a", "b"]
    assert home.load().origin("gates.requirements.a.message").layer == "project"


def test_inherit_false_leaves_out_what_is_below_once_it_is_trusted(home: Home) -> None:
    home.write("~/.claude/requirements.yaml", "requirements:\n  a: {}\n")
    path = home.write(".claude/requirements.yaml", "inherit: false\nrequirements:\n  b: {}\n")
    assert sorted(rule.name for rule in home.gates().rules) == ["a", "b"]
    trust.trust_file(path, config_dir=home.settings.config_dir)
    assert [rule.name for rule in home.gates().rules] == ["b"]


def test_the_section_and_the_top_level_name_are_one(home: Home) -> None:
    home.write(
        ".holdfast/settings.yaml", "gates:\n  requirements:\n    a: {scope: branch}\nrequirements:\n  a: {}\n  b: {}\n"
    )
    found = home.gates().requirements
    assert sorted(found) == ["a", "b"]
    assert found["a"].scope == "branch"


def test_a_whole_file_of_the_origin_is_understood(home: Home) -> None:
    """Its own keys, also those we have no use for, without a word of complaint."""
    text = r"""
version: "1.0"
enabled: true
inherit: true
requirements:
  commit_plan:
    enabled: true
    type: blocking
    scope: session
    description: "An atomic commit strategy."
    trigger_tools: [Edit, Write, MultiEdit]
    auto_resolve_skill: "requirements-framework:plan-review"
    message: |
      ## Blocked: commit_plan
      **Execute**: `/{auto_resolve_skill}`
    checklist: ["One", "Two"]
  protected_branch:
    type: guard
    guard_type: protected_branch
    protected_branches: [master, main]
    trigger_tools: [Edit]
  branch_size_limit:
    type: dynamic
    calculator: branch_size_calculator
    cache_ttl: 60
    approval_ttl: 3600
    thresholds: {warn: 250, block: 400}
    blocking_message: "Branch has **{total}** line changes (limit: {block_threshold})."
  pre_commit_review:
    scope: single_use
    trigger_tools:
      - tool: Bash
        command_pattern: "git\\s+(commit|cherry-pick|revert|merge)"
    satisfied_by_skill: 'requirements-framework:pre-commit'
hooks:
  session_start: {inject_context: true, injection_mode: auto}
  stop: {verify_requirements: true, verify_scopes: [session]}
  session_learning: {enabled: false}
"""
    home.write(".claude/requirements.yaml", text)
    assert home.load().notices == ()
    stage = Stage(home.gates())
    stage.branch = "x"
    stage.skill("requirements-framework:plan-review")
    assert stage.edit().silent
    assert stage.run("git commit -m x").verdict == "deny"


@pytest.mark.parametrize(
    ("broken", "line", "says"),
    [
        ("scope: brnch", 4, "scope"),
        ("type: blokking", 4, "type"),
        ("command_pattern: 'git (commit'", 4, "not a regular expression"),
        ("trigger_tool: [Edit]", 4, "trigger_tools"),
        ("ttl: soon", 4, "ttl"),
        ("type: evidence", 3, "evidence"),
        ("type: guard", 3, "guard_type"),
        ("evidence: {command: a, commit: true}", 4, "exactly one of"),
        ("evidence: {comand: a}", 4, "comand"),
        ("evidence: [{commit: true}, {comand: a}]", 4, "comand"),
        ("trigger_tools: [edit, {tol: Bash}]", 4, "tol"),
        ("trigger_tools: {tool: Bash, command_pattern: '('}", 4, "trigger_tools.command_pattern"),
        ("carry_over: -1", 4, "from 0 to"),
        ("paths: {}", 4, "paths"),
    ],
)
def test_one_wrong_word_takes_out_that_requirement_whole_and_no_other(
    home: Home, broken: str, line: int, says: str
) -> None:
    """Half a requirement would refuse what nobody wanted refused."""
    home.write(".claude/requirements.yaml", f"requirements:\n  good: {{}}\n  bad:\n    {broken}\n  also_good: {{}}\n")
    found = home.load()
    assert [rule.name for rule in found["gates"].rules] == ["good", "also_good"]
    assert any(says in str(n) and f"requirements.yaml:{line}:" in str(n) for n in found.notices), found.notices
    assert found["gates"].notices


@pytest.mark.parametrize("key", ["adr_path: docs/adr", "colour: blue", "review_days: 3", "owner: platform"])
def test_a_name_that_is_really_unknown_takes_out_only_itself(home: Home, key: str) -> None:
    """Also where it is a little like a word of ours: `adr_path` is no misspelled `warn_at`."""
    home.write(
        "~/.claude/requirements.yaml", f"requirements:\n  adr_reviewed: {{enabled: true, scope: branch, {key}}}\n"
    )
    found = home.load()
    assert [(rule.name, rule.scope) for rule in found["gates"].rules] == [("adr_reviewed", "branch")]
    assert [f"unknown setting `{key.partition(':')[0]}`." in str(notice) for notice in found.notices] == [True]
    assert "does not count" not in str(found.notices[0])


def test_a_notice_says_that_the_whole_requirement_does_not_count(home: Home) -> None:
    home.write(".claude/requirements.yaml", "requirements:\n  a: {trigger_tool: [Edit]}\n  b: {scope: weekly}\n")
    found = home.load()
    for name in ("a", "b"):
        said = f"Until it is corrected, this file's `gates.requirements.{name}` does not count."
        assert any(said in str(notice) for notice in found.notices)


def test_a_wrong_word_in_one_layer_leaves_what_the_layer_below_says(home: Home) -> None:
    home.write("~/.claude/requirements.yaml", "requirements:\n  a: {scope: branch}\n")
    home.write(".claude/requirements.yaml", "requirements:\n  a: {message: new, scope: nowhere}\n")
    found = home.gates().requirements["a"]
    assert (found.scope, found.message) == ("branch", "")


def test_a_wrong_word_below_does_not_leave_half_a_requirement_standing(home: Home) -> None:
    home.write("~/.claude/requirements.yaml", "requirements:\n  a: {scope: nowhere, command_pattern: 'git push'}\n")
    home.write(".claude/requirements.yaml", "requirements:\n  a: {message: new}\n  b: {}\n")
    found = home.load()
    assert sorted(found["gates"].requirements) == ["b"]
    assert [n for n in found.notices if "scope" in str(n)]
    home.write("~/.claude/requirements.yaml", "requirements:\n  a: {command_patern: 'git push'}\n")
    assert sorted(home.gates().requirements) == ["b"]


@pytest.mark.parametrize(
    "content",
    [
        b"requirements: [",
        b"requirements:\n\ta: {}",
        b"\xff\xfe\x00",
        b"- just\n- a list",
        b"requirements: 7",
        b"requirements: !!python/object:os.system x",
        b"x" * (1 << 20),
        b"{" * 5000,
    ],
    ids=["torn", "tab", "bytes", "list", "number", "tag", "huge", "deep"],
)  # fmt: skip
def test_a_broken_file_is_named_and_the_other_files_go_on(home: Home, content: bytes) -> None:
    home.write("~/.claude/requirements.yaml", "requirements:\n  kept: {}\n")
    home.write(".claude/requirements.yaml", content)
    found = home.load()
    assert [rule.name for rule in found["gates"].rules] == ["kept"]
    assert any(".claude/requirements.yaml" in str(n) for n in found.notices)


def test_a_file_of_a_gigabyte_is_not_read(home: Home) -> None:
    path = home.write(".claude/requirements.yaml", "requirements:\n  a: {}\n")
    os.truncate(path, 1 << 30)
    assert home.gates().rules == ()
    assert any("larger than" in str(n) for n in home.load().notices)


def test_an_alias_bomb_is_refused_at_once(home: Home) -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    bomb += "".join(f"{c}: &{c} [{', '.join([f'*{p}'] * 10)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True))
    home.write(".claude/requirements.yaml", f"{bomb}requirements:\n  a: {{}}\n")
    assert home.gates().rules == ()
    assert any("values" in str(n) for n in home.load().notices)


def test_a_pattern_that_may_be_slow_needs_trust_in_a_projects_file(home: Home) -> None:
    """P9, P1: a repository cannot hold the daemon up."""
    text = "requirements:\n  slow: {command_pattern: '(a+)+b'}\n  quick: {command_pattern: 'git\\s+push'}\n"
    path = home.write(".claude/requirements.yaml", text)
    assert [rule.name for rule in home.gates().rules] == ["quick"]
    assert any("not trusted" in str(n) for n in home.load().notices)
    trust.trust_file(path, config_dir=home.settings.config_dir)
    assert [rule.name for rule in home.gates().rules] == ["slow", "quick"]
    home.write("~/.claude/requirements.yaml", text)
    trust.untrust_file(path, config_dir=home.settings.config_dir)
    assert "slow" in home.gates().by_name  # the user's own file


@pytest.mark.parametrize("triggers", ["{command_pattern: '(a+)+b'}", "[edit, {command_pattern: '(a+)+b'}]"])
def test_nor_may_it_hide_in_a_trigger(home: Home, triggers: str) -> None:
    path = home.write(".claude/requirements.yaml", f"requirements:\n  slow: {{trigger_tools: {triggers}}}\n  b: {{}}\n")
    assert [rule.name for rule in home.gates().rules] == ["b"]
    assert any("not trusted" in str(n) for n in home.load().notices)
    trust.trust_file(path, config_dir=home.settings.config_dir)
    assert [rule.name for rule in home.gates().rules] == ["slow", "b"]


def test_what_people_write_in_short(home: Home) -> None:
    """One text for a list, one trigger for several, true for five minutes; a command alone is about the shell."""
    home.write(
        "~/.claude/requirements.yaml",
        """
version: 1.0
requirements:
  a: {paths: src/**, carry_over: true, trigger_tools: {tool: Write}, evidence: {command: pytest*}}
  b: {command_pattern: git push}
  c: {command_pattern: git push, trigger_tools: edit}
hooks: {stop: {max_refusals: "2", something: new}}
""",
    )
    gates = home.gates()
    assert home.load().notices == ()
    a, b, c = gates.requirements.values()
    assert (a.paths, a.carry_over, a.trigger_tools[0].tool) == (("src/**",), 300, "Write")
    assert a.evidence[0].command == ("pytest*",)
    assert (b.trigger_tools, c.trigger_tools) == (("shell",), ("edit",))
    assert (gates.version, gates.hooks.stop.max_refusals) == (1.0, 2)
    flat = {name: (value, origin.layer) for name, value, origin in home.load().flat()}
    assert flat["gates.hooks.stop.something"] == ("new", "user")
    assert flat["gates.requirements.a.paths"] == (["src/**"], "user")


def test_a_project_cannot_let_agents_approve_themselves(home: Home) -> None:
    home.write(".claude/requirements.yaml", "agents_may_approve: true\n")
    assert home.gates().agents_may_approve is False


@pytest.mark.parametrize("name", presets().built_in)
def test_what_is_built_in_holds_and_is_off_until_named(name: str) -> None:
    (rule,) = GateSettings.of({"requirements": {name: {"enabled": True}}}).rules
    assert rule.spec.description
    assert rule.at_tool or rule.at_stop


@pytest.mark.parametrize("name", presets().presets)
def test_a_preset_can_be_written_and_read_back(home: Home, name: str) -> None:
    home.project.mkdir(parents=True)
    for requirement, given in presets().presets[name].items():
        assert set_value(home.settings, "project", f"requirements.{requirement}", given, home.project) == ()
    assert sorted(home.gates().by_name) == sorted(presets().presets[name])


def test_a_wrong_value_is_not_written(home: Home) -> None:
    home.project.mkdir(parents=True)
    with pytest.raises(Exception, match="scope"):
        set_value(home.settings, "project", "requirements.a", {"scope": "nowhere"}, home.project)
    assert home.gates().rules == ()


def test_the_schema_for_editors_knows_both_names(home: Home) -> None:
    schema = json_schema(home.settings)
    assert {"gates", "requirements"} <= set(schema["properties"])
    reference = schema["properties"]["requirements"]["$ref"].removeprefix("#/").split("/")
    node = schema
    for step in reference:
        node = node[step]
    assert node["type"] == "object"
