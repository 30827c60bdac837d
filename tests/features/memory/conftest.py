from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.features.memory.harness import MemoryHarness


@pytest.fixture
def house(tmp_path: Path) -> Iterator[MemoryHarness]:
    made = MemoryHarness(tmp_path)
    yield made
    assert made.replayed() == []
    made.close()
