"""Tables are read from TOML, or from the JSON that a wheel has in their place."""

import json
from pathlib import Path

import msgspec
import pytest

from holdfast.core.data_files import load_data


class Table(msgspec.Struct, forbid_unknown_fields=True):
    words: list[str]


def test_a_table_is_typed_and_the_compiled_one_counts(tmp_path: Path) -> None:
    module = str(tmp_path / "module.py")
    (tmp_path / "rules.toml").write_text('words = ["a", "b"]\n')
    assert load_data(module, "rules", Table).words == ["a", "b"]
    (tmp_path / "rules.json").write_text(json.dumps({"words": ["c"]}))
    assert load_data(module, "rules", Table).words == ["c"]


def test_a_field_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text('words = []\nword = "a"\n')
    with pytest.raises(msgspec.ValidationError, match="word"):
        load_data(str(tmp_path / "module.py"), "rules", Table)
