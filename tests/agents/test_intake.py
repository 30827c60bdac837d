"""What is written to disk is redacted before it is cut, and so is what does not come in the body."""

import json

from holdfast.agents import AGENTS
from holdfast.agents.intake import Intake
from holdfast.analysis.redact import redact
from holdfast.core.decision import Delivery
from holdfast.core.event import BODY_LIMIT
from tests.agents.fuzz import Nowhere

TOKEN = "gh" + "p_aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA2cD4fG6"


def cleaned(body: bytes, **fields) -> Delivery:
    intake = Intake(AGENTS, Nowhere(), redact)
    return intake.clean(Delivery(key="k", agent="claude-code", event="Stop", body=body, **fields))


def test_a_secret_on_the_edge_of_the_cut_goes_whole() -> None:
    for shift in range(0, len(TOKEN), 5):
        body = json.dumps({"prompt": "y" * (12 * 1024 - shift) + " " + TOKEN + " " + "z" * BODY_LIMIT}).encode()
        kept = cleaned(body)
        assert len(kept.body) <= BODY_LIMIT
        assert TOKEN[5:20].encode() not in kept.body
        assert kept.whole == len(body)


def test_folder_and_environment_are_cleaned() -> None:
    kept = cleaned(b"{}", cwd=f"/srv/{TOKEN}/shop", env={"CLAUDE_PROJECT": f"shop {TOKEN}"})
    assert TOKEN not in kept.cwd
    assert TOKEN not in kept.env["CLAUDE_PROJECT"]


def test_bytes_that_are_no_json_are_cleaned() -> None:
    escaped = "".join(f"\\u{ord(c):04x}" for c in TOKEN)
    for body in (f'{{"a": "{TOKEN}', f'{{"a": "{escaped}', f"{TOKEN}"):
        kept = cleaned(body.encode()).body
        assert TOKEN.encode() not in kept
        assert escaped.encode() not in kept
