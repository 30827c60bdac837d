"""Settings: who wins, who says so, and that nothing in a file takes the rest down."""

import json
import os
import time
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as configure
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import Meta

from holdfast.app import open_settings
from holdfast.core.errors import BadSettings
from holdfast.core.section import Section
from holdfast.settings import DEFAULT, Settings, SettingsCache, json_schema, trust
from holdfast.settings.edit import set_value


class Rule(Section):
    scope: str = "session"
    run: Annotated[str, Meta(extra={"command": True})] = ""


class Gates(Section):
    """Stands for a feature's section."""

    warn: Annotated[int, Meta(ge=0)] = 250
    block: int = 400
    labels: list[str] = []
    rules: dict[str, Rule] = {}
    steps: list[Rule] = []

    def __post_init__(self):
        if self.warn > self.block:
            raise ValueError("warn must not be above block")


class House:
    def __init__(self, folder: Path) -> None:
        self.config, self.project = folder / "config", folder / "project"
        (self.project / ".holdfast").mkdir(parents=True)
        self.config.mkdir(mode=0o700)
        self.environ: dict[str, str] = {"HOME": str(folder)}
        self.settings = Settings({"gates": Gates}, config_dir=self.config, environ=self.environ)

    def write(self, layer: str, text: str | bytes) -> Path:
        path = self.settings.file(layer, self.project)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def load(self):
        return self.settings.load(self.project)

    def notices(self) -> list[str]:
        return [
            str(n).replace(f"{self.project}/.holdfast/", "").replace(f"{self.config}/", "") for n in self.load().notices
        ]


@pytest.fixture
def house(tmp_path):
    return House(tmp_path)


def test_without_files_the_defaults_count(house):
    resolved = house.load()
    assert (resolved["store"].url, resolved["store"].body_days, resolved["store"].size_warn_mb) == ("", 90, 5000)
    assert resolved["context"].get("start_tokens") == 1500
    assert resolved["context"].get("no_such", 7) == 7
    assert resolved["redact"].enabled is True
    assert (resolved["backup"].hours, resolved["backup"].keep) == (24, 7)
    assert resolved["gates"] == Gates()
    assert resolved.notices == ()
    assert resolved.origin("context.start_tokens") == DEFAULT


def test_each_layer_wins_over_the_one_below_it(house):
    seen = []
    for layer, value in (("user", 1), ("project", 2), ("local", 3)):
        house.write(layer, f"context:\n  start_tokens: {value}\n")
        seen.append(house.load()["context"].start_tokens)
    house.environ["HOLDFAST_CONTEXT__START_TOKENS"] = "4"
    assert [*seen, house.load()["context"].start_tokens] == [1, 2, 3, 4]


def test_mappings_are_merged_and_lists_are_replaced(house):
    house.write("user", "gates: {labels: [a, b], rules: {x: {scope: branch}, y: {scope: one}}}\n")
    house.write("project", "gates: {labels: [c], rules: {y: {scope: two}}}\n")
    gates = house.load()["gates"]
    assert gates.labels == ["c"]
    assert {name: rule.scope for name, rule in gates.rules.items()} == {"x": "branch", "y": "two"}


def test_names_to_redact_only_add_up(house):
    house.write("user", "redact: {names: [badge, pin_code]}\n")
    house.write("project", "redact: {names: []}\n")
    house.write("local", "redact: {names: [salary]}\n")
    assert house.load()["redact"].names == ("badge", "pin_code", "salary")


