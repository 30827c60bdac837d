"""Prices: the shipped table, a person's own, names, dates, and what is refused."""

import json
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.analysis.usage.model import Usage
from holdfast.analysis.usage.prices import (
    SHIPPED,
    BadPrices,
    Price,
    PriceList,
    UnknownCost,
    cost_of,
    encode_prices,
    fast_name,
    load_table,
    names_of,
    read_import,
    read_prices,
    with_price,
    without_model,
)

TABLE = load_table()
NOW = 1_794_700_000_000  # November 2026
EARLIER = 1_791_000_000_000  # 3 October 2026


def put(path, **models):
    path.write_text(json.dumps({"models": models}))
    return path


def test_every_shipped_price_is_sound():
    listed = read_prices(SHIPPED)
    assert len(listed.models) > 100
    for name, prices in listed.models.items():
        days = [price.since for price in prices]
        assert name == name.lower() and days == sorted(set(days)), name
        for price in prices:
            assert price.input <= price.output, name
            assert price.cache_read is None or price.cache_read < price.input, name


@pytest.mark.parametrize("provider", ["claude", "gpt", "gemini", "grok", "qwen", "kimi", "deepseek", "mistral"])
def test_every_provider_is_there(provider):
    assert any(name.startswith(provider) for name in TABLE.models)


@pytest.mark.parametrize(
    ("written", "listed"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("anthropic/claude-haiku-4.5", "claude-haiku-4-5"),
        ("openai/gpt-5.1-2025-11-13", "gpt-5.1"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        ("GPT-5", "gpt-5"),
    ],
)
def test_names_as_agents_and_providers_write_them(written, listed):
    assert TABLE.prices_of(written) == TABLE.models[listed]


@pytest.mark.parametrize("written", ["gpt-5.5-secret", "claude", "", "scripted", "gpt-5-codex-mini"])
def test_a_model_is_never_taken_for_another(written):
    assert cost_of(TABLE, Usage(1, 1), written, NOW) == UnknownCost(written)


def test_money_is_whole_micro_dollars():
    usage = Usage(input=1000, output=101, cache_read=20_000, cache_write_5m=300, cache_write_1h=40, reasoning=99)
    assert cost_of(TABLE, usage, "claude-opus-5-5", NOW) == 4000 + 2020 + 4000 + 1500 + 320


def test_the_price_of_the_day_counts():
    usage = Usage(cache_read=1_000_000)
    assert cost_of(TABLE, usage, "claude-sonnet-5-5", NOW) == 100_000
    assert cost_of(TABLE, usage, "claude-sonnet-5-5", EARLIER) == 200_000
    assert cost_of(TABLE, usage, "claude-sonnet-5-5", 0) == 200_000, "before the first day the first price counts"


def test_a_long_prompt_costs_more_as_a_whole():
    short, long = Usage(input=272_000, output=10), Usage(input=272_001, output=10)
    assert cost_of(TABLE, short, "gpt-5.5", NOW) == 272_000 * 5 + 300
    assert cost_of(TABLE, long, "gpt-5.5", NOW) == 272_001 * 10 + 450
    assert cost_of(TABLE, long, "gpt-5.5", NOW, prompt=0) == 272_001 * 5 + 300


def test_a_kind_without_a_price_is_billed_as_input():
    assert cost_of(TABLE, Usage(cache_read=10, cache_write_5m=5), "qwen3-max", NOW) == 18
    assert cost_of(TABLE, Usage(cache_write_1h=8), "gpt-6-sol", NOW) == 20


def test_nothing_spent_costs_nothing_even_without_a_price():
    assert cost_of(TABLE, Usage(0, 0), "unheard-of", NOW) == 0


def test_own_prices_replace_the_shipped_ones(tmp_path):
    own = put(tmp_path / "prices.json", **{"GPT-5": [{"from": "2026-01-01", "input": 1, "output": 2}]})
    table = load_table(own)
    assert cost_of(table, Usage(1_000_000), "gpt-5", NOW) == 1_000_000
    assert table.own == {"gpt-5"}
    assert load_table(tmp_path / "missing.json").own == frozenset()


@pytest.mark.parametrize(
    ("price", "says"),
    [
        ({"from": "2026-01-01", "input": -1, "output": 2}, "input of m is -1"),
        ({"from": "2026-01-01", "input": 1, "output": 2, "cache_read": -0.5}, "cache_read of m is -0.5"),
        ({"from": "2026-01-01", "input": 1}, "output"),
        ({"input": 1, "output": 2}, "from"),
        ({"from": "soon", "input": 1, "output": 2}, "date"),
        ({"from": "2026-01-01", "input": "much", "output": 2}, "decimal"),
        ({"from": "2026-01-01", "input": 1, "output": 2, "long": {"over": 9, "input": -3, "output": 1}}, "is -3"),
        ({"from": "2026-01-01", "input": 3e9, "output": 1}, "is 3"),
    ],
)
def test_prices_that_are_missing_or_negative_are_refused(price, says, tmp_path):
    path = put(tmp_path / "prices.json", m=[price])
    with pytest.raises(BadPrices) as refused:
        read_prices(path)
    assert says.lower() in refused.value.message.lower() and str(path) in refused.value.message


def test_a_list_that_is_none_is_refused(tmp_path):
    for content in ("", "[]", '{"models": []}', '{"models": {"m": []}}', "\x00"):
        (tmp_path / "p.json").write_text(content)
        with pytest.raises(BadPrices):
            read_prices(tmp_path / "p.json")
    with pytest.raises(BadPrices):
        read_prices(tmp_path)


def test_prices_set_by_hand(tmp_path):
    first = Price(since=date(2026, 1, 1), input=Decimal("1.5"), output=Decimal(3))
    second = Price(since=date(2026, 1, 1), input=Decimal(2), output=Decimal(3))
    own = with_price(with_price(PriceList(), "m", first), "m", second)
    assert own.models["m"] == [second]
    (tmp_path / "prices.json").write_bytes(encode_prices(own.models))
    assert read_prices(tmp_path / "prices.json").models == own.models
    assert without_model(own, "m").models == {}
    with pytest.raises(BadPrices):
        with_price(own, "m", Price(since=date(2026, 1, 1), input=Decimal("NaN"), output=Decimal(3)))


def test_a_catalogue_with_prices_per_token(tmp_path):
    catalog = {
        "sample_spec": {"note": "x"},
        "New-Model": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "mode": "chat"},
        "an-image": {"input_cost_per_token": 1, "output_cost_per_token": None},
        "odd": [],
    }
    (tmp_path / "c.json").write_text(json.dumps(catalog))
    taken = read_import(tmp_path / "c.json", date(2026, 1, 1))
    assert taken.models == {"new-model": [Price(since=date(2026, 1, 1), input=Decimal("2.5"), output=Decimal(10))]}
    (tmp_path / "d.json").write_text('{"a": 1}')
    with pytest.raises(BadPrices):
        read_import(tmp_path / "d.json", date(2026, 1, 1))
    assert read_import(SHIPPED, date(2026, 1, 1)).models == read_prices(SHIPPED).models


