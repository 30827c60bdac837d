from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.features.memory.house import House


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    assert made.replayed() == []
    made.close()