def test_every_value_names_its_origin(house):
    user = house.write("user", "context:\n\n  start_tokens: 1\ngates:\n  labels:\n    - a\n")
    project = house.write("project", "# ours\ncontext: {prompt_tokens: 5}\n")
    house.environ["HOLDFAST_BACKUP__KEEP"] = "3"
    resolved = house.load()
    assert str(resolved.origin("context.start_tokens")) == f"user {user}:3"
    assert str(resolved.origin("context.prompt_tokens")) == f"project {project}:2"
    assert str(resolved.origin("backup.keep")) == "environment $HOLDFAST_BACKUP__KEEP"
    assert resolved.origin("gates.labels.0").line == 6
    assert str(resolved.origin("gates.warn")) == "default"
    assert resolved.origin("no.such") == DEFAULT
    flat = {name: (value, origin.layer) for name, value, origin in resolved.flat()}
    assert flat["context.start_tokens"] == (1, "user")
    assert flat["store.url"] == ("", "default")


def test_a_wrong_value_falls_to_the_layer_below_and_its_line_is_said(house):
    house.write("user", "context: {start_tokens: 900}\n")
    house.write("project", "# comment\ncontext:\n  prompt_tokens: 7\n  start_tokens:   many\n")
    resolved = house.load()
    assert (resolved["context"].start_tokens, resolved["context"].prompt_tokens) == (900, 7)
    [notice] = resolved.notices
    assert (notice.line, notice.column, notice.path) == (4, 19, "context.start_tokens")
    assert notice.message == "`context.start_tokens`: must be a whole number."
    assert "below" in notice.fix


def test_lines_are_exact_deep_down(house):
    house.write(
        "user",
        "gates:\n  rules:\n    x:\n      scope: a\n    y:\n      scope: [1]\n"
        "  steps:\n    - scope: ok\n    - scope: {}\n",
    )
    resolved = house.load()
    assert [(n.line, n.path) for n in resolved.notices] == [(6, "gates.rules.y.scope"), (9, "gates.steps.1.scope")]
    assert [rule.scope for rule in resolved["gates"].steps] == ["ok", "session"]


def test_a_file_nested_without_end_is_refused(house):
    house.write("user", "context: " + "[" * 100_000)
    assert [notice.message for notice in house.load().notices] == ["nested deeper than 20 levels"]


def test_each_of_many_mistakes_is_told_in_our_words(house):
    house.write(
        "user",
        "context:\n  start_tokens: -1\n  prompt_tokens: [5]\nredact:\n  enabled: perhaps\n  names: [ab, 5, salary]\n"
        "gates:\n  warn: 1.5\n  labels: {}\n  rules: {x: 3}\n",
    )
    resolved = house.load()
    below = "Until it is corrected, what the layer below says counts."
    assert house.notices() == [
        f"settings.yaml:2:17: `context.start_tokens`: must be from 0 to 100000. {below}",
        f"settings.yaml:3:3: `context.prompt_tokens`: must be a whole number. {below}",
        f"settings.yaml:5:12: `redact.enabled`: must be true or false. {below}",
        f"settings.yaml:6:11: `redact.names.0`: must have at least 3 characters. {below}",
        f"settings.yaml:6:15: `redact.names.1`: must be text; put it in quotes. {below}",
        f"settings.yaml:8:9: `gates.warn`: must be a whole number. {below}",
        f"settings.yaml:9:3: `gates.labels`: must be a list. {below}",
        f"settings.yaml:10:14: `gates.rules.x`: must be a mapping. {below}",
    ]
    assert resolved["redact"].names == ("salary",)
    assert resolved["gates"] == Gates()
    assert len(resolved["gates"].notices) == 3
    assert resolved["backup"].notices == ()


def test_one_wrong_item_of_a_list_is_left_out_alone(house):
    house.write("user", "redact:\n  patterns:\n    - 'a+'\n    - '('\n    - b\n")
    resolved = house.load()
    assert resolved["redact"].patterns == ("a+", "b")
    assert [n.line for n in resolved.notices] == [4]


def test_values_that_do_not_go_together_are_left_out_from_the_top(house):
    house.write("user", "gates: {warn: 10, block: 20}\n")
    house.write("project", "gates:\n  warn: 500\n")
    resolved = house.load()
    assert (resolved["gates"].warn, resolved["gates"].block) == (10, 20)
    assert "warn must not be above block" in resolved.notices[0].message
    assert resolved.notices[0].line == 1


