"""The version 4 document: what it says of itself, and what it never says."""

import re

from holdfast.core.kinds.project_events import Resolution
from holdfast.features.project.document.v4 import project_document
from holdfast.features.project.files import document_text
from holdfast.features.project.state import Project
from tests.factories import NOON
from tests.features.project.stage import Stage


def test_no_agent_is_named() -> None:
    """S1-1, C6: what is true and what needs doing, by process ids; whoever did it is in the log."""
    text = document_text(project_document(Project(project="/p", at=NOON), NOON)).lower()
    assert not re.search(r"claude|codex|gemini|copilot|agent", text)


def test_its_metadata() -> None:
    """S1-2: the version, the time in UTC, and the project by its newest resolution, never the first one."""
    doc = Project(project="/p", at=NOON, resolution=Resolution(project="first"))
    found = project_document(doc, NOON)
    assert found["SCHEMA_VERSION"] == "4.0.0"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["LAST_UPDATED"])
    assert found["PROJECT"] == "first"


def test_the_project_is_resolved_anew(stage: Stage) -> None:
    """S1-2: a later look that resolves it otherwise changes the name at once."""
    for name in ("engine", "brakes"):
        stage.observe(name=name, resolution={"project": name})
        assert stage.document["PROJECT"] == name
