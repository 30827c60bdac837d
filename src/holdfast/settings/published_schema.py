"""Builds the JSON Schema of a settings file."""

from typing import Any

import msgspec

from holdfast.settings.layers import Settings


def json_schema(settings: Settings) -> dict[str, Any]:
    references, parts = msgspec.json.schema_components(settings.sections.values(), ref_template="#/$defs/{name}")
    properties = dict(zip(settings.sections, references, strict=True))
    for section, elsewhere in settings.elsewhere.items():
        below = f"{properties[section]['$ref']}/properties"
        properties |= {name: {"$ref": f"{below}/{name}"} for name in elsewhere.names}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Holdfast settings",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "$defs": parts,
    }
