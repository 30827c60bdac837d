"""Prices as data: model → what a million tokens of each kind cost, with the date it holds from.

The table is `prices.json` beside this file: list prices in dollars. A person's own prices stand in a file of the same
form and replace the models they name.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path

import msgspec

from holdfast.core.errors import HoldfastError
from holdfast.paths import default_config_dir

SHIPPED = Path(__file__).with_name("prices.json")
OWN_PRICES = "prices.json"
"""Its name in the settings folder."""
HIGHEST = Decimal(1_000_000)

Amount = Decimal


class BadPrices(HoldfastError):
    """A price list cannot be used."""


class Rates(msgspec.Struct, frozen=True, omit_defaults=True):
    """Dollars per million tokens. A kind without a price of its own is billed as input, and so is every later one of
    the cache's tiers."""

    input: Amount
    output: Amount
    cache_read: Amount | None = None
    cache_write_5m: Amount | None = None
    cache_write_1h: Amount | None = None

    def of_kinds(self) -> tuple[Amount, ...]:
        """In the order of the kinds that are counted."""
        write = self.cache_write_5m if self.cache_write_5m is not None else self.input
        read = self.cache_read if self.cache_read is not None else self.input
        return self.input, self.output, read, write, self.cache_write_1h if self.cache_write_1h is not None else write


class LongRates(Rates, frozen=True, omit_defaults=True, kw_only=True):
    """What a call costs whose prompt is longer than this."""

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
    """Models whose price is the person's own."""

    def price(self, model: str, at: int) -> Price | None:
        """The one that held at a time (milliseconds); before the first date, the first."""
        found = self.prices_of(model)
        if not found:
            return None
        day = datetime.fromtimestamp(at / 1000, UTC).date()
        held = [price for price in found if price.since <= day]
        return held[-1] if held else found[0]

    def prices_of(self, model: str) -> list[Price]:
        return next((self.models[name] for name in names_of(model) if name in self.models), [])


# ---- names ----

_PREFIX = re.compile(r"^(?:.*/|(?:[a-z]{2,6}\.)?anthropic\.|models\.)")
_SUFFIX = re.compile(r"(?:\[1m\]|-v\d+(?::\d+)?|[-@]\d{8}|-\d{4}-\d{2}-\d{2}|-latest|:[a-z0-9-]+)$")


def names_of(model: str) -> Iterable[str]:
    """The name as it is, then without the provider before it and the date or edition behind it."""
    name = model.strip().lower()
    yield name
    name = _PREFIX.sub("", name)
    yield name
    while (shorter := _SUFFIX.sub("", name)) != name:
        name = shorter
        yield name
    yield name.replace(".", "-")


# ---- files ----

decode = msgspec.json.Decoder(PriceList, strict=False).decode


def load_table(own: Path | None = None) -> PriceTable:
    """The shipped prices, with a person's own before them."""
    shipped = read_prices(SHIPPED)
    mine = read_prices(own) if own and own.exists() else PriceList()
    return PriceTable({**shipped.models, **mine.models}, frozenset(mine.models))


def current_table() -> PriceTable:
    """As `load_table`, read again only when a file changed."""
    own = default_config_dir() / OWN_PRICES
    return _table_of(own, _stamp(SHIPPED), _stamp(own))


@lru_cache(4)
def _table_of(own: Path, _shipped: int, _own: int) -> PriceTable:
    return load_table(own)


def _stamp(path: Path) -> int:
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
    return PriceList({name.lower(): checked(name, prices, str(path)) for name, prices in listed.models.items()})


def checked(model: str, prices: list[Price], where: str = "") -> list[Price]:
    """Sorted by date; a price that is negative, no number or without its model is refused."""
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


def encode(prices: Mapping[str, list[Price]]) -> bytes:
    """As a file of a person's own prices."""
    listed = {name: [_plain(price) for price in prices[name]] for name in sorted(prices)}
    return msgspec.json.format(msgspec.json.encode({"models": listed})) + b"\n"


def _plain(rates: Rates) -> dict[str, object]:
    found: dict[str, object] = {}
    for field in msgspec.structs.fields(rates):
        value = getattr(rates, field.name)
        if isinstance(value, Decimal):
            found[field.encode_name] = int(value) if value == value.to_integral_value() else float(value)
        elif isinstance(value, Rates):
            found[field.encode_name] = _plain(value)
        elif value is not None:
            found[field.encode_name] = value
    return found
