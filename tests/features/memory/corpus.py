"""The labelled cases under tests/corpus/memory, and our own in a short markup."""

import json
import re
from pathlib import Path
from typing import Any

from tests.corpus.memory import score

FOLDER = Path(score.__file__).parent
_MARK = re.compile(r"\[\[(\w+)\|(.+?)\]\]", re.DOTALL)
DOUBTFUL = "candidate"
"""Marks words about which sensible people may differ: found or not, they count for nothing."""
_CONTEXT = re.compile(r"^\{\{(.*?)\}\}")


def read_cases(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]


def read_own_statements(name: str = "own_statements") -> list[dict[str, Any]]:
    """`own_statements` is trained on; `unseen_statements` and `sealed_statements` were written before the code was changed and are not."""
    lines = (FOLDER / f"{name}.txt").read_text("utf-8").splitlines()
    return [_statement(line, n) for n, line in enumerate(lines) if line.strip() and not line.startswith("## ")]


def _statement(line: str, number: int) -> dict[str, Any]:
    line = line.replace("\\n", "\n")
    context, words = _CONTEXT.match(line), _CONTEXT.sub("", line)
    marked = _MARK.findall(words)
    expect = [{"type": kind, "quote": quote} for kind, quote in marked if kind != DOUBTFUL]
    prompt = _MARK.sub(r"\2", words)
    return {
        "id": f"h{number}",
        "prompt": prompt,
        "context": context[1] if context else "",
        "expect": expect,
        "neutral": [quote for kind, quote in marked if kind == DOUBTFUL],
    }


def read_own_chains(name: str = "own_chains") -> list[dict[str, Any]]:
    """`sealed_chains` was labelled before the rules were mended and its errors were never looked at; the others were used."""
    rows: list[dict[str, Any]] = []
    for line in (FOLDER / f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("# "):
            given = dict(part.split("=") for part in line.split()[2:])
            named = {key: [int(n) for n in given.get(key, "").split(",") if n] for key in ("valid", "either", "one_of")}
            named["one_of"] = [named["one_of"]] if named["one_of"] else []
            rows.append({"statements": [], "asked_at": given.get("asked", "2026-04-20"), **named})
        elif line.strip():
            said = rows[-1]["statements"]
            by = "agent" if line.startswith("a:") else "user"
            said.append({"at": f"2026-03-{2 + 3 * len(said):02d}", "by": by, "text": line.removeprefix("a:").strip()})
    return rows


def statement_figures(rows: list[dict[str, Any]], found: dict[str, list[dict[str, str]]]) -> dict[str, float]:
    """Precision, recall and the share of empty prompts left clean, as `score.py` counts them."""
    hits = told = expected = clean = empty = 0
    for row in rows:
        mine = [f for f in found[row["id"]] if not _neutral(row, f["text"])]
        pairs = score.matched(row["expect"], mine, row.get("context") or "")
        hits, told, expected = hits + len(pairs), told + len(mine), expected + len(row["expect"])
        if not row["expect"]:
            empty, clean = empty + 1, clean + (not mine)
    return {"precision": hits / max(1, told), "recall": hits / max(1, expected), "clean": clean / max(1, empty)}


def _neutral(row: dict[str, Any], text: str) -> bool:
    return any(score.overlap(score.words(n), score.words(text)) >= score.ENOUGH for n in row["neutral"])
