"""The seed's login-flow example, field by field, from events with its own times (S3-3 to S3-10)."""

import json
from pathlib import Path

from msgspec.structs import replace

from holdfast.core.event import Event
from holdfast.features.uat.files import missing_fields
from holdfast.features.uat.scenarios.plan import build_plan, no_shared_steps
from holdfast.features.uat.scenarios.reader import parse_scenario
from tests.features.uat.kit import FILL, LOGIN, NAVIGATE, SEED_BEGAN, SESSION, URL, Lab

SEED = Path(__file__).with_name("seed_example.json").read_text()
HALF_PAST = SEED_BEGAN - 22_123
UPDATED = HALF_PAST + 345_678
RESULT = {"success": True, "url": URL, "statusCode": 200, "loadTime": 2340}
HEALTH = {"isLoggedIn": False, "currentRoute": "/auth/login", "hasErrors": False}


def played(lab: Lab) -> dict:
    scenarios = lab.project / "scenarios"
    scenarios.mkdir()

    scenario, *_ = parse_scenario(
        LOGIN.replace("  - {type: page_load, step: 1}\n", "").replace("health_checks:", "").encode(), "x"
    )
    assert scenario is not None
    run = "uat-20250705-143022-xyz789"
    begun = {
        "uat": run,
        "plan": replace(build_plan(scenario, no_shared_steps)[0], assertions=[]),
        "root": "/uat",
        "mode": "production",
    }
    begun |= {"message": "Please test the login flow scenario", "confidence": 95, "auto": True}
    where = {"session": SESSION, "project": str(lab.project)}
    lab.app.engine.handle([Event(key="a", kind="uat.started", at=SEED_BEGAN, data=begun, **where)])
    lab.before(NAVIGATE, "n", at=HALF_PAST + 25_000, url=URL, timeout=10000)
    lab.after(NAVIGATE, "n", RESULT, at=HALF_PAST + 27_340, ms=2450, url=URL, timeout=10000)
    lab.now = HALF_PAST + 27_500
    lab.command("check", type="page_load", result="success", data=HEALTH)
    name = f"{run}-login-flow-step1-navigate-143027"
    shot = {"uat": run, "name": name, "path": f"/uat/screenshots/{run}/{name}.png", "size": 245680, "step": 1}
    shot |= {"action": "navigate", "success": True}
    lab.app.engine.handle([Event(key="b", kind="uat.shot", at=HALF_PAST + 27_800, data=shot, **where)])
    lab.before(FILL, at=HALF_PAST + 28_000, selector="#email")
    lab.before(FILL, at=HALF_PAST + 41_000, selector="#password")
    lab.now = UPDATED
    lab.command("update", patches=[{"validation": {"frameworkInjected": True}}])
    return lab.document


def test_every_field_of_the_seeds_example(lab: Lab) -> None:
    made, seed = played(lab), json.loads(SEED)
    steps = made["scenario"].pop("steps")
    assert steps[:2] == seed["scenario"].pop("steps")
    assert [s["status"] for s in steps[2:]] == ["pending"] * 3
    for part in seed:
        assert made[part] == seed[part], part
    assert list(made) == list(seed)
    assert lab.replayed() == []


def test_the_names_stand_in_the_seeds_order(lab: Lab) -> None:
    made, seed = played(lab), json.loads(SEED)
    for part in seed:
        assert [n for n in made[part] if n in seed[part]] == list(seed[part]), part


def test_it_is_valid_by_the_seeds_own_rule(lab: Lab) -> None:
    """S3-23."""
    made = played(lab)
    assert missing_fields(made) == []
    for part, field in (("meta", "version"), ("session", "uatSessionId"), ("scenario", "name")):
        broken = {**made, part: {k: v for k, v in made[part].items() if k != field}}
        assert missing_fields(broken) == [f"{part}.{field}"]
    assert missing_fields({**made, "performance": None}) == ["performance"]
    assert missing_fields([1, 2]) == missing_fields(None) != []
