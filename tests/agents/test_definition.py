"""`agent.toml` of every agent: its words are known ones, so that a typing error is found here and not in a session."""

import importlib

import msgspec
import pytest

from holdfast.agents import FOLDERS
from holdfast.agents.definition import Definition
from holdfast.agents.fields import CLEANERS, parse_fields
from holdfast.agents.replies import _REPLY_VALUES
from holdfast.core.kinds import HOOK_KINDS

WITH_FILE = [folder for folder in FOLDERS if folder != "custom"]
DEFINITIONS = {
    folder: importlib.import_module(f"holdfast.agents.{folder}.hooks").TABLES.definition for folder in WITH_FILE
}
EVERY = pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)


def placeholders(template):
    if isinstance(template, dict):
        return {word for value in template.values() for word in placeholders(value)}
    return {template} if isinstance(template, str) and template.startswith("$") else set()


@EVERY
def test_replies_name_known_events_verdicts_and_values(definition):
    for row in definition.reply:
        assert set(row.on.split()) <= {*definition.hooks, *HOOK_KINDS}
        assert set(row.verdicts.split()) <= {"none", "deny", "ask", "allow"}
        assert placeholders(row.body) | placeholders(row.specific) <= set(_REPLY_VALUES)
        assert row.body or row.specific


@EVERY
def test_the_entry_of_a_settings_file_is_a_known_template(definition):
    known = {"$program", "$arguments", "$line", "$seconds", "$milliseconds"}
    assert definition.setup is None or placeholders(definition.setup["entry"]) <= known


@EVERY
def test_an_alias_stands_for_one_event(definition):
    aliases = [row.alias for row in definition.hooks.values() if row.alias]
    assert len(aliases) == len(set(aliases))
    assert not set(aliases) & set(definition.hooks)


def test_a_field_is_cleaned_by_its_own_cleaner_or_the_one_that_is_named():
    fields = parse_fields("call=tool_use_id ms=duration_ms reason reason=why:error prompt")
    assert [(ours, theirs) for ours, theirs, _ in fields] == [
        ("call", "tool_use_id"), ("ms", "duration_ms"), ("reason", "reason"), ("reason", "why"), ("prompt", "prompt"),
    ]  # fmt: skip
    cleaners = [CLEANERS[name] for name in ("name", "number", "name", "error", "prompt")]
    assert [cleaner for *_, cleaner in fields] == cleaners
    with pytest.raises(KeyError):
        parse_fields("call:unheard_of")


def test_a_word_that_no_definition_has_is_refused():
    with pytest.raises(msgspec.ValidationError, match="unknown field `titel`"):
        msgspec.convert({"name": "x", "titel": "X"}, Definition)
