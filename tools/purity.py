"""Reports state outside the log that `reduce`, `derive` or `decide` of a feature can reach; run by `make check`."""

import ast
import sys
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

SRC = Path(__file__).parents[1] / "src"
CACHES = frozenset(("lru_cache", "cache"))
MUTATORS = frozenset(
    "add append appendleft clear discard extend insert move_to_end pop popitem popleft remove setdefault update".split()
)
WORLD = frozenset(("os", "time", "subprocess", "socket", "random", "shutil", "tempfile", "io", "secrets"))
"""Standard modules whose answers depend on more than their arguments."""
TEXT_ONLY = frozenset(
    "os.path os.path.join os.path.basename os.path.dirname os.path.normpath os.path.split os.path.splitext os.path.isabs "
    "os.path.commonpath os.path.commonprefix os.sep os.fspath os.fsencode os.fsdecode".split()
)
READS = frozenset("exists glob is_dir is_file iterdir lstat open read_bytes read_text resolve stat".split())
"""Methods of a path that look at the disk."""
PACKAGE_DATA = frozenset({("holdfast.core.data_files", "load_data")})
"""Reads files of the package, which are as constant as its code."""
IN_FORCE = "holdfast.features.gates.rules.in_force"
WHOLE_CALLS = "holdfast.features.uat.drivers.evidence"
ALLOWED = {
    f"{IN_FORCE}.any_in_force changes {IN_FORCE}._known": "whether any rule exists; saves a look at the disk per hook",
    f"{IN_FORCE}.note_in_force changes {IN_FORCE}._known": "the same",
    "holdfast.paths._state_dir is cached and asks pathlib.Path.home": "the path of that look, by all that decides it",
    f"{WHOLE_CALLS}.whole_call changes {WHOLE_CALLS}._whole_calls": "typed secrets, which no event may hold",
}
"""Known in `derive` and `decide`, with the reason. Their results are in the log, so no replay asks them again."""

Node = tuple[str, str]
"""A module and a name that it defines."""


