"""Sections: what people write is understood, and every mistake is named where it is."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from holdfast.core.section import ALONE, After, Before, Section, Unfit

Name = Annotated[str, Meta(pattern=r"^[a-z]{1,5}$", extra={"says": "must be 1 to 5 small letters"})]


def _even(number: int) -> int:
    if number % 2:
        raise ValueError("must be even")
    return number


class Wheel(Section):
    inches: Annotated[int, Meta(ge=1, le=30)]
    spokes: Annotated[int, After(_even)] = 36


class Open(Section, forbid_unknown_fields=False):
    known: bool = True


class Bicycle(Section):
    name: Annotated[str, Meta(min_length=1, max_length=10)] = "bike"
    gears: int = 1
    price: Annotated[float, Meta(ge=0)] = 0.0
    lamp: bool = False
    kind: Literal["road", "cargo"] = "road"
    size: Literal[1, 2] = 1
    year: str | float = "?"
    owner: str | None = None
    tags: Annotated[tuple[Annotated[str, Meta(min_length=2)], ...], Meta(max_length=3), ALONE] = ()
    notes: list[str] = []
    wheels: Annotated[tuple[Name | Wheel, ...], ALONE] = ()
    parts: dict[Name, Wheel] = {}
    import_: Annotated[str, Before(lambda value: "home" if value is False else value)] = msgspec.field(
        default="", name="import"
    )
    anything: dict[str, Any] = {}
    more_of_it: Open = Open()

    def __post_init__(self) -> None:
        if self.kind == "cargo" and not self.lamp:
            raise ValueError("cargo needs a lamp")


def wrong(**given: Any) -> dict[str, str]:
    with pytest.raises(Unfit) as caught:
        Bicycle.of(given)
    return {".".join(map(str, path)): text for path, text in caught.value.faults}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"gears": "5"}, 5), ({"gears": " 7 "}, 7), ({"gears": 5.0}, 5), ({"gears": "5.0"}, 5), ({"gears": False}, 0),
        ({"price": 3}, 3.0), ({"price": "2.5"}, 2.5), ({"lamp": "yes"}, True), ({"lamp": "OFF"}, False),
        ({"lamp": 1}, True), ({"lamp": "0"}, False), ({"size": "2"}, 2), ({"size": 2.0}, 2), ({"year": 1999}, 1999.0),
        ({"year": "1999"}, "1999"), ({"owner": None}, None), ({"tags": "red"}, ("red",)), ({"tags": ["a1"]}, ("a1",)),
        ({"notes": ("x",)}, ["x"]), ({"wheels": "old"}, ("old",)), ({"wheels": {"inches": 3}}, (Wheel(inches=3),)),
        ({"wheels": ["old", {"inches": "4"}]}, ("old", Wheel(inches=4))), ({"import": False}, "home"),
        ({"parts": {"back": {"inches": 9}}}, {"back": Wheel(inches=9)}), ({"anything": {"a": [None]}}, {"a": [None]}),
    ],
)  # fmt: skip
def test_what_people_write_is_understood(given: dict[str, Any], read: Any) -> None:
    (name,) = given
    found = getattr(Bicycle.of(given), {"import": "import_"}.get(name, name))
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"gears": "many"}, "must be a whole number"), ({"gears": 1.5}, "must be a whole number"),
        ({"gears": True}, "must be a whole number"), ({"gears": None}, "must be a whole number"),
        ({"price": "nan"}, "must be at least 0"), ({"price": -1}, "must be at least 0"),
        ({"price": 10**400}, "must be a number"), ({"price": []}, "must be a number"),
        ({"lamp": "maybe"}, "must be true or false"), ({"lamp": 2}, "must be true or false"),
        ({"kind": "race"}, "must be one of road, cargo"), ({"kind": []}, "must be one of road, cargo"),
        ({"size": True}, "must be one of 1, 2"), ({"name": 5}, "must be text; put it in quotes"),
        ({"name": {}}, "must be text"), ({"name": ""}, "must not be empty"),
        ({"name": "x" * 11}, "must have at most 10 characters"), ({"tags": ["aa"] * 4}, "must have at most 3 entries"),
        ({"notes": "alone"}, "must be a list"), ({"parts": []}, "must be a mapping"),
        ({"colour": "red"}, "is not known here"), ({"import_": ""}, "is not known here"),
        ({"more_of_it": 3}, "must be a mapping"),
    ],
)  # fmt: skip
def test_what_is_said(given: dict[str, Any], said: str) -> None:
    (name,) = given
    assert wrong(**given) == {name: said}


def test_every_mistake_is_named_where_it_is() -> None:
    given = {
        "gears": "x",
        "tags": ["ok", "y", 5],
        "wheels": [{"inches": 99}, {"inches": 2, "spokes": 3}, "LOUD", {"size": 3}],
        "parts": {"Front": {"inches": 0}, "back": 4},
    }
    assert wrong(**given) == {
        "gears": "must be a whole number",
        "tags.1": "must have at least 2 characters",
        "tags.2": "must be text; put it in quotes",
        "wheels.0.inches": "must be from 1 to 30",
        "wheels.1.spokes": "must be even",
        "wheels.2": "must be 1 to 5 small letters",
        "wheels.3.size": "is not known here",
        "wheels.3.inches": "is missing",
        "parts.Front": "its name must be 1 to 5 small letters",
        "parts.Front.inches": "must be from 1 to 30",
        "parts.back": "must be a mapping",
    }


def test_a_single_one_has_no_number_in_its_place() -> None:
    assert wrong(wheels={"inches": 0}) == {"wheels.inches": "must be from 1 to 30"}
    assert wrong(tags="x") == {"tags": "must have at least 2 characters"}


def test_what_must_hold_between_fields() -> None:
    assert wrong(kind="cargo") == {"": "cargo needs a lamp"}
    assert Bicycle.of({"kind": "cargo", "lamp": True}).lamp


def test_the_whole_of_it_as_one_error_is_bounded() -> None:
    with pytest.raises(Unfit, match=r"^notes\.0: must be text; .*notes\.4: must be text; and 95 more$"):
        Bicycle.of({"notes": [None] * 100})


def test_plain_is_what_a_file_would_say() -> None:
    made = Bicycle.of({"import": "x", "tags": "red", "wheels": ["a", {"inches": 3}], "more_of_it": {"new": [1]}})
    plain = made.plain()
    assert (plain["import"], plain["tags"], plain["wheels"]) == ("x", ["red"], ["a", {"inches": 3, "spokes": 36}])
    assert (plain["more_of_it"], plain["owner"]) == ({"known": True, "new": [1]}, None)
    assert "owner" not in made.plain(none=False)
    assert Bicycle.of(plain) == made


def test_it_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Bicycle().gears = 3  # type: ignore[misc]


def test_a_field_that_no_file_could_fill_is_found_at_once() -> None:
    class Odd(Section):
        when: bytes = b""

    with pytest.raises(TypeError, match="bytes"):
        Odd.of({})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*Bicycle.__struct_encode_fields__, "else"]), VALUES, max_size=5))
def test_any_value_is_read_or_refused_with_its_place(value: dict[str, Any]) -> None:
    try:
        made = Bicycle.of(value)
    except Unfit as error:
        assert all(not path or path[0] in value for path, _ in error.faults)
        return
    assert msgspec.convert(msgspec.to_builtins(made), Bicycle) == made or "nan" in repr(made)