def test_a_broken_file_is_left_out_and_the_others_count(house):
    house.write("user", "context: {start_tokens: 5}\n")
    house.write("project", "context:\n  start_tokens: 6\n  bad: [1, 2\nstore: }\n")
    resolved = house.load()
    assert resolved["context"].start_tokens == 5
    assert resolved.notices[0].line == 4
    assert "not valid YAML" in resolved.notices[0].message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("contxt: {}\n", "settings.yaml:1:1: unknown section `contxt`. Did you mean `context`?"),
        ("context:\n  start_token: 1\n", "yaml:2:3: unknown setting `start_token`. Did you mean `start_tokens`?"),
        ("gates:\n  rules:\n    x: {scop: a}\n", "settings.yaml:3:9: unknown setting `scop`. Did you mean `scope`?"),
        ("context:\n  zzz: 1\n", "settings.yaml:2:3: unknown setting `zzz`. Known here: prompt_tokens, start_tokens."),
        ("context: 5\n", "settings.yaml:1:10: `context` must be a mapping."),
        ("- a\n", "settings.yaml: must be a mapping of sections, such as `context:`"),
        ("context: {start_tokens: 1}\ncontext: {}\n", "yaml:2:1: `context` is given twice; the first one counts."),
        ("a: !!python/object:os.system x\n", "settings.yaml:1:4: tags such as"),
        ("a: 1\n---\nb: 2\n", "settings.yaml:2:1: more than one document in the file"),
        ("a: *nobody\n", "settings.yaml:1:4: unknown alias *nobody"),
        ("a: [&a x, *a\n", "not valid YAML"),
    ],
)  # fmt: skip
def test_what_is_said(house, text, said):
    house.write("user", text)
    assert said in house.notices()[0]


def test_an_empty_section_and_an_empty_file_are_fine(house):
    house.write("user", "context:\n  # start_tokens: 5\n")
    house.write("project", "")
    house.write("local", "# nothing\n")
    assert house.load().notices == ()


def test_an_anchor_may_be_used_again_but_not_to_blow_up(house):
    house.write("user", "gates:\n  rules:\n    a: &a {scope: branch}\n    b: *a\n")
    assert house.load()["gates"].rules["b"].scope == "branch"
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
    )
    house.write("user", bomb)
    started = time.process_time()
    assert "more than 5000 values" in house.notices()[0]
    assert time.process_time() - started < 1
    house.write("user", "a: &a [*a]\n")
    assert "unknown alias" in house.notices()[0]


@pytest.mark.parametrize(
    "content",
    [b"#" * 5_000_000, b"[" * 100_000, b"- " * 100_000, b"a: " + b"x y\n  " * 30_000, b"{" * 200_000, b"? " * 50_000,
     b"\xff\xfe", b"\x00", b'"\\ud800"', b"a: " + b"9" * 100_000, b"&a " * 40_000, b"'" * 200_000, b"\t" * 200_000],
    ids=["5MB", "brackets", "dashes", "plain", "braces", "questions", "utf16", "nul", "surrogate", "digits", "anchors",
         "quotes", "tabs"],
)  # fmt: skip
def test_a_hostile_file_costs_little_and_is_refused(house, content):
    house.write("user", "context: {start_tokens: 5}\n")
    house.write("project", content)
    started = time.process_time()
    resolved = house.load()
    assert time.process_time() - started < 5
    assert resolved["context"].start_tokens == 5
    assert resolved.notices


def test_many_wrong_places_stay_cheap(house):
    house.write("project", "gates:\n  steps:\n" + "".join(f"    - {{scope: [{i}], x{i}: 1}}\n" for i in range(700)))
    started = time.process_time()
    assert len(house.load().notices) == 100
    assert time.process_time() - started < 5


