"""Breaks the code at random places, one at a time, and says which breaks no test notices.

`python tools/mutate.py 100 src/holdfast [--tests tests/core tests/cli] [--seed 7]`: a hundred mutants of the modules below the path.
First the tests run once over a copy with a mark at each chosen place: so each mutant is judged only by tests that come by its place,
the quickest first, and takes seconds. Without `--tests` those that mirror the chosen modules are run: the file of the same name, the
folders round it, its story. The copy has an environment of its own: daemons and commands that a test starts run the broken code as well.
The tree is left alone. `--part 20:40` judges only those of the chosen ones.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST_S = 300
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BATCHES = (6, 40)
"""How many tests judge a mutant: the quickest few, and when they do not notice, more."""
OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip

MARKS = """
import mmap, os
from pathlib import Path
_FOLDER = Path(__file__).parent
_seen = set()
with open(_FOLDER / "current_test", "rb") as _file:
    _current = mmap.mmap(_file.fileno(), 4, prot=mmap.PROT_READ)
def reached(number):
    key = (number, _current[:4])
    if key not in _seen:
        _seen.add(key)
        with open(_FOLDER / "reached", "ab", buffering=0) as out:
            out.write(b"%d %d\\n" % (number, int.from_bytes(key[1], "big")))
"""
"""Put into the copy as a module: notes which test runs while a marked place is reached, in whatever process that is."""

PLUGIN = """
import json
from pathlib import Path
from zlib import crc32
FOLDER = Path(__file__).parent
def pytest_runtest_logstart(nodeid, location):
    number = crc32(nodeid.encode())
    with open(FOLDER / "current_test", "r+b", buffering=0) as out:
        out.write(number.to_bytes(4, "big"))
def pytest_runtest_logreport(report):
    if report.when == "call":
        line = [crc32(report.nodeid.encode()), report.nodeid, report.outcome, report.duration]
        with open(FOLDER / "tests_run", "a") as out:
            out.write(json.dumps(line) + "\\n")
"""


class Mutant:
    """One small change: in which module, at which node, and what it is."""

    def __init__(self, module: Path, node: int, line: int, change: str) -> None:
        self.module, self.node, self.line, self.change = module, node, line, change

    def __str__(self) -> str:
        return f"{self.module.relative_to(ROOT)}:{self.line}: {self.change}"

    def broken_tree(self) -> ast.Module:
        tree = ast.parse(self.module.read_bytes())
        _apply(next(node for at, node in enumerate(ast.walk(tree)) if at == self.node), self.change)
        return ast.fix_missing_locations(tree)


def list_mutants(module: Path) -> Iterator[Mutant]:
    for number, node in enumerate(ast.walk(ast.parse(module.read_bytes()))):
        for change in _changes(node):
            yield Mutant(module, number, getattr(node, "lineno", 0), change)


def mirrored_tests(module: Path) -> list[str]:
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


def _apply(node: ast.AST, change: str) -> None:
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
        node.test = ast.Constant(change == "condition always true")
    elif isinstance(node, ast.Return):
        node.value = ast.Constant(None)


class Copy:
    """A copy of the tree with an environment of its own, in which places are marked or broken."""

    def __init__(self, folder: Path, through: list[str]) -> None:
        self.folder, self.through = folder, through
        left_out = shutil.ignore_patterns(".git", ".venv", "*_cache", "site")
        shutil.copytree(ROOT, folder, dirs_exist_ok=True, ignore=left_out)
        self._make_environment()

    def _make_environment(self) -> None:
        """Same interpreter and packages; `holdfast` is the copy's, for every program in `bin` too."""
        theirs, ours = Path(sys.prefix), self.folder / ".venv"
        site = next(Path(p) for p in sys.path if p.endswith("site-packages") and Path(p).is_relative_to(theirs))
        (ours / site.relative_to(theirs)).mkdir(parents=True)
        (ours / site.relative_to(theirs) / "copy.pth").write_text(f"{self.folder / 'src'}\n{site}\n")
        shutil.copy(theirs / "pyvenv.cfg", ours)
        shutil.copytree(theirs / "bin", ours / "bin", symlinks=True)
        for script in (ours / "bin").iterdir():
            if not script.is_symlink() and (body := script.read_bytes()).startswith(b"#!"):
                script.write_bytes(body.replace(bytes(theirs), bytes(ours)))

    def write(self, module: Path, tree: ast.Module) -> None:
        (self.folder / module.relative_to(ROOT)).write_text(ast.unparse(ast.fix_missing_locations(tree)))

    def restore(self, module: Path) -> None:
        shutil.copy(module, self.folder / module.relative_to(ROOT))

    def run_tests(self, tests: list[str], *options: str, longest_s: float = LONGEST_S) -> str | None:
        """The first test that failed, "" where none did, None where they took too long."""
        python = self.folder / ".venv" / "bin" / "python"
        command = [*self.through, python, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *options, *tests]
        environment = {**os.environ, "PYTHONPATH": str(self.folder / ".marks")}
        pipe = subprocess.PIPE
        run = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=pipe, stderr=pipe, text=True)
        try:
            output, _ = run.communicate(timeout=longest_s)
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)  # so that the tests stop the daemons they started
            run.communicate()
            return None
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", output, re.MULTILINE)
        return failed[1] if failed else "" if run.returncode == 0 else tests[0]

    def find_tests(self, chosen: list[Mutant], tests: list[str]) -> dict[int, list[tuple[float, str]]]:
        """For each mutant by its number: which passing tests come by its place, the quickest first."""
        marks = self.folder / ".marks"
        marks.mkdir()
        (marks / "current_test").write_bytes(bytes(4))
        for name, text in {"holdfast_marks.py": MARKS, "marking.py": PLUGIN}.items():
            (marks / name).write_text(text)
        site = next((self.folder / ".venv").rglob("copy.pth"))
        site.write_text(f"{site.read_text()}{marks}\n")
        for module in {mutant.module for mutant in chosen}:
            self.write(module, _marked(module, {n: m.node for n, m in enumerate(chosen) if m.module == module}))
        for path in tests:
            self.run_tests([path], "-p", "marking", "--timeout", "60", longest_s=LONGEST_S * 10)
        for module in {mutant.module for mutant in chosen}:
            self.restore(module)
        rows = [json.loads(line) for line in (marks / "tests_run").read_text().splitlines()]
        passed = {number: (duration, test) for number, test, outcome, duration in rows if outcome == "passed"}
        reached = {tuple(map(int, line.split())) for line in (marks / "reached").read_text().splitlines()}
        return {
            n: sorted(passed[test] for number, test in reached if number == n and test in passed)
            for n in range(len(chosen))
        }

    def judge(self, mutant: Mutant, tests: list[tuple[float, str]]) -> str:
        if not tests:
            return "not reached"
        self.write(mutant.module, mutant.broken_tree())
        try:
            first = 0
            for count in BATCHES:
                batch = tests[first : first + count]
                first += count
                failed = self.run_tests([test for _, test in batch], "-x") if batch else ""
                if failed is None:
                    return "no verdict"
                if failed:
                    # A test that fails on the code as it is says nothing.
                    self.restore(mutant.module)
                    return "noticed" if self.run_tests([failed]) == "" else "no verdict"
        finally:
            self.restore(mutant.module)
        return "not noticed"


