"""What token use costs, in whole micro-dollars. What cannot be priced says why."""

import bisect
from decimal import ROUND_HALF_EVEN, Decimal

import msgspec

from holdfast.usage.model import COUNTED, Usage, UsageRecord
from holdfast.usage.prices import PriceTable

LONG_PROMPTS = (32_000, 64_000, 100_000, 128_000, 200_000, 256_000, 272_000, 400_000, 512_000, 1_000_000)
"""Lengths of a prompt from which a provider may take another price: calls are added up apart between them."""


class UnknownCost(msgspec.Struct, frozen=True):
    """`model` has no price; it is named so that somebody can set one."""

    model: str


Cost = int | UnknownCost


def cost_of(table: PriceTable, usage: Usage, model: str, at: int, *, prompt: int | None = None) -> Cost:
    """For one call of a model. `prompt` decides whether it is a long one; by default it is what the usage says."""
    if usage.is_empty:
        return 0
    price = table.price(model, at)
    if price is None:
        return UnknownCost(model)
    rates = price.rates_for(prompt_of(usage) if prompt is None else prompt)
    amounts = usage.amounts()[: len(COUNTED)]
    total = sum((rate * (amount or 0) for rate, amount in zip(rates.of_kinds(), amounts, strict=True)), Decimal(0))
    return int(total.to_integral_value(ROUND_HALF_EVEN))


def prompt_of(usage: Usage) -> int:
    """All that the model had to read."""
    return sum(n or 0 for n in (usage.input, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h))


def limit_below(prompt: int) -> int:
    """The longest of the limits that a prompt went over; 0 for a short one."""
    passed = bisect.bisect_left(LONG_PROMPTS, prompt)
    return LONG_PROMPTS[passed - 1] if passed else 0


def cost_of_record(table: PriceTable, record: UsageRecord) -> Cost:
    """A sum over many calls tells nothing of how long each prompt was: it is priced as short ones."""
    return cost_of(table, record.spent, record.model, record.at, prompt=0 if record.summed else prompt_of(record.said))
