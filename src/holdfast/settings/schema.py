"""The JSON Schema of a settings file, for editors."""

from typing import Any

from pydantic.json_schema import models_json_schema

from holdfast.settings.settings import Settings


def json_schema(settings: Settings) -> dict[str, Any]:
    models = [(model, "validation") for model in settings.sections.values()]
    refs, shared = models_json_schema(models, ref_template="#/$defs/{model}")  # type: ignore[arg-type]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Holdfast settings",
        "type": "object",
        "additionalProperties": False,
        "properties": _properties(settings, refs),
        "$defs": shared.get("$defs", {}),
    }


def _properties(settings: Settings, refs: Any) -> dict[str, Any]:
    found = {name: refs[model, "validation"] for name, model in settings.sections.items()}
    for section, elsewhere in settings.elsewhere.items():
        model = settings.sections[section].__name__
        found |= {name: {"$ref": f"#/$defs/{model}/properties/{name}"} for name in elsewhere.names}
    return found