amounts = st.none() | st.integers(0, 10_000_000)
usages = st.builds(Usage, amounts, amounts, amounts, amounts, amounts, amounts)


@given(usages, usages, st.sampled_from(sorted(TABLE.models)), st.integers(0, 4_000_000_000_000))
def test_costs_add_up_and_are_never_negative(one, other, model, at):
    parts = [cost_of(TABLE, usage, model, at, prompt=0) for usage in (one, other, one.plus(other))]
    assert all(isinstance(part, int) and part >= 0 for part in parts)
    assert abs(parts[2] - parts[0] - parts[1]) <= 1


@given(st.text(max_size=60))
def test_any_name_is_a_name(model):
    assert next(iter(names_of(model))) == model.strip().lower()
    TABLE.price(model, NOW)


def test_fast_mode_has_a_price_of_its_own_or_none():
    usage = Usage(input=1_000_000, output=1_000_000)
    assert cost_of(TABLE, usage, "claude-opus-4-6", NOW) == 30_000_000
    assert cost_of(TABLE, usage, fast_name("claude-opus-4-6"), NOW) == 180_000_000
    assert cost_of(TABLE, usage, fast_name("us.anthropic.claude-opus-4-8-20260528-v1:0"), NOW) == 60_000_000
    assert cost_of(TABLE, usage, fast_name("claude-sonnet-4-6"), NOW) == UnknownCost("claude-sonnet-4-6-fast")
