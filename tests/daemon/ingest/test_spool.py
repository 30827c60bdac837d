"""A huge record of the spool is taken in pieces: in little memory, shortened like one that comes by the socket."""

import json
import subprocess
import sys
from pathlib import Path

from holdfast.core.decision import Delivery
from holdfast.daemon.ingest.frames import LARGE_FRAME, as_frame, as_record
from holdfast.daemon.ingest.spool import Spool
from holdfast.paths import Paths

DRAIN = """
import resource, sys
from pathlib import Path
from holdfast.daemon.ingest.spool import Spool
from holdfast.paths import Paths
import holdfast.analysis.redact
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sizes = []
def take(batch):
    sizes.extend(len(one.body) for one in batch)
    return len(batch)
Spool(Paths(Path(sys.argv[1])), take).drain()
print(len(sizes), max(sizes), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
UNIT = 1 if sys.platform == "darwin" else 1024


def record(number: int, body: bytes) -> bytes:
    return as_record(as_frame({"key": f"{number:032x}", "agent": "claude-code", "event": "PostToolUse"}, body))


def drained(paths: Paths) -> list[Delivery]:
    taken: list[Delivery] = []

    def take(batch) -> int:
        taken.extend(batch)
        return len(batch)

    Spool(paths, take).drain()
    return taken


def test_a_hundred_megabytes_are_drained_in_a_few(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "state").prepare()
    with (paths.spool / "spool.log").open("wb") as log:
        log.write(record(1, json.dumps({"tool_response": {"stdout": "x" * (100 << 20)}}).encode()))
        log.write(record(2, b'{"a": 1}'))
    done = subprocess.run([sys.executable, "-c", DRAIN, paths.state], capture_output=True, text=True, check=True)
    count, longest, grown = map(int, done.stdout.split())
    assert count == 2
    assert longest < LARGE_FRAME
    assert grown * UNIT < 64 << 20
    assert list(paths.spool.iterdir()) == []


def test_records_around_a_large_one_and_behind_damage_are_all_taken(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "state").prepare()
    large = json.dumps({"tool_response": {"stdout": "y" * (LARGE_FRAME + 5)}}).encode()
    torn = record(9, b'{"torn": 1}')[:-3]
    log = record(1, b"{}") + record(2, large) + torn + record(3, b'{"last": 1}')
    (paths.spool / "spool.log").write_bytes(log)
    taken = drained(paths)
    assert [int(one.key, 16) for one in taken] == [1, 2, 3]
    assert taken[1].whole == len(large)
    assert json.loads(taken[1].body)["tool_response"]["stdout"].startswith("yyyy")
    assert taken[2].body == b'{"last": 1}'
    assert [path.read_bytes() for path in paths.quarantine.iterdir()] == [torn]


def test_a_store_that_takes_nothing_keeps_the_log(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "state").prepare()
    (paths.spool / "spool.log").write_bytes(record(1, b"{}") + record(2, b"{}"))
    Spool(paths, lambda _batch: None).drain()
    assert [int(one.key, 16) for one in drained(paths)] == [1, 2]
