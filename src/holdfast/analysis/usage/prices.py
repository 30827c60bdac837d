"""Price tables: dollars per million tokens by model and kind, with the date from which they hold."""

# `prices.json` has list prices. A person's own file of the same form replaces the models it names.

import bisect
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from holdfast.analysis.usage.model import COUNTED, Usage, UsageRecord
from holdfast.core.errors import HoldfastError
from holdfast.paths import default_config_dir

SHIPPED = Path(__file__).with_name("prices.json")
OWN_PRICES = "prices.json"
"""Its name in the settings folder."""
# Dollars per million tokens; more is taken for a wrong unit.
HIGHEST = Decimal(1_000_000)

Amount = Decimal


class BadPrices(HoldfastError):
    """A price list cannot be used."""


class Rates(msgspec.Struct, frozen=True, omit_defaults=True):
    """Dollars per million tokens. A kind without its own price is billed as input, and so are later cache tiers."""

    input: Amount
    output: Amount
    cache_read: Amount | None = None
    cache_write_5m: Amount | None = None
    cache_write_1h: Amount | None = None

    def of_kinds(self) -> tuple[Amount, ...]:
        """In the order of the counted kinds."""
        write = self.cache_write_5m if self.cache_write_5m is not None else self.input
        read = self.cache_read if self.cache_read is not None else self.input
        # Without a price for an hour the one for five minutes applies.
        return self.input, self.output, read, write, self.cache_write_1h if self.cache_write_1h is not None else write


class LongRates(Rates, frozen=True, omit_defaults=True, kw_only=True):
    """The rates of a call whose prompt is longer than this."""

    over: int


class Price(Rates, frozen=True, omit_defaults=True, kw_only=True, rename={"since": "from"}):
    since: date
    long: LongRates | None = None

    def rates_for(self, prompt: int) -> Rates:
        return self.long if self.long and prompt > self.long.over else self


class PriceList(msgspec.Struct, omit_defaults=True):
    models: dict[str, list[Price]] = msgspec.field(default_factory=dict)
    checked: date | None = None


class PriceTable(msgspec.Struct):
    models: Mapping[str, list[Price]]
    own: frozenset[str] = frozenset()
    """Models with the person's own price."""

    def price(self, model: str, at: int) -> Price | None:
        """The price at a time (ms); before the first date, the first."""
        prices = self.prices_of(model)
        if not prices:
            return None
        day = datetime.fromtimestamp(at / 1000, UTC).date()
        held = [price for price in prices if price.since <= day]
        return held[-1] if held else prices[0]

    def prices_of(self, model: str) -> list[Price]:
        return next((self.models[name] for name in names_of(model) if name in self.models), [])


# ---- names ----

# A gateway's path ("openrouter/anthropic/"), Bedrock's "us.anthropic.", or "models.".
_PREFIX = re.compile(r"^(?:.*/|(?:[a-z]{2,6}\.)?anthropic\.|models\.)")
# "[1m]", "-v1:0", "-20250929", "@20250929", "-2025-08-07", "-latest", ":free".
_SUFFIX = re.compile(r"(?:\[1m\]|-v\d+(?::\d+)?|[-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest|:[a-z0-9-]+)$")


# Suffix of a model that answered in fast mode, which has another price; without one it is not the ordinary price.
_FAST = "-fast"


def fast_name(model: str) -> str:
    return f"{model}{_FAST}"


def names_of(model: str) -> Iterable[str]:
    """The full name, then without the provider prefix and the date or edition suffix."""
    name = model.strip().lower()
    fast = _FAST if name.endswith(_FAST) else ""
    return (f"{one}{fast}" for one in _plain_names(name.removesuffix(fast)))


