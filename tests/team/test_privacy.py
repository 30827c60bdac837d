"""What leaves a machine, by level: names, numbers and verdicts, and text only where the level says so."""

import itertools
from typing import Any

import msgspec
import pytest

from holdfast.core.event import Event
from holdfast.core.kinds import KINDS, TEAM_KINDS
from holdfast.team.privacy import BY_LEVEL, FULL_KINDS, share_event
from holdfast.team.protocol import LEVELS

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


@pytest.mark.parametrize("level", LEVELS)
def test_what_came_from_the_team_does_not_go_back_to_it(level: str) -> None:
    assert [kind for kind in TEAM_KINDS if shared_text(kind, level)] == []


def test_half_a_surrogate_does_not_stop_a_batch() -> None:
    assert shared_text("prompt.submitted", "full", prompt="a\ud800b") == '{"prompt":"a?b"}'
