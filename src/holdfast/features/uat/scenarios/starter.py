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

TEMPLATE = """\
# yaml-language-server: $schema=./{schema}
# What an agent does when it tests this, and what must be true. Check it with: holdfast uat validate
name: {name}
description: User authentication flow testing
base_url: {base_url}
steps:
  - action: navigate
    description: Navigate to login page
    arguments: {{url: "*/login*"}}
    expected_ms: 5000
  - action: fill
    description: Fill login credentials
    expected_ms: 10000
  - action: click
    description: Submit the form
    expected_ms: 10000
  - action: verify
    description: The welcome page is there
    expected_ms: 10000
  - action: screenshot
    description: Keep a picture of it
    expected_ms: 10000
assertions:
  - description: The user is welcomed
    step: 4
    contains: Welcome
health_checks:
  - type: page_load
    step: 1
    no_errors: true
"""


def scenario_file(paths: RunFolders, name: str) -> Path:
    return paths.scenarios / f"{slugify_text(name)}.yaml"


def initial_files(paths: RunFolders, name: str, base_url: str, recorded: str = "") -> Iterator[tuple[Path, bytes]]:
    """`recorded`: the scenario itself, where it was made from a session."""
    quoted = msgspec.json.encode(name).decode() if slugify_text(name) != name else name
    address = msgspec.json.encode(base_url or "http://localhost:3000").decode()
    text = TEMPLATE.format(schema=SCHEMA_FILE, name=quoted, base_url=address)
    yield scenario_file(paths, name), (recorded or text).encode()
    yield paths.scenarios / SCHEMA_FILE, schema_text()
    yield paths.root / ".gitignore", IGNORED.encode()


def schema_text() -> bytes:
    return msgspec.json.format(msgspec.json.encode(scenario_schema()), indent=2) + b"\n"