def _plain_names(name: str) -> Iterable[str]:
    yield name
    name = _PREFIX.sub("", name)
    yield name
    # One suffix at a time: each shorter name may be the one in the table.
    while (shorter := _SUFFIX.sub("", name)) != name:
        name = shorter
        yield name
    # "claude-sonnet-4.5" is "claude-sonnet-4-5" in the table.
    yield name.replace(".", "-")


# ---- files ----

decode = msgspec.json.Decoder(PriceList, strict=False).decode


def load_table(own: Path | None = None) -> PriceTable:
    """The shipped prices, overridden by the person's own."""
    shipped = read_prices(SHIPPED)
    mine = read_prices(own) if own and own.exists() else PriceList()
    return PriceTable({**shipped.models, **mine.models}, frozenset(mine.models))


def current_table() -> PriceTable:
    """Like `load_table`, cached until a file changes."""
    own = default_config_dir() / OWN_PRICES
    # The mtimes are part of the cache key.
    return _table_of(own, _modified_ns(SHIPPED), _modified_ns(own))


@lru_cache(4)
def _table_of(own: Path, _shipped: int, _own: int) -> PriceTable:
    return load_table(own)


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def read_prices(path: Path) -> PriceList:
    try:
        listed = decode(path.read_bytes())
    except OSError as error:
        raise BadPrices(error.strerror or str(error), where=str(path)) from error
    except (msgspec.DecodeError, msgspec.ValidationError, InvalidOperation) as error:
        raise BadPrices(str(error), where=str(path), fix="Each price needs `from`, `input` and `output`.") from error
    return PriceList({name.lower(): check_prices(name, prices, str(path)) for name, prices in listed.models.items()})


def check_prices(model: str, prices: list[Price], where: str = "") -> list[Price]:
    """Sorted by date; a price that is negative, not a number or without a model is refused."""
    if not model or not prices:
        raise BadPrices(f"there is no price for {model or 'a model without a name'!r}", where=where)
    for price in prices:
        for rates in filter(None, (price, price.long)):
            _check_rates(model, rates, where)
    return sorted(prices, key=lambda price: price.since)


def _check_rates(model: str, rates: Rates, where: str) -> None:
    for name in ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h"):
        amount = getattr(rates, name)
        if amount is None:
            continue
        if not amount.is_finite() or amount < 0:
            raise BadPrices(f"{name} of {model} is {amount}", where=where, fix="A price is 0 or more.")
        if amount > HIGHEST:
            fix = "Prices are dollars per million tokens."
            raise BadPrices(f"{name} of {model} is {amount}", where=where, fix=fix)


def encode_prices(prices: Mapping[str, list[Price]]) -> bytes:
    """In the format of a person's own price file."""
    listed = {name: [_rates_as_dict(price) for price in prices[name]] for name in sorted(prices)}
    return msgspec.json.format(msgspec.json.encode({"models": listed})) + b"\n"


def _rates_as_dict(rates: Rates) -> dict[str, object]:
    plain_rates: dict[str, object] = {}
    for field in msgspec.structs.fields(rates):
        value = getattr(rates, field.name)
        if isinstance(value, Decimal):
            # Whole prices without a decimal point, as people write them.
            plain_rates[field.encode_name] = int(value) if value == value.to_integral_value() else float(value)
        elif isinstance(value, Rates):
            plain_rates[field.encode_name] = _rates_as_dict(value)
        elif value is not None:
            plain_rates[field.encode_name] = value
    return plain_rates


# Prices token use in whole micro-dollars; what cannot be priced says why.

LONG_PROMPTS = (32_000, 64_000, 100_000, 128_000, 200_000, 256_000, 272_000, 400_000, 512_000, 1_000_000)
"""Prompt lengths from which a provider may charge another price: calls are summed separately between them."""


class UnknownCost(msgspec.Struct, frozen=True):
    """`model` has no price; it is named so that somebody can set one."""

    model: str


Cost = int | UnknownCost


