"""The labelled prompts: the development half of the corpus, and our own in a short markup (`[[type|words]]`, `{{context}}`)."""

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
CORPUS = FOLDER.parents[1] / "tests" / "corpus" / "memory"
_MARK = re.compile(r"\[\[(\w+)\|(.+?)\]\]", re.DOTALL)
DOUBTFUL = "candidate"
"""Marks words about which sensible people may differ: trained on neither way."""
_CONTEXT = re.compile(r"^\{\{(.*?)\}\}")


def read_markup(path: Path, prefix: str) -> list[dict[str, Any]]:
    rows, tag = [], ""
    for number, line in enumerate(path.read_text("utf-8").splitlines()):
        if line.startswith("## "):
            tag = line[3:].strip()
        elif line.strip():
            rows.append(_row(line, f"{prefix}{number}", tag))
    return rows


def _row(line: str, identity: str, tag: str) -> dict[str, Any]:
    line = line.replace("\\n", "\n")
    context = _CONTEXT.match(line)
    line = _CONTEXT.sub("", line)
    marked = _MARK.findall(line)
    expect = [{"type": kind, "quote": words} for kind, words in marked if kind != DOUBTFUL]
    row = {
        "id": identity,
        "lang": "",
        "tag": tag,
        "prompt": _MARK.sub(r"\2", line),
        "expect": expect,
        "not": [],
        "neutral": [words for kind, words in marked if kind == DOUBTFUL],
    }
    return {**row, "context": context.group(1)} if context else row


def read_corpus(name: str = "statements") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CORPUS / f"{name}.jsonl").read_text("utf-8").splitlines() if line.strip()]


def chain_rows() -> list[dict[str, Any]]:
    """Single statements of the chains, as prompts: what was never lasting is a negative."""
    rows = []
    for chain in read_corpus("chains"):
        never = {s["i"] for s in chain["superseded"] if s["how"] == "notlasting"}
        for s in chain["statements"]:
            if s["by"] != "user" or s["i"] in chain["either"]:
                continue
            momentary = any(x["i"] == s["i"] and x["how"] == "expired" for x in chain["superseded"])
            if momentary:
                continue
            expect = [] if s["i"] in never else [{"type": "", "quote": s["text"]}]
            rows.append(
                {
                    "id": f"{chain['id']}-{s['i']}",
                    "lang": chain["lang"],
                    "tag": "chain",
                    "prompt": s["text"],
                    "expect": expect,
                    "not": [],
                    "neutral": [],
                }
            )
    return rows


def own_chain_rows() -> list[dict[str, Any]]:
    """The same from our own chains: what holds at the end is lasting; what changes nothing never was."""
    rows: list[dict[str, Any]] = []
    for name in ("own_chains", "unseen_chains", "more_chains", "domain_chains", "field_chains"):
        kind, valid, number = "", set(), -1
        for at, line in enumerate((CORPUS / f"{name}.txt").read_text("utf-8").splitlines()):
            if line.startswith("# "):
                kind, *given = line[2:].split()
                valid = {int(n) for part in given if part.startswith("valid=") for n in part[6:].split(",") if n}
                number = -1
            elif line.strip():
                number += 1
                if not line.startswith("a:") and (number in valid or kind == "no-change"):
                    text = line.strip()
                    expect = [{"type": "", "quote": text}] if number in valid else []
                    rows.append({"id": f"{name}{at}", "prompt": text, "expect": expect, "not": [], "neutral": []})
    return rows