def test_a_pipe_or_a_folder_in_place_of_a_file(house):
    os.mkfifo(house.settings.file("project", house.project))
    house.settings.file("local", house.project).mkdir()
    assert [n.message for n in house.load().notices] == ["cannot be read: not a plain file"] * 2


def test_the_environment(house):
    house.environ |= {
        "HOLDFAST_REDACT__ENABLED": "false",
        "HOLDFAST_REDACT__NAMES": "[badge, salary]",
        "HOLDFAST_GATES__RULES__X__SCOPE": "branch",
        "HOLDFAST_STORE__URL": "5",
        "HOLDFAST_STATE": "/not/a/setting",
        "HOLDFAST_CONTXT__A": "1",
        "HOLDFAST_CONTEXT__START_TOKENS": "many",
    }
    resolved = house.load()
    assert resolved["redact"].enabled is False
    assert resolved["redact"].names == ("badge", "salary")
    assert resolved["gates"].rules["x"].scope == "branch"
    assert resolved["store"].url == "5"
    assert resolved["context"].start_tokens == 1500
    assert sorted(n.file for n in resolved.notices) == ["$HOLDFAST_CONTEXT__START_TOKENS", "$HOLDFAST_CONTXT__A"]


def test_the_environment_has_only_text(house):
    house.environ |= {
        "HOLDFAST_BACKUP__KEEP": "3",
        "HOLDFAST_REDACT__ENABLED": "No",
        "HOLDFAST_GATES__WARN": "12.0",
        "HOLDFAST_DAEMON__WORKERS": "true",
    }
    resolved = house.load()
    assert (resolved["backup"].keep, resolved["redact"].enabled, resolved["gates"].warn) == (3, False, 12)
    assert [n.path for n in resolved.notices] == ["daemon.workers"]


GUARDED = {
    "store: {url: 'postgresql://evil'}": ("store", "url", ""),
    "daemon: {workers: 60}": ("daemon", "workers", 2),
    "redact: {enabled: false}": ("redact", "enabled", True),
    "redact: {keep: [hunter2]}": ("redact", "keep", ()),
    "redact: {patterns: ['(a+)+b']}": ("redact", "patterns", ()),
    "backup: {keep: 1}": ("backup", "keep", 7),
}


@pytest.mark.parametrize("text", GUARDED)
@pytest.mark.parametrize("layer", ["project", "local"])
def test_a_project_may_not_set_everything(house, layer, text):
    section, name, default = GUARDED[text]
    path = house.write(layer, text)
    resolved = house.load()
    assert getattr(resolved[section], name) == default
    assert "holdfast config trust" in str(resolved.notices[0])
    trust.trust_file(path, config_dir=house.config)
    assert getattr(house.load()[section], name) != default
    house.write(layer, text + "  # changed\n")
    assert getattr(house.load()[section], name) == default


def test_commands_wait_for_trust_wherever_they_stand(house):
    path = house.write("project", "gates:\n  rules: {x: {scope: a, run: 'rm -rf'}}\n  steps: [{run: evil}]\n")
    resolved = house.load()
    assert (resolved["gates"].rules["x"], resolved["gates"].steps[0].run) == (Rule(scope="a"), "")
    assert [(n.line, n.path) for n in resolved.notices] == [(2, "gates.rules.x.run"), (3, "gates.steps.0.run")]
    trust.trust_file(path, config_dir=house.config)
    assert house.load()["gates"].rules["x"].run == "rm -rf"


def test_a_project_may_make_redaction_stronger(house):
    house.write("user", "redact: {enabled: false}\n")
    house.write("project", "redact: {enabled: true, names: [badge]}\n")
    redact = house.load()["redact"]
    assert redact.enabled is True
    assert redact.names == ("badge",)