def cost_of(table: PriceTable, usage: Usage, model: str, at: int, *, prompt: int | None = None) -> Cost:
    """For one model call. `prompt` decides whether it is a long one; by default from the usage."""
    if usage.is_empty:
        return 0
    price = table.price(model, at)
    if price is None:
        return UnknownCost(model)
    rates = price.rates_for(prompt_of(usage) if prompt is None else prompt)
    amounts = usage.amounts()[: len(COUNTED)]
    total = sum((rate * (amount or 0) for rate, amount in zip(rates.of_kinds(), amounts, strict=True)), Decimal(0))
    # Dollars per million tokens times tokens are micro-dollars.
    return int(total.to_integral_value(ROUND_HALF_EVEN))


def prompt_of(usage: Usage) -> int:
    """Everything the model had to read."""
    return sum(n or 0 for n in (usage.input, usage.cache_read, usage.cache_write_5m, usage.cache_write_1h))


def limit_below(prompt: int) -> int:
    """The largest limit a prompt exceeded; 0 for a short one."""
    # A prompt of exactly the limit has not exceeded it.
    passed = bisect.bisect_left(LONG_PROMPTS, prompt)
    return LONG_PROMPTS[passed - 1] if passed else 0


def cost_of_record(table: PriceTable, record: UsageRecord) -> Cost:
    """A sum over many calls hides each prompt's length: it is priced as short ones."""
    return cost_of(table, record.spent, record.model, record.at, prompt=0 if record.summed else prompt_of(record.said))


# A person's own prices, set one by one or from a file. The shipped table never changes.

PER_MILLION = 1_000_000


class CatalogEntry(msgspec.Struct):
    """A model in the catalogue format of several gateways: dollars per token."""

    input_cost_per_token: Any = None
    output_cost_per_token: Any = None
    cache_read_input_token_cost: Any = None
    cache_creation_input_token_cost: Any = None


def with_price(own: PriceList, model: str, price: Price) -> PriceList:
    """A price of the same day is replaced."""
    others = [one for one in own.models.get(model, []) if one.since != price.since]
    return PriceList({**own.models, model: check_prices(model, [*others, price])})


def without_model(own: PriceList, model: str) -> PriceList:
    return PriceList({name: prices for name, prices in own.models.items() if name != model})


def read_import(path: Path, since: date) -> PriceList:
    """Read our format, or a catalogue with prices per token."""
    try:
        raw = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
    except OSError as error:
        raise BadPrices(error.strerror or str(error), where=str(path)) from error
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise BadPrices(str(error), where=str(path), fix="It has to be a JSON object.") from error
    return read_prices(path) if "models" in raw else _from_catalog(raw, since, str(path))


def _from_catalog(raw: dict[str, msgspec.Raw], since: date, where: str) -> PriceList:
    """Entries without both prices (images, embeddings) are no models an agent would use."""
    models: dict[str, list[Price]] = {}
    for name, content in raw.items():
        try:
            entry = msgspec.json.decode(content, type=CatalogEntry)
        except msgspec.ValidationError:
            continue
        price = _price_from_entry(entry, since)
        if price:
            models[name.lower()] = check_prices(name, [price], where)
    if not models:
        raise BadPrices("it names no model with a price", where=where)
    return PriceList(models)


def _price_from_entry(entry: CatalogEntry, since: date) -> Price | None:
    read, write = entry.cache_read_input_token_cost, entry.cache_creation_input_token_cost
    paid, earned = _per_million(entry.input_cost_per_token), _per_million(entry.output_cost_per_token)
    if paid is None or earned is None:
        return None
    return Price(
        since=since, input=paid, output=earned, cache_read=_per_million(read), cache_write_5m=_per_million(write)
    )


def _per_million(per_token: Any) -> Decimal | None:
    if isinstance(per_token, bool) or not isinstance(per_token, int | float):
        return None
    # By its shortest form: Decimal(0.1) would carry the float's error.
    return Decimal(repr(per_token)) * PER_MILLION
