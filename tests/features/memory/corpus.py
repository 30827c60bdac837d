"""The labelled cases under tests/corpus/memory."""

import json
from pathlib import Path
from typing import Any

from tests.corpus.memory import score

FOLDER = Path(score.__file__).parent


def read_cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]
