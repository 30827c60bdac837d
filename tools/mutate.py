"""Breaks the code at random places, one at a time, and says which breaks no test notices.

`python tools/mutate.py 20 src/holdfast/features/gates tests/features/gates [--seed 7]`: twenty mutants of the modules below the
first path, each judged by the tests below the second. Without a second path each is judged by the tests that mirror its module: the file of
the same name first, then the folders round it, then its story. It works on a copy; the tree is left alone.
`--part 20:40` judges only those of the chosen ones, so that a hundred can be judged in pieces.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST_S = 300
OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip


def mutants(tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    """Each small change that could be made: which node, its line, and what it is."""
    for number, node in enumerate(ast.walk(tree)):
        for what in _changes(node):
            yield number, getattr(node, "lineno", 0), what


def _changed(module: Path, number: int, what: str) -> ast.Module:
    tree = ast.parse(module.read_bytes())
    _apply(next(node for at, node in enumerate(ast.walk(tree)) if at == number), what)
    return tree


def tests_of(module: Path) -> list[str]:
    """The tests that mirror `module`, the nearest first: its own file, the folders round it, its story."""
    inside = module.relative_to(ROOT / "src" / "holdfast")
    tests = ROOT / "tests"
    folders = [
        inside.with_suffix(""),
        *(parent for parent in inside.parents if parent not in (Path(), Path("features"))),
    ]
    story = inside.parts[1 if inside.parts[0] in ("features", "cli") and len(inside.parts) > 1 else 0].removesuffix(
        ".py"
    )
    paths = [
        tests / inside.parent / f"test_{inside.stem}.py",
        *(tests / f for f in folders),
        tests / "stories" / f"test_{story}.py",
    ]
    return [str(path.relative_to(ROOT)) for path in paths if path.is_file() or any(path.rglob("test_*.py"))]


def _changes(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPPOSITES:
        return ["comparison turned round"]
    if isinstance(node, ast.BoolOp):
        return ["and/or exchanged"]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ["not taken away"]
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        return ["truth turned round"]
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 10_000:
        return ["number raised by one"]
    if isinstance(node, ast.If):
        return ["condition always true", "condition never true"]
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        return ["returns nothing"]
    return []


def _apply(node: ast.AST, what: str) -> None:
    if isinstance(node, ast.Compare):
        node.ops[0] = OPPOSITES[type(node.ops[0])]()  # type: ignore[assignment]
    elif isinstance(node, ast.BoolOp):
        node.op = OPPOSITES[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
        node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
    elif isinstance(node, ast.Constant):
        node.value = not node.value if type(node.value) is bool else int(node.value) + 1  # type: ignore[arg-type]
    elif isinstance(node, ast.If):
        node.test = ast.Constant(what == "condition always true")
    elif isinstance(node, ast.Return):
        node.value = ast.Constant(None)


def verdict(folder: Path, module: Path, changed: ast.Module, tests: list[str]) -> str:
    """`noticed`, `not noticed`, or `no verdict` where the tests took too long. Each path is tried after the one before."""
    file = folder / module.relative_to(ROOT)
    original = file.read_bytes()
    for path in tests:
        file.write_text(ast.unparse(ast.fix_missing_locations(changed)))
        try:
            failed = _first_failure(folder, path)
        finally:
            file.write_bytes(original)
        if failed is None:
            return "no verdict"
        # A test that fails on the code as it is says nothing.
        if failed and _first_failure(folder, failed) == "":
            return "noticed"
    return "not noticed"


def _first_failure(folder: Path, tests: str) -> str | None:
    """The first test that fails, "" where none does, None where it takes too long."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", tests]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[1] if failed else "" if done.returncode == 0 else tests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("source", type=Path)
    parser.add_argument("tests", nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default=":", help="FROM:TO of the chosen mutants")
    asked = parser.parse_args()
    source = ROOT / asked.source
    modules = [source] if source.is_file() else sorted(source.rglob("*.py"))
    candidates = [(m, *mutant) for m in modules for mutant in mutants(ast.parse(m.read_bytes()))]
    chosen = random.Random(asked.seed).sample(candidates, min(asked.count, len(candidates)))  # noqa: S311
    first, last = (int(number) if number else None for number in asked.part.split(":"))
    chosen = chosen[first:last]
    verdicts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shutil.copytree(ROOT, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".git", ".venv"))
        for module, number, line, what in chosen:
            tests = [asked.tests] if asked.tests else tests_of(module)
            judged = verdict(folder, module, _changed(module, number, what), tests)
            verdicts[judged] += 1
            print(f"{judged}: {module.relative_to(ROOT)}:{line}: {what}", flush=True)
    print(f"{len(chosen)} mutants: {', '.join(f'{count} {judged}' for judged, count in verdicts.items())}")


if __name__ == "__main__":
    main()
