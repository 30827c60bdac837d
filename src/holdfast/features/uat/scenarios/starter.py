"""What `holdfast uat init` writes."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from holdfast.features.uat.file_names import slugify_text
from holdfast.features.uat.folders import RunFolders
from holdfast.features.uat.scenarios.scenario import scenario_schema

SCHEMA_FILE = "scenario.schema.json"
IGNORED = "# Written by Holdfast: runs and their proof. The scenarios are yours to commit.\n"
IGNORED += "sessions/\nscreenshots/\nreports/\narchive/\n"

TEMPLATE = Path(__file__).with_name("starter.yaml.txt")


def scenario_file(paths: RunFolders, name: str) -> Path:
    return paths.scenarios / f"{slugify_text(name)}.yaml"


def initial_files(paths: RunFolders, name: str, base_url: str, recorded: str = "") -> Iterator[tuple[Path, bytes]]:
    """`recorded`: the scenario itself, where it was made from a session."""
    quoted = msgspec.json.encode(name).decode() if slugify_text(name) != name else name
    address = msgspec.json.encode(base_url or "http://localhost:3000").decode()
    text = TEMPLATE.read_text("utf-8").format(schema=SCHEMA_FILE, name=quoted, base_url=address)
    yield scenario_file(paths, name), (recorded or text).encode()
    yield paths.scenarios / SCHEMA_FILE, msgspec.json.format(msgspec.json.encode(scenario_schema()), indent=2) + b"\n"
    yield paths.root / ".gitignore", IGNORED.encode()
