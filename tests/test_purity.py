"""The checker finds state that a pure function of a feature can reach (P5)."""

from pathlib import Path

import pytest
from tools import purity

FEATURE = """
from holdfast.core.feature import Feature
from holdfast.features.one.rules import reduce
FEATURE = Feature(reduce=reduce)
"""
CACHED = """
from functools import lru_cache
import os
def reduce(e):
    return at(e)
@lru_cache(8)
def at(e):
"""


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "holdfast" / "features" / "one"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(FEATURE)
    monkeypatch.setattr(purity, "SRC", tmp_path)
    for kept in (purity.load_module, purity.reachable):
        kept.cache_clear()

    def found(text: str) -> list[str]:
        (folder / "rules.py").write_text(text)
        return [fault.rpartition("one.rules.")[2] for fault in sorted(purity.find_faults(("reduce",)))]

    yield found
    for kept in (purity.load_module, purity.reachable):
        kept.cache_clear()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("SEEN = {}\ndef reduce(e):\n    return look(e)\ndef look(e):\n    SEEN[e] = 1\n", "SEEN"),
        ("SEEN = []\ndef reduce(e):\n    SEEN.append(e)\n", "SEEN"),
        ("N = 0\ndef reduce(e):\n    global N\n    N += 1\n", "reduce assigns a global"),
        (CACHED + "    return os.getcwd()\n", "at is cached and asks os.getcwd"),
    ],
)  # fmt: skip
def test_state_beside_the_log_is_found(rules, text: str, fault: str) -> None:
    assert [one.rpartition("rules.")[2] or one for one in rules(text)] == [fault]


@pytest.mark.parametrize(
    "text",
    [
        "def reduce(e):\n    seen = {}\n    seen[e] = 1\n    return seen\n",
        "SEEN = {}\ndef reduce(e):\n    return SEEN.get(e)\ndef enrich(e):\n    SEEN[e] = 1\n",
        CACHED + "    return os.path.join(e, e)\n",
    ],
)
def test_what_is_pure_or_out_of_reach_is_no_fault(rules, text: str) -> None:
    assert rules(text) == []


def test_every_feature_is_looked_at() -> None:
    names = {node[0].split(".")[2] for node in purity.roots(("reduce",))}
    assert {"gates", "sessions", "project", "checks", "uat", "memory", "cost"} <= names
