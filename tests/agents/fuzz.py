"""Payloads bent out of shape, by bytes and by values: `python tests/agents/fuzz.py 100000` for the whole promise."""

import copy
import json
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.agents import AGENTS
from holdfast.agents.intake import Intake
from holdfast.core.decision import NOTHING, Context, Decision, Delivery
from holdfast.core.kinds import HOOK_KINDS

PAYLOADS = Path(__file__).parent / "payloads"
PLAIN = {"holdfast": 1, "agent": "x", "kind": "tool.started", "session": "s", "data": {"paths": ["a"], "input": {}}}
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 70, 1.5e300, "", "x" * 9000, "\0", "\ud800", "日本", [], {}, [[]], [{}], {"": {}}, ["a", 1],
)  # fmt: skip
DENIAL = Decision(verdict="deny", reasons=("r",), contexts=(Context("s", "t"),), notices=("n",))


class Nowhere:
    def of(self, _cwd: str) -> Mapping[str, str]:
        return {}

    def root_of(self, _cwd: str) -> str:
        return ""


INTAKE = Intake(AGENTS, Nowhere(), lambda body: (body, 0))


def samples(agent: str) -> list[bytes]:
    folders = [folder for folder in PAYLOADS.iterdir() if folder.name.startswith(agent)]
    return [file.read_bytes() for folder in folders for file in folder.glob("*.json")] or [json.dumps(PLAIN).encode()]


def bent_bytes(rnd: random.Random, sample: bytes) -> bytes:
    body = bytearray(sample)
    for _ in range(rnd.randint(1, 5)):
        at = rnd.randrange(len(body) + 1)
        match rnd.randrange(4):
            case 0:
                body[at : at + 1] = bytes([rnd.randrange(256)])
            case 1:
                del body[at : at + rnd.randint(1, 30)]
            case 2:
                body[at:at] = rnd.choices(b'{}[]",:0123456789\\ntrue', k=rnd.randint(1, 8))
            case _:
                del body[at:]
    return bytes(body)


def bent_values(rnd: random.Random, sample: bytes) -> bytes:
    value = json.loads(sample)
    for _ in range(rnd.randint(1, 4)):
        node: Any = value
        while isinstance(node, dict) and node:
            key = rnd.choice(list(node))
            if not isinstance(node[key], dict) or rnd.random() < 0.5:
                node[rnd.choice((key, "session_id", "hook_event_name", "tool_input"))] = copy.deepcopy(rnd.choice(ODD))
                break
            node = node[key]
    return json.dumps(value).encode()


def deliveries(agent: str, count: int, seed: int = 7) -> Iterator[Delivery]:
    rnd, known = random.Random(seed), samples(agent)
    events = [hook.event for hook in AGENTS[agent].hooks] or ["x"]
    for n in range(count):
        bend = bent_bytes if n % 2 else bent_values
        yield Delivery(key="k", agent=agent, event=rnd.choice(events), body=bend(rnd, rnd.choice(known)))


def survives(delivery: Delivery) -> str:
    """The kind it became. Nothing raises, everything can be stored, and silence stays silence."""
    event = INTAKE.read(delivery)
    assert event.kind in HOOK_KINDS
    assert not str(event.get("problem", "")).startswith(("TypeError", "KeyError", "AttributeError", "IndexError"))
    msgspec.json.encode(event)
    agent = AGENTS.get(event.agent) or AGENTS["plain"]
    assert agent.write(event, NOTHING) == b""
    agent.write(event, DENIAL)
    return event.kind


def main() -> None:
    for agent in AGENTS:
        kinds = [survives(delivery) for delivery in deliveries(agent, int(sys.argv[1]))]
        print(f"{agent}: {len(kinds)} payloads, {kinds.count('unknown')} kept as unknown", flush=True)


if __name__ == "__main__":
    main()