def test_set_value_keeps_comments_and_order(house):
    path = house.write(
        "user",
        "# mine\ngates:  # first\n  labels:\n    - a\n    - b\n  warn: 10  # lines\n\ncontext:\n  start_tokens: 5\n",
    )
    set_value(house.settings, "user", "gates.warn", "20")
    set_value(house.settings, "user", "backup.keep", 3)
    assert path.read_text() == (
        "# mine\ngates:  # first\n  labels:\n    - a\n    - b\n  warn: 20  # lines\n\n"
        "context:\n  start_tokens: 5\nbackup:\n  keep: 3\n"
    )


def test_set_value_makes_the_file_and_keeps_it_private(house):
    set_value(house.settings, "local", "gates.labels", "[a, b]", house.project)
    path = house.settings.file("local", house.project)
    assert path.stat().st_mode & 0o777 == 0o600
    assert house.load()["gates"].labels == ["a", "b"]
    set_value(house.settings, "user", "store.url", "5")
    assert house.load()["store"].url == "5"


@pytest.mark.parametrize(
    ("layer", "name", "value"),
    [
        ("user", "context.start_tokens", "many"),
        ("user", "context.start_token", 5),
        ("user", "nothing.at_all", 5),
        ("user", "context", 5),
        ("nowhere", "context.start_tokens", 5),
        ("user", "gates.warn", 5000),
    ],
)
def test_set_value_writes_nothing_that_does_not_hold(house, layer, name, value):
    path = house.write("user", "context: {start_tokens: 5}\n")
    with pytest.raises(BadSettings):
        set_value(house.settings, layer, name, value)
    assert path.read_text() == "context: {start_tokens: 5}\n"


def test_set_value_needs_a_project_and_a_readable_file(house):
    with pytest.raises(BadSettings):
        set_value(house.settings, "project", "context.start_tokens", 5)
    house.write("user", "a: [\n")
    with pytest.raises(BadSettings):
        set_value(house.settings, "user", "context.start_tokens", 5)


def test_what_was_trusted_stays_trusted_when_the_user_changes_it(house):
    path = house.write("project", "gates: {steps: [{run: make}]}\n")
    assert set_value(house.settings, "project", "gates.warn", 1, house.project)
    trust.trust_file(path, config_dir=house.config)
    assert set_value(house.settings, "project", "gates.warn", 2, house.project) == ()
    assert house.load()["gates"].steps[0].run == "make"


def test_the_schema_describes_every_section(house):
    schema = json.loads(json.dumps(json_schema(house.settings)))
    assert set(schema["properties"]) >= {"store", "daemon", "context", "redact", "backup", "gates"}
    assert schema["additionalProperties"] is False
    for section in schema["properties"].values():
        assert section["$ref"].removeprefix("#/$defs/") in schema["$defs"]


def test_the_schema_says_what_a_file_may_say():
    schema = json.loads(json.dumps(json_schema(open_settings().settings)))
    Draft202012Validator.check_schema(schema)
    days = schema["$defs"]["Store"]["properties"]["body_days"]
    assert (days["type"], days["minimum"], days["maximum"], days["default"]) == ("integer", 1, 36500, 90)
    assert "Raw payloads" in days["description"]
    closed = {name for name, part in schema["$defs"].items() if part.get("additionalProperties") is False}
    assert set(schema["$defs"]) - closed == {"Hooks", "SessionStart", "Stop", "SessionEnd"}
    judge = Draft202012Validator(schema)
    assert judge.is_valid({"store": {"body_days": 3}, "requirements": {"a": {"trigger_tools": ["edit", {}]}}})
    assert judge.is_valid({"project": {"areas": {"docs": {"validate": ["make docs"]}}}})
    for wrong in ({"stor": {}}, {"store": {"url": 5}}, {"store": {"body_days": 0}}, {"requirements": {"a b": {}}}):
        assert not judge.is_valid(wrong), wrong