class Module:
    """The names that a module defines and those that it imports."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.imports: dict[str, Node] = {}
        self.defined: dict[str, ast.AST] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                self.imports |= {one.asname or one.name: (node.module, one.name) for one in node.names}
            elif isinstance(node, ast.Import):
                self.imports |= {one.asname or one.name.partition(".")[0]: (one.name, "") for one in node.names}
        for statement in tree.body:
            self._define(statement)

    def _define(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            self.defined[statement.name] = statement
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for name in (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)):
                self.defined[name] = statement.value


@cache
def load_module(name: str) -> Module | None:
    base = SRC.joinpath(*name.split("."))
    file = next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.exists()), None)
    return Module(name, ast.parse(file.read_text("utf-8"))) if file else None


def resolve(module: str, name: str) -> Node | None:
    """Where a name is defined; outside our packages as it was imported."""
    for _ in range(10):
        loaded = load_module(module)
        if loaded is None:
            return module, name
        if name in loaded.defined:
            return module, name
        # A package that imports its own module names it like something of another module.
        if loaded.imports.get(name, (module, name)) == (module, name):
            return (f"{module}.{name}", "") if load_module(f"{module}.{name}") else None
        module, name = loaded.imports[name]
        if not name:
            return module, ""
    return None


def dotted(node: ast.expr) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    return [*before, node.attr] if isinstance(node, ast.Attribute) and (before := dotted(node.value)) else []


def target_of(module: str, node: ast.expr) -> Node | None:
    """What `name` or `package.name` of a module refers to."""
    words = dotted(node)
    found = resolve(module, words[0]) if words else None
    for word in words[1:]:
        if found is None or (found[1] and load_module(found[0])):
            return found
        if found[1]:
            found = found[0], f"{found[1]}.{word}"
            continue
        found = resolve(found[0], word) if load_module(found[0]) else (f"{found[0]}.{word}", "")
    return found


def bodies(node: ast.AST) -> Iterator[ast.AST]:
    """A definition without its decorators, which run when the module is loaded."""
    pending = [node]
    while pending:
        one = pending.pop()
        yield one
        skipped = set(map(id, getattr(one, "decorator_list", ())))
        pending += [child for child in ast.iter_child_nodes(one) if id(child) not in skipped]


def references(node: Node) -> Iterator[Node]:
    loaded = load_module(node[0])
    if loaded and node[1] in loaded.defined:
        for one in bodies(loaded.defined[node[1]]):
            if isinstance(one, ast.Name | ast.Attribute) and (target := target_of(node[0], one)):
                yield target
            elif isinstance(one, ast.Call) and (called := dotted(one.func)[-1:]) and called[0] in READS:
                yield "pathlib", called[0]


@cache
def reachable(start: Node) -> frozenset[Node]:
    seen, pending = {start}, [start]
    while pending:
        fresh = {target for target in references(pending.pop()) if target not in seen} - PACKAGE_DATA
        seen |= fresh
        pending += fresh
    return frozenset(seen)


def roots(fields: Collection[str]) -> Iterator[Node]:
    """The functions that features give under these names."""
    for file in sorted(SRC.glob("holdfast/features/*/__init__.py")):
        module = f"holdfast.features.{file.parent.name}"
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg in fields:
                names = [one for one in ast.walk(node.value) if isinstance(one, ast.Name | ast.Attribute)]
                yield from filter(None, (target_of(module, one) for one in names))


def changed_names(function: ast.AST) -> Iterator[ast.expr]:
    """Expressions that a function assigns items of, deletes items of, or calls a mutating method of."""
    for one in bodies(function):
        if isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store | ast.Del):
            yield one.value
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in MUTATORS:
            yield one.func.value


def own_names(function: ast.AST) -> set[str]:
    stored = {one.id for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return stored | {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)}


def touches_world(node: Node) -> bool:
    name = ".".join(filter(None, node))
    asks = node[0] == "pathlib" and node[1] in (*READS, "Path.home", "Path.cwd")
    return asks or (name.partition(".")[0] in WORLD and name not in TEXT_ONLY and name not in WORLD)


def is_cached(function: ast.AST) -> bool:
    return any(
        isinstance(one, ast.Name) and one.id in CACHES
        for decorator in getattr(function, "decorator_list", ())
        for one in ast.walk(decorator)
    )


def faults_of(node: Node) -> Iterator[str]:
    loaded = load_module(node[0])
    function = loaded.defined.get(node[1]) if loaded else None
    if not isinstance(function, ast.FunctionDef | ast.ClassDef):
        return
    where = ".".join(node)
    if any(isinstance(one, ast.Global) for one in bodies(function)):
        yield f"{where} assigns a global"
    own = own_names(function)
    for changed in changed_names(function):
        words = dotted(changed)
        target = target_of(node[0], changed) if words and words[0] not in own else None
        if target and (other := load_module(target[0])) and target[1] in other.defined:
            yield f"{where} changes {'.'.join(target)}"
    if is_cached(function) and (world := sorted(filter(touches_world, reachable(node)))):
        yield f"{where} is cached and asks {', '.join('.'.join(filter(None, one)) for one in world[:5])}"


def find_faults(fields: Collection[str]) -> set[str]:
    nodes = {node for root in roots(fields) for node in reachable(root)}
    return {fault for node in nodes for fault in faults_of(node)}


def check() -> list[str]:
    """Faults that nothing excuses, and excuses for what is gone."""
    replayed, recorded = find_faults(("reduce",)), find_faults(("derive", "decide"))
    gone = {f"no longer needed in ALLOWED: {fault}" for fault in ALLOWED.keys() - recorded}
    return sorted(replayed | (recorded - ALLOWED.keys()) | gone)


if __name__ == "__main__":
    found = check()
    print("\n".join(found) or "Nothing that reduce, derive or decide can reach keeps state outside the log.")
    sys.exit(bool(found))
