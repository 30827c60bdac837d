"""What redaction takes of a processor: of ordinary payloads, and of texts that were written to be costly."""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.analysis.redact import Redactor
from tests.analysis.redact.test_floods import FLOODS, flood
from tests.bench import event
from tests.bench.figures import fact, figure, heading

FLOOD_SIZE = 256 << 10
SLOW = 1.06
"""How much longer than ever before a moment's reference may take: other work on the machine slows this one too."""


def main() -> None:
    redactor, quiet = Redactor(), QuietMoments()
    heading("Redaction of ordinary output, processor time")
    with tempfile.TemporaryDirectory() as folder:
        for size, most, times in ((2800, 8.0, 100), (220_000, 250.0, 1)):
            body = event.write(Path(folder) / "event.json", size).read_bytes()
            took = quiet.least(lambda body=body: redactor.redact(body), times) * 1e6  # type: ignore[misc]
            figure(f"{size / 1000:g} KB", took, most, unit="µs")
    heading(f"Redaction of {2 * len(FLOODS)} floods of 256 KB, processor time")
    found = {name: quiet.least(lambda body=body: redactor.redact(body)) * 1000 for name, body in list_floods()}  # type: ignore[misc]
    worst = sorted(found, key=found.__getitem__, reverse=True)
    for name in worst[:5]:
        fact(name, f"{found[name]:.2f} ms")
    figure("the worst", found[worst[0]], 5.0, unit="ms")


def list_floods() -> list[tuple[str, bytes]]:
    texts = [(name, flood(name, FLOOD_SIZE)[:FLOOD_SIZE]) for name in FLOODS]
    # Within JSON some characters take more room: as much of it as has the same size.
    return [(name, text.encode()[:FLOOD_SIZE]) for name, text in texts] + [
        (
            f"{name}, JSON",
            json.dumps({"session_id": "s-1", "c": text[: FLOOD_SIZE**2 // len(json.dumps(text))]}).encode(),
        )
        for name, text in texts
    ]


class QuietMoments:
    """Takes only what was measured between two references that were as quick as they can be."""

    def __init__(self) -> None:
        self._quickest = min(_time_reference() for _ in range(200))

    def least(self, call: Callable[[], object], times: int = 1, wanted: int = 8, tries: int = 60) -> float:
        """Seconds of the quickest of several; of all of them, where no moment was quiet."""
        call()
        quiet: list[float] = []
        others: list[float] = []
        for _ in range(tries):
            before, took, after = _time_reference(), _time_calls(call, times), _time_reference()
            self._quickest = min(self._quickest, before, after)
            (quiet if max(before, after) < SLOW * self._quickest else others).append(took)
            if len(quiet) == wanted:
                break
        return min(quiet or others)


def _time_reference() -> float:
    return _time_calls(lambda: sum(number * number for number in range(2000)), 1)


def _time_calls(call: Callable[[], object], times: int) -> float:
    began = time.thread_time()
    for _ in range(times):
        call()
    return (time.thread_time() - began) / times