def test_every_section_of_the_house_can_be_shown_and_read_back():
    settings = open_settings().settings
    for name, section in settings.defaults().items():
        assert settings.sections[name].of(section.plain()) == section
    shown = {name for name, _, _ in settings.defaults().flat()}
    assert {"store.url", "memory.start_tokens", "gates.hooks.stop.max_refusals", "project.tokens.limit"} <= shown


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_hot_settings_make_no_system_call_within_the_second(house, monkeypatch):
    clock, stats = Clock(), []
    cache = SettingsCache(house.settings, clock=clock)
    first = cache.for_project(str(house.project))
    really = os.stat
    monkeypatch.setattr(os, "stat", lambda *a, **k: stats.append(a) or really(*a, **k))
    clock.now = 0.9
    house.write("project", "context: {start_tokens: 5}\n")
    stats.clear()
    assert cache.for_project(str(house.project)) is first
    assert stats == []
    clock.now = 1.1
    assert cache.for_project(str(house.project))["context"].start_tokens == 5
    assert stats
    clock.now = 2.2
    again = cache.for_project(str(house.project))
    clock.now = 3.3
    assert cache.for_project(str(house.project)) is again


def test_trusting_a_file_is_seen(house):
    clock = Clock()
    cache = SettingsCache(house.settings, clock=clock)
    path = house.write("project", "gates: {steps: [{run: make}]}\n")
    assert cache.for_project(str(house.project))["gates"].steps[0].run == ""
    trust.trust_file(path, config_dir=house.config)
    clock.now = 1.5
    assert cache.for_project(str(house.project))["gates"].steps[0].run == "make"


def test_hot_settings_are_quick(house):
    cache = SettingsCache(house.settings)
    project = str(house.project)

    def seconds() -> float:
        started = time.perf_counter()
        for _ in range(100):
            cache.for_project(project)
        return (time.perf_counter() - started) / 100

    cache.for_project(project)
    assert min(seconds() for _ in range(50)) < 3e-6


def test_only_so_many_projects_are_remembered(house):
    clock = Clock()
    cache = SettingsCache(house.settings, clock=clock, limit=3)
    for number in range(10):
        clock.now += 0.01
        cache.for_project(f"/nowhere/{number}")
        cache.for_project("/nowhere/0")
    # The last one, the one before it, and the one that was used all the time.
    assert set(cache._entries) == {"/nowhere/0", "/nowhere/8", "/nowhere/9"}


@pytest.mark.parametrize("project", ["\x00", "a" * 10_000, "/dev/null", "relative", "\udce4", "/proc/self/mem"])
def test_for_project_never_raises(house, project):
    assert SettingsCache(house.settings).for_project(project)["context"].start_tokens == 1500


def test_a_fault_of_our_own_gives_the_defaults(house, monkeypatch):
    monkeypatch.setattr(house.settings, "load", lambda project: 1 / 0)
    resolved = SettingsCache(house.settings).for_project("x")
    assert resolved["context"].start_tokens == 1500
    assert "ZeroDivisionError" in resolved.notices[0].message


LINES = st.lists(
    st.sampled_from(["context:", "  start_tokens: ", "gates:", "  rules:", "    x:", "      scope: ", "a", "5", "[",
                     "]", "{", "}", "&a ", "*a", "\n", "\n", "\n", " ", "- ", ": ", "'", '"', "#", "|", ">", "!",
                     "%", "?", "---", "null", "~", "redact: {enabled: false}"])
).map("".join)  # fmt: skip


@configure(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=200),
        st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace")),
        LINES.map(str.encode),
    )
)
def test_any_bytes_never_raise_and_the_rest_survives(house, content):
    house.write("user", "backup: {keep: 3}\n")
    house.write("project", content)
    resolved = house.load()
    assert resolved["backup"].keep == 3
    assert resolved["redact"].enabled is True
    assert isinstance(resolved["gates"], Gates)
    assert isinstance(resolved["context"].start_tokens, int)
    for notice in resolved.notices:
        assert str(notice).isprintable()
