"""Prints the figures of the house: lines, files over the soft limit, complex functions, module docstrings."""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
SOFT_LIMIT = 400
COMPLEX = 10
DECISIONS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.IfExp, ast.Assert, ast.ExceptHandler, ast.comprehension)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def complexity(function: Function) -> int:
    """As radon counts: one, plus one for each decision, boolean operand and case."""
    return 1 + sum(_weight(node) for node in _own_nodes(function))


def _weight(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    if isinstance(node, ast.Match):
        return len(node.cases) - 1
    if isinstance(node, ast.For | ast.While | ast.Try):
        return isinstance(node, DECISIONS) + bool(node.orelse)
    return isinstance(node, DECISIONS)


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(function):
        yield from _nodes_below(child)


def _nodes_below(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _nodes_below(child)


def report(verbose: bool) -> None:
    lines, functions, packages = 0, Counter[str](), Counter[str]()
    long_files, long_docstrings = [], []
    files = sorted(SOURCE.rglob("*.py"))
    for file in files:
        text, name = file.read_text(), str(file.relative_to(SOURCE))
        tree = ast.parse(text)
        count = text.count("\n")
        lines += count
        packages["/".join(file.relative_to(SOURCE).parts[:2])] += count
        if count > SOFT_LIMIT:
            long_files.append(f"{name}: {count}")
        docstring = ast.get_docstring(tree) or ""
        if "\n\n" in docstring or ". " in docstring.rstrip("."):
            long_docstrings.append(name)
        for node in ast.walk(tree):
            if isinstance(node, Function) and (found := complexity(node)) > COMPLEX:
                functions[f"{name} {node.name}"] = found
    print(f"{lines:7,} lines of Python in src, {len(files)} files")
    print(f"{len(functions):7,} functions with a complexity over {COMPLEX}")
    print(f"{len(long_files):7,} files over the soft limit of {SOFT_LIMIT} lines")
    print(f"{len(long_docstrings):7,} module docstrings of more than one sentence")
    print(
        f"{len([p for p in (SOURCE / 'holdfast').iterdir() if (p / '__init__.py').exists()]):7,} packages in holdfast"
    )
    if verbose:
        for title, rows in (
            ("Lines by package", [f"{n:6,} {name}" for name, n in packages.most_common(20)]),
            ("Complex functions", [f"{n:6} {name}" for name, n in functions.most_common()]),
            ("Long files", long_files),
            ("Long docstrings", long_docstrings),
        ):
            print(f"\n{title}", *rows, sep="\n  ")


if __name__ == "__main__":
    report("-v" in sys.argv)
