"""A person's own prices: one set by hand, many from a file. The shipped table is never changed."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from holdfast.usage.prices import BadPrices, Price, PriceList, checked, read_prices

PER_MILLION = 1_000_000


class CatalogEntry(msgspec.Struct):
    """A model in the catalogue format that several gateways share: dollars per single token."""

    input_cost_per_token: Any = None
    output_cost_per_token: Any = None
    cache_read_input_token_cost: Any = None
    cache_creation_input_token_cost: Any = None


def with_price(own: PriceList, model: str, price: Price) -> PriceList:
    """A price of the same day replaces the one that was there."""
    others = [one for one in own.models.get(model, []) if one.since != price.since]
    return PriceList({**own.models, model: checked(model, [*others, price])})


def without_model(own: PriceList, model: str) -> PriceList:
    return PriceList({name: prices for name, prices in own.models.items() if name != model})


def read_import(path: Path, since: date) -> PriceList:
    """A list of ours, or a catalogue with prices per token."""
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
        price = _price(entry, since)
        if price:
            models[name.lower()] = checked(name, [price], where)
    if not models:
        raise BadPrices("it names no model with a price", where=where)
    return PriceList(models)


def _price(entry: CatalogEntry, since: date) -> Price | None:
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
    return Decimal(repr(per_token)) * PER_MILLION
