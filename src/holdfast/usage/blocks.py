"""Five-hour blocks, as subscriptions count them: one begins with the first use after the last one is over."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from holdfast.usage.aggregate import Sum
from holdfast.usage.model import UsageRecord
from holdfast.usage.prices import PriceTable

HOUR_MS = 3_600_000
BLOCK_MS = 5 * HOUR_MS


class Block(msgspec.Struct):
    """`start` is the full hour (UTC) of its first use; it is over five hours later."""

    start: int
    sum: Sum

    @property
    def end(self) -> int:
        return self.start + BLOCK_MS

    def is_open(self, now: int) -> bool:
        return now < self.end and now - self.sum.last < BLOCK_MS


def blocks(records: Iterable[UsageRecord], table: PriceTable) -> list[Block]:
    """A block also ends when nothing was used for five hours."""
    found: list[Block] = []
    for record in sorted(records, key=lambda record: record.at):
        if not found or record.at >= found[-1].end or record.at - found[-1].sum.last >= BLOCK_MS:
            start = record.at - record.at % HOUR_MS
            found.append(Block(start, Sum(datetime.fromtimestamp(start / 1000, UTC).isoformat())))
        found[-1].sum.add(record, table)
    return found
