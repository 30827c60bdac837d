"""Goldens: what each recorded payload becomes. `HOLDFAST_GOLDENS=write pytest tests/agents` makes them anew."""

import json
import os
from pathlib import Path

import msgspec

from holdfast.core.agent import Agent
from holdfast.core.decision import Delivery

HERE = Path(__file__).parent


def payload_files(agent: str) -> list[Path]:
    return sorted((HERE / "payloads" / agent).glob("*.json"))


def delivery_of(agent: str, file: Path, **env: str) -> Delivery:
    """A delivery as the hook client would make it, with nothing of this machine in it."""
    return Delivery(
        key="0" * 32,
        agent=agent,
        event=file.name.split(".")[0],
        at=1_794_700_000_000,
        pid=4242,
        start=777,
        cwd="/home/dev/project",
        env=env,
        body=file.read_bytes(),
    )


def compare(agent: Agent, file: Path, **env: str) -> None:
    event = agent.read(delivery_of(agent.name, file, **env), json.loads(file.read_bytes()))
    seen = json.loads(msgspec.json.encode(event))
    golden = HERE / "goldens" / file.parent.name / file.name
    if os.environ.get("HOLDFAST_GOLDENS") == "write":
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(json.dumps(seen, indent=2, ensure_ascii=False, sort_keys=True) + "\n")
    assert seen == json.loads(golden.read_text()), f"{golden}: HOLDFAST_GOLDENS=write accepts the new reading"
