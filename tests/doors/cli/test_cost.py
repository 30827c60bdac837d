"""`holdfast prices`: shown, set, imported, refused."""

import json

import pytest
from typer.testing import CliRunner

from holdfast.core.errors import HoldfastError
from holdfast.doors.cli import render
from holdfast.doors.cli.price import price_app


@pytest.fixture
def prices(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_CONFIG", str(tmp_path / "config"))
    monkeypatch.setattr(render.out, "width", 160)

    def run(*words):
        result = CliRunner().invoke(price_app, list(words))
        if isinstance(result.exception, HoldfastError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.output

    return run


def test_a_price_is_set_shown_and_taken_away(prices):
    assert "$2.5 / $10" in prices("set", "My-Model", "--input", "2.5", "--output", "$10", "--from", "2026-01-02")
    (shown,) = json.loads(prices("show", "my-model", "--json"))["data"]
    assert (shown["own"], shown["from"], shown["input"], shown["cache_read"]) == (True, "2026-01-02", 2.5, None)
    assert "yours" in prices("show", "my-model")
    prices("set", "my-model", "--remove")
    with pytest.raises(HoldfastError, match="no price is known for my-model"):
        prices("show", "my-model")


def test_every_price_is_shown(prices):
    shown = prices("show")
    assert "claude-opus-5-5" in shown and "> 272,000" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("set", "m", "--input", "-1", "--output", "2"), "input of m is -1"),
        (("set", "m", "--input", "1"), "--input and --output"),
        (("set", "m", "--input", "x", "--output", "2"), "is no price"),
        (("set", "m", "--input", "1", "--output", "2", "--from", "soon"), "is no day"),
        (("set", "m", "--remove"), "no price for m"),
        (("import", "/nowhere.json"), "No such file"),
    ],
)
def test_what_is_refused(prices, words, says):
    with pytest.raises(HoldfastError, match=says):
        prices(*words)


def test_a_file_is_taken_over(prices, tmp_path):
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"a": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}}))
    assert "1 model would be taken" in prices("import", str(file), "--dry-run")
    assert "1 model taken" in prices("import", str(file))
    assert json.loads(prices("show", "a", "--json"))["data"][0]["output"] == 2
