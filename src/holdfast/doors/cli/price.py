"""`holdfast cost price`: prices per million tokens."""

from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from holdfast.analysis.usage.prices import (
    OWN_PRICES,
    Price,
    PriceList,
    PriceTable,
    Rates,
    encode_prices,
    load_table,
    names_of,
    read_import,
    read_prices,
    with_price,
    without_model,
)
from holdfast.core.errors import CommandRefused
from holdfast.doors.cli import render
from holdfast.doors.cli.options import DryRun, Json
from holdfast.paths import default_config_dir, private_folder, write_atomically

price_app = typer.Typer(help="Prices of models, in dollars per million tokens.", no_args_is_help=True)

Model = Annotated[str, typer.Argument(help="The model's name as the agent writes it.")]
FIELDS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")


def own_file() -> Path:
    return default_config_dir() / OWN_PRICES


@price_app.command()
def show(model: Annotated[str, typer.Argument(help="Only this model.")] = "", json: Json = False) -> None:
    """Show every known price and its date."""
    prices = load_table(own_file())
    rows = [(name, price, name in prices.own) for name in _named_models(prices, model) for price in prices.models[name]]
    render.finish_as_json(json, [{"model": name, "own": own, **_price_fields(price)} for name, price, own in rows])
    table = render.plain_table("model", "input", "output", "from", "cache read", "write 5m", "write 1h", "")
    for name, price, own in rows:
        paid, written, *cached = _format_rates(price)
        table.add_row(name, paid, written, price.since.isoformat(), *cached, "yours" if own else "")
        if price.long:
            paid, written, *cached = _format_rates(price.long)
            table.add_row("", paid, written, f"> {price.long.over:,}", *cached, "")
    render.out.print(table)


def _named_models(prices: PriceTable, model: str) -> list[str]:
    """A model has several spellings; the first one with a price is shown."""
    if not model:
        return sorted(prices.models)
    for name in names_of(model):
        if name in prices.models:
            return [name]
    fix = f"Set one: holdfast cost price set {model} --input N --output N"
    raise CommandRefused(f"no price is known for {model}", fix=fix)


@price_app.command("set")
def set_price(
    model: Model,
    paid: Annotated[
        str, typer.Option("--input", help="Dollars per million input tokens that come from no cache.")
    ] = "",
    output: Annotated[str, typer.Option("--output", help="Dollars per million tokens written.")] = "",
    cache_read: Annotated[str, typer.Option("--cache-read")] = "",
    cache_write: Annotated[str, typer.Option("--cache-write", help="For five minutes, or the only tier.")] = "",
    cache_write_1h: Annotated[str, typer.Option("--cache-write-1h", help="For an hour.")] = "",
    since: Annotated[str, typer.Option("--from", help="The day it holds from. Default: today.")] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Take your own price of this model away.")] = False,
) -> None:
    """Set your own price of a model; it replaces the shipped one."""
    name, own = model.strip().lower(), _own_prices()
    if remove:
        if name not in own.models:
            raise CommandRefused(f"you have set no price for {name}")
        _save_prices(without_model(own, name))
        render.out.print(f"Your own price of {name} is removed.")
        return
    if not paid or not output:
        raise CommandRefused("--input and --output are both needed", fix="Prices are dollars per million tokens.")
    price = Price(
        since=_parse_day(since),
        input=_parse_amount(paid),
        output=_parse_amount(output),
        cache_read=_parse_amount(cache_read) if cache_read else None,
        cache_write_5m=_parse_amount(cache_write) if cache_write else None,
        cache_write_1h=_parse_amount(cache_write_1h) if cache_write_1h else None,
    )
    _save_prices(with_price(own, name, price))
    paid_and_earned = " / ".join(text.plain for text in _format_rates(price)[:2])
    render.out.print(f"{name}: {paid_and_earned} per million from {price.since}, in {own_file()}")


@price_app.command("import")
def import_prices(
    file: Annotated[Path, typer.Argument(help="A Holdfast price list, or a catalogue with prices per token.")],
    since: Annotated[str, typer.Option("--from", help="The day they hold from, where the file names none.")] = "",
    dry_run: DryRun = False,
) -> None:
    """Copy the prices of a file into your own."""
    taken = read_import(file, _parse_day(since))
    if not dry_run:
        _save_prices(PriceList({**_own_prices().models, **taken.models}))
    would = "would be taken" if dry_run else "taken"
    render.out.print(f"{render.counted(len(taken.models), 'model')} {would} from {file}.")


def _own_prices() -> PriceList:
    return read_prices(own_file()) if own_file().exists() else PriceList()


def _save_prices(prices: PriceList) -> None:
    private_folder(own_file().parent)
    write_atomically(own_file(), encode_prices(prices.models))


def _parse_amount(text: str) -> Decimal:
    try:
        return Decimal(text.strip().lstrip("$"))
    except InvalidOperation as error:
        raise CommandRefused(f"{text!r} is no price", fix="Give dollars per million tokens, such as 2.50.") from error


def _parse_day(text: str) -> date:
    if not text:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise CommandRefused(f"{text!r} is no day", fix="Write it as 2026-11-15.") from error


def _format_rates(rates: Rates) -> list[Text]:
    amounts = [getattr(rates, field) for field in FIELDS]
    return [Text("–" if amount is None else f"${amount.normalize():f}") for amount in amounts]


def _price_fields(price: Price) -> dict[str, object]:
    row: dict[str, object] = {"from": price.since.isoformat()}
    row |= {field: _float_or_none(getattr(price, field)) for field in FIELDS}
    if price.long:
        long = {field: _float_or_none(getattr(price.long, field)) for field in FIELDS}
        row["long"] = {"over": price.long.over, **long}
    return row


def _float_or_none(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