def _marked(module: Path, nodes: dict[int, int]) -> ast.Module:
    """The module with a mark at the beginning of each function that holds one of the nodes, or of the module."""
    tree = ast.parse(module.read_bytes())
    holders: dict[int, ast.AST] = {}

    def visit(node: ast.AST, holder: ast.AST) -> None:
        holders[id(node)] = holder
        inner = node if isinstance(node, FUNCTIONS) else holder
        for child in ast.iter_child_nodes(node):
            visit(child, inner)

    visit(tree, tree)
    by_place = list(ast.walk(tree))
    for number, place in nodes.items():
        holder = holders[id(by_place[place])]
        # Code outside functions runs once, at the first import: any test of the module may judge it.
        is_inside = isinstance(holder, FUNCTIONS)
        for function in [holder] if is_inside else [node for node in by_place if isinstance(node, FUNCTIONS)]:
            call = ast.parse(f"__import__('holdfast_marks').reached({number})").body[0]
            function.body.insert(_first_statement(function), call)  # type: ignore[attr-defined]
    return tree


def _first_statement(holder: ast.AST) -> int:
    """Behind the docstring and what must stand first."""
    body: list[ast.stmt] = holder.body  # type: ignore[attr-defined]
    for at, statement in enumerate(body):
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not is_text and not is_future:
            return at
    return len(body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("source", type=Path)
    parser.add_argument("--tests", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default=":", help="FROM:TO of the chosen mutants")
    parser.add_argument("--through", default="", help="a command that runs each run of tests, such as `nice -n 5`")
    asked = parser.parse_args()
    source = ROOT / asked.source
    modules = [source] if source.is_file() else sorted(source.rglob("*.py"))
    candidates = [mutant for module in modules for mutant in list_mutants(module)]
    chosen = random.Random(asked.seed).sample(candidates, min(asked.count, len(candidates)))  # noqa: S311
    first, last = (int(number) if number else None for number in asked.part.split(":"))
    chosen = chosen[first:last]
    tests = asked.tests or _without_nested({test for mutant in chosen for test in mirrored_tests(mutant.module)})
    verdicts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        copy = Copy(Path(temporary), asked.through.split())
        reaching = copy.find_tests(chosen, tests)
        for number, mutant in enumerate(chosen):
            verdict = copy.judge(mutant, reaching[number])
            verdicts[verdict] += 1
            print(f"{verdict}: {mutant}", flush=True)
    print(f"{len(chosen)} mutants: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}")


def _without_nested(tests: set[str]) -> list[str]:
    return sorted(test for test in tests if not any(str(parent) in tests for parent in Path(test).parents))


if __name__ == "__main__":
    main()
