"""Rate limits and counters of a server process."""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import msgspec

from holdfast_team.server.tenancy import Member, Refused

# Per machine, per tenant, per address.
REQUESTS_PER_S, TENANT_EVENTS_PER_S, ENROLMENTS_PER_S = 50.0, 50_000.0, 20.0
MACHINE_EVENTS_PER_S = 10_000.0
"""Over all processes: the rest is kept in the machine's row."""
BURST_S = 10
MOST_BUCKETS = 50_000


class Bucket:
    """Fills at a rate and holds `BURST_S` seconds of it."""

    __slots__ = ("at", "left", "rate")

    def __init__(self, rate: float, now: float) -> None:
        self.rate, self.left, self.at = rate, rate * BURST_S, now

    def take_tokens(self, amount: float, now: float) -> float:
        """Return 0.0 if granted, else the seconds to wait."""
        self.left = min(self.rate * BURST_S, self.left + (now - self.at) * self.rate)
        self.at = now
        if self.left >= amount:
            self.left -= amount
            return 0.0
        return (amount - self.left) / self.rate


class Limits:
    """Per process, against floods; quotas over all processes are in the database."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, ...], Bucket] = {}

    def take_request(self, who: Member) -> None:
        self._take_tokens(("request", who.tenant, who.machine), REQUESTS_PER_S, 1)

    def take_events(self, who: Member, count: int) -> None:
        self._take_tokens(("events", who.tenant), TENANT_EVENTS_PER_S, count)

    def take_enrolment(self, address: str) -> None:
        self._take_tokens(("enrol", address), ENROLMENTS_PER_S, 1)

    def _take_tokens(self, key: tuple[str, ...], rate: float, amount: float) -> None:
        now = time.monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            # Strangers' addresses get buckets too: memory stays bounded, and all start full again.
            if len(self._buckets) >= MOST_BUCKETS:
                self._buckets.clear()
            bucket = self._buckets[key] = Bucket(rate, now)
        if wait := bucket.take_tokens(amount, now):
            raise Refused(429, f"too much at once; try again in {max(1, round(wait))} s")


class Metrics:
    """In Prometheus' text format."""

    def __init__(self) -> None:
        self._counts: dict[str, float] = {}

    def add(self, name: str, amount: float) -> None:
        self._counts[name] = self._counts.get(name, 0) + amount

    def count_request(self, path: str, status: int) -> None:
        self.add(f'requests_total{{path="{path}",status="{status}"}}', 1)

    @contextlib.contextmanager
    def timing(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.add(f"{name}_seconds_sum", time.perf_counter() - began)
            self.add(f"{name}_seconds_count", 1)

    def text(self, gauges: Mapping[str, float]) -> str:
        counted = [f"holdfast_team_{name} {value:g}" for name, value in sorted(self._counts.items())]
        return "\n".join([*counted, *(f"holdfast_team_{name} {value:g}" for name, value in sorted(gauges.items())), ""])


def log_line(what: str, **more: object) -> None:
    """One JSON object per line on standard error: refused, failed or slow requests, and housekeeping.

    Never a token, a body or a person's name.
    """
    line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "what": what, **more}
    sys.stderr.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stderr.buffer.flush()
