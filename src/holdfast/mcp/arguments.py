"""What each tool takes. The limits are part of the type: what breaks one is answered with the rule it breaks."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Text = Annotated[str, Meta(max_length=1000)]
LongText = Annotated[str, Meta(min_length=1, max_length=500)]
Name = Annotated[
    str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+\Z", description="without line breaks")
]
Cursor = Annotated[str, Meta(pattern=r"^\d{0,6}$", description="the nextCursor of the last answer")]
Limit = Annotated[int, Meta(ge=1, le=50)]
TOLD = ("type", "items")
"""All that the list of tools says of a field: every agent reads the list at every start. What breaks a limit is
answered with the limit."""
RARE = frozenset(("limit", "files", "ttl_seconds", "why", "tool"))
"""Fields with a good default: they are taken, but not told."""


class Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`project`: another project than the one the connection is for."""

    project: Text = ""


class Paged(Arguments, kw_only=True):
    limit: Limit = 10
    cursor: Cursor = ""

    @property
    def offset(self) -> int:
        return int(self.cursor or 0)


class SearchMemory(Paged, kw_only=True):
    query: Annotated[str, Meta(min_length=1, max_length=1000)]
    type: str = ""


class MemoryId(Arguments, kw_only=True):
    id: Name


class MemoryTimeline(MemoryId, kw_only=True):
    limit: Limit = 5


class AddMemory(Arguments, kw_only=True):
    text: LongText
    type: str = "discovery"
    files: Annotated[list[Text], Meta(max_length=20)] = []


class AcquireLease(Arguments, kw_only=True):
    name: Name
    wait_seconds: Annotated[float, Meta(ge=0, le=600)] = 0
    ttl_seconds: Annotated[float, Meta(gt=0, le=86_400)] = 300
    shared: bool = False
    why: Annotated[str, Meta(max_length=200)] = ""
    pid: Annotated[int, Meta(ge=0)] = 0


class ReleaseLease(Arguments, kw_only=True):
    name: Name
    pid: Annotated[int, Meta(ge=0)] = 0


class ShowRun(Arguments, kw_only=True):
    run: Annotated[str, Meta(max_length=200)] = ""


class SearchCode(Paged, kw_only=True):
    query: Annotated[str, Meta(min_length=1, max_length=1000)]
    path: Text = ""


class SearchHistory(Paged, kw_only=True):
    query: Annotated[str, Meta(min_length=1, max_length=1000)]
    tool: Text = ""
    file: Text = ""
    failed: bool = False


def input_schema(arguments: type[Arguments], hidden: frozenset[str]) -> dict[str, Any]:
    """`hidden`: fields that this connection has no use for; they are accepted all the same."""
    _, components = msgspec.json.schema_components([arguments])
    schema = components[arguments.__name__]
    hidden |= RARE if "pid" not in schema["properties"] else RARE | {"project"}  # A lease is for the whole machine.
    fields = {name: _short_schema(one) for name, one in schema["properties"].items() if name not in hidden}
    required = {"required": schema["required"]} if schema.get("required") else {}
    return {"type": "object", "properties": fields, **required}


def explain_field(arguments: type[Arguments], name: str) -> str:
    """What a field takes, in words: "limit takes an integer from 1 to 50"."""
    _, components = msgspec.json.schema_components([arguments])
    one = components[arguments.__name__]["properties"].get(name)
    if one is None:
        return ""
    lowest = f"above {one['exclusiveMinimum']}" if "exclusiveMinimum" in one else f"from {one.get('minimum', 0)}"
    bounds = (
        f" {lowest} to {one['maximum']}" if "maximum" in one else "",
        f" of {one.get('minLength', 0)} to {one['maxLength']} characters" if "maxLength" in one else "",
        f" of at most {one['maxItems']} entries" if "maxItems" in one else "",
        f", {one['description']}" if "description" in one else "",
    )
    return f"{name} takes {_KINDS[one['type']]}{''.join(bounds)}"


_KINDS = {
    "string": "text", "array": "a list", "boolean": "true or false", "integer": "an integer", "number": "a number",
}  # fmt: skip


def _short_schema(schema: dict[str, Any]) -> dict[str, Any]:
    short = {key: value for key, value in schema.items() if key in TOLD}
    return {**short, "items": {"type": "string"}} if "items" in short else short
