"""A feature is asked only about the kinds it names. Asked about all of them it would say, make and queue the same."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.app import all_features, build_app
from holdfast.core.decision import Delivery
from holdfast.core.event import Event
from holdfast.core.feature import Feature
from holdfast.core.kinds import KINDS
from holdfast.core.ports import EventQuery
from holdfast.features.gates.settings import presets
from holdfast.paths import Paths
from tests.factories import NOON
from tests.kit import PAYLOADS

OLD_AGENTS = {"copilot-pascal": "copilot"}


def asked_about_everything(feature: Feature) -> Feature:
    return replace(feature, decides_on=frozenset(), derives_from=frozenset(), enqueues_for=frozenset())


def recorded_deliveries(cwd: str) -> list[Delivery]:
    """Every payload that was recorded of an agent, all of one folder."""
    deliveries = []
    for number, file in enumerate(sorted(PAYLOADS.glob("*/*.json"))):
        payload = json.loads(file.read_text())
        body = json.dumps({**payload, "cwd": cwd} if isinstance(payload, dict) and "cwd" in payload else payload)
        agent, event = OLD_AGENTS.get(file.parent.name, file.parent.name), file.name.partition(".")[0]
        deliveries.append(
            Delivery(
                key=f"d{number:04}", agent=agent, event=event, mode="ask", at=NOON + number, cwd=cwd, body=body.encode()
            )
        )
    return deliveries


def events_of_every_kind(project: str) -> list[Event]:
    """As empty as they can be: what a feature asks of the kind alone is asked."""
    return [
        Event(
            key=f"k{number:04}",
            kind=kind,
            at=NOON + 10_000 + number,
            session="s-1",
            project=project,
            agent="claude-code",
        )
        for number, kind in enumerate(sorted(KINDS))
    ]


def run_features(folder: Path, features: Sequence[Feature], project: str) -> dict[str, Any]:
    app = build_app(Paths(folder).prepare(), features=features)
    try:
        given = [*recorded_deliveries(project), *events_of_every_kind(project)]
        answers = [(o.reply, o.decision) for item in given for o in app.engine.handle([item])]
        reader = app.store.reader()
        try:
            log = reader.events(EventQuery(limit=100_000))
            return {
                "answers": answers,
                "events": [(e.kind, e.key, e.session, msgspec.json.encode(e.data)) for e in log],
                "documents": sorted((r.ref, r.doc) for f in features for r in reader.rows(f.name)),
                "jobs": sorted(
                    (job["kind"], str(job.get("dedupe")), str(job.get("payload"))) for job in reader.jobs(100_000)
                ),
            }
        finally:
            reader.close()
    finally:
        app.store.close()


def test_what_a_feature_is_not_asked_about_it_has_nothing_to_say_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    config = tmp_path / "config"
    config.mkdir()
    rules = "".join(f"  {name}: {{enabled: true}}\n" for name in presets().presets["strict"])
    (config / "settings.yaml").write_text(f"requirements:\n{rules}reindex:\n  context: true\n")
    monkeypatch.setenv("HOLDFAST_CONFIG", str(config))
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    declared = all_features()
    assert any(f.decides_on for f in declared)
    assert any(f.derives_from for f in declared)
    assert any(f.enqueues_for for f in declared)
    run_features(tmp_path / "first", declared, str(project))  # What is remembered in this process is the same for both.
    narrow = run_features(tmp_path / "narrow", declared, str(project))
    wide = run_features(tmp_path / "wide", [asked_about_everything(f) for f in declared], str(project))
    assert len(narrow["events"]) > len(KINDS)
    assert narrow["jobs"]
    for what, made in narrow.items():
        assert made == wide[what], what
