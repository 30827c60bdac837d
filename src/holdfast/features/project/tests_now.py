"""How the tests stand, from the runs that were seen: a run of one file does not heal what a whole run found broken."""

from collections.abc import Mapping
from typing import Any

from holdfast.core.ports import Doc

MOST_RUNS = 10
MOST_FAILURES = 50

Run = Mapping[str, Any]


def with_run(runs: Mapping[str, Run], run: Run) -> dict[str, Run]:
    """A run of everything replaces all of its runner's; a narrow one replaces its like, and heals what it passed."""
    whole = not run["scope"]
    kept = {key: old for key, old in runs.items() if not (whole and old["runner"] == run["runner"])}
    if not whole and run["ok"]:
        kept = {key: _healed(old, run) for key, old in kept.items()}
    kept.pop(_key(run), None)
    kept[_key(run)] = run
    return dict(list(kept.items())[-MOST_RUNS:])


def _key(run: Run) -> str:
    return f"{run['runner']} {' '.join(run['scope'])}".strip()[:300]


def _healed(old: Run, run: Run) -> Run:
    """Without the failures that the narrow run names and passed."""
    if old["ok"] or old["runner"] != run["runner"] or not old["failures"]:
        return old
    still = [name for name in old["failures"] if not any(_covers(word, name) for word in run["scope"])]
    healed = len(old["failures"]) - len(still)
    failed = max(0, old["failed"] - healed)
    return {**old, "failures": still, "failed": failed, "passed": old["passed"] + healed, "ok": not failed}


def _covers(word: str, name: str) -> bool:
    return name == word or name.startswith((f"{word}::", f"{word}/", f"{word}["))


def of(doc: Doc) -> dict[str, Any]:
    """The newest run, made failing by any other that still is."""
    runs = list((doc["tests"].get("runs") or {}).values())
    if not runs:
        return {"status": "not_run", "last_run": 0, "command": "", "failures": [],
                "total": 0, "passed": 0, "failed": 0, "skipped": 0}  # fmt: skip
    newest = max(runs, key=lambda run: run["at"])
    failing = [run for run in runs if not run["ok"]]
    shown = newest if newest in failing or not failing else max(failing, key=lambda run: run["at"])
    failures = list(dict.fromkeys(name for run in failing for name in run["failures"]))
    return {
        "status": "failing" if failing else "passing",
        "last_run": newest["at"],
        "command": shown["command"],
        "failures": failures[:MOST_FAILURES],
        **{name: shown[name] for name in ("total", "passed", "failed", "skipped")},
    }
