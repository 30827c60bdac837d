"""Follows a syntax tree along every path the shell can take, without running anything."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

from holdfast.analysis.shell import builtins, expand, flow, programs, syntax
from holdfast.analysis.shell.expand import assigned_value, capture_name, expand_words, value_text, word_text
from holdfast.analysis.shell.flow import SUCCESS, UNKNOWN_STATUS, OutputPiece, Path, Pieces, Status, Streams, Value
from holdfast.analysis.shell.parse import ShellTooLarge, ShellUnreadable, parse_command
from holdfast.analysis.shell.redirects import apply_redirect, file_name
from holdfast.analysis.shell.syntax import UNKNOWN, Node, Part, Redirect, Word

# Paths followed at once; beyond that, similar ones are merged.
MAX_PATHS = 24
# Nodes visited per walk, because a hook waits for it.
MAX_STEPS = 400
# Nesting of functions, shells and loop rounds.
MAX_CALLS = 12
# A `for` over more values is followed once, with an unknown value.
MAX_ITERATIONS = 12
MAX_BRANCHES = 60
MAX_INNER_CHARACTERS = 40_000
"""For all texts that the command passes to shells and `eval`, together."""

ReadFile = Callable[[str], str | None]
"""The text of a script by its path as written, or None when it is not there or not to be read."""


class Executor:
    """One walk over one command. `invocations` lists every program that may have been started."""

    def __init__(self, output: str = "", read_file: ReadFile | None = None) -> None:
        self.invocations: list[flow.Invocation] = []
        self.output = output
        self._read_file = read_file
        self.asked_for_files = False
        self.context: tuple[int, ...] = ()
        self.background = 0
        self.looping = 0
        self.run_later: list[str] = []
        """Shell text for later: signal traps, aliases."""
        self.redirected: list[tuple[int, str]] = []
        """How many programs came before the redirection, and its file."""
        self.sourced: dict[str, None] = {}
        """Files that the shell sources."""
        self._known: dict[tuple[object, ...], int] = {}
        self._steps = 0
        self._inner_characters = 0
        self._sinks = 0

    # ── every node ───────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, node: Node, path: Path, streams: Streams, checked: bool = False) -> list[Path]:
        """`checked`: the status is tested, so `set -e` does not apply here."""
        self._steps += 1
        if self._steps > MAX_STEPS or len(self.context) > MAX_CALLS:
            raise ShellTooLarge
        # After exit, return, break or continue nothing more runs here.
        if path.control:
            return [path]
        # `set -n`: the shell reads on and runs nothing.
        if "noexec" in path.options:
            return [path]
        return flow.merge_paths(_HANDLERS[type(node)](self, node, path, streams, checked), MAX_PATHS)

    def run_all(self, node: Node, paths: list[Path], streams: Streams, checked: bool = False) -> list[Path]:
        return [done for path in paths for done in self.run(node, path, streams, checked)]

    def after(self, path: Path, checked: bool) -> list[Path]:
        """Applies `set -e` to a status that is not tested."""
        if checked or "errexit" not in path.options or path.control:
            return [path]
        good, bad = flow.split_path(path, path.status)
        for one in bad:
            one.control = "exit"
        return good + bad

    def parse(self, text: str) -> Node:
        """Parses nested text within a total bound."""
        self._inner_characters += len(text)
        if self._inner_characters > MAX_INNER_CHARACTERS:
            raise ShellTooLarge
        return parse_command(text)

    def parse_or_none(self, text: str | None) -> Node | None:
        try:
            return None if text is None else self.parse(text)
        except ShellUnreadable:
            return None

    def read_file(self, path: str) -> str | None:
        """The text of a repository file; makes the result uncacheable."""
        self.asked_for_files = True
        return self._read_file(path) if self._read_file else None

    def note_sourced(self, path: Path, name: str) -> None:
        file = file_name(path, name)
        if not name or UNKNOWN in file:
            return
        # The text of a file that this command wrote is known.
        written = path.outputs.get(file)
        if written is None:
            self.sourced[file] = None
        elif all(piece.invocation < 0 and not piece.status and UNKNOWN not in piece.text for piece in written):
            self.run_later.append("".join(piece.text for piece in written))

    def sink(self) -> str:
        self._sinks += 1
        return f"&capture{self._sinks}"

    # ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def sequence(self, node: syntax.Sequence, path: Path, streams: Streams, checked: bool) -> list[Path]:
        paths = [path]
        for item in node.items:
            paths = flow.merge_paths(self.run_all(item, paths, streams, checked), MAX_PATHS)
        return paths

    def and_or(self, node: syntax.AndOr, path: Path, streams: Streams, checked: bool) -> list[Path]:
        done: list[Path] = []
        # `set -e` ignores a failure on the left of `&&` and `||`.
        for one in self.run(node.left, path, streams, True):
            if one.control:
                done.append(one)
                continue
            good, bad = flow.split_path(one, one.status)
            going, staying = (good, bad) if node.operator == "&&" else (bad, good)
            done += staying
            done += self.run_all(node.right, going, streams, checked)
        return done

    def negation(self, node: syntax.Negation, path: Path, streams: Streams, checked: bool) -> list[Path]:
        paths = self.run(node.body, path, streams, True)
        for one in paths:
            if not one.control:
                one.status = _negate_status(one, one.status)
        return paths

    def background_job(self, node: syntax.Background, path: Path, streams: Streams, checked: bool) -> list[Path]:
        return self.run_job(path, lambda: self.run(node.body, path, streams, True))

    def run_job(self, path: Path, run: Callable[[], list[Path]]) -> list[Path]:
        # A job runs in a subshell, and `&` itself always succeeds.
        before = path.clone()
        self.background += 1
        paths = run()
        self.background -= 1
        for one in paths:
            one.restore_shell(before)
            one.pending |= one.ran.keys() - before.ran.keys()
            one.mark_unfinished(before)
            one.job, one.jobs, one.status = one.status, one.jobs + 1, SUCCESS
        return paths

    def pipeline(self, node: syntax.Pipeline, path: Path, streams: Streams, checked: bool) -> list[Path]:
        # Each: the way so far, what the next stage reads, the statuses of the stages before it.
        paths = [(path, streams.stdin, ())]  # type: list[tuple[Path, Pieces | None, tuple[Status, ...]]]
        last = len(node.stages) - 1
        for at, stage in enumerate(node.stages):
            paths = [
                ran
                for one, stdin, statuses in paths
                for ran in self._stage(stage, one, stdin, statuses, streams, at == last, node.stderr_too[at])
            ]
            if len(paths) > 4 * MAX_PATHS:
                raise ShellTooLarge
        done: list[Path] = []
        for one, _stdin, statuses in paths:
            one.pipestatus = statuses
            # Without pipefail a pipeline ends as its last stage does.
            one.status = Status("all", members=statuses) if "pipefail" in one.options else statuses[-1]
            done += self.after(one, checked)
        return done

    def _stage(
        self,
        stage: Node,
        path: Path,
        stdin: Pieces | None,
        statuses: tuple[Status, ...],
        streams: Streams,
        last: bool,
        stderr_too: bool,
    ) -> "Iterator[tuple[Path, Pieces | None, tuple[Status, ...]]]":
        before = path.clone()
        target = streams.stdout if last else self.sink()
        mine = Streams(stdin, target, target if stderr_too and not last else streams.stderr)
        for one in self.run(stage, path, mine, True):
            # bash runs every stage in a subshell: variables and folders that it changes are gone.
            one.restore_shell(before)
            piped = () if last else one.outputs.pop(target, ())
            yield one, piped, (*statuses, one.status)

    # ── compound commands ────────────────────────────────────────────────────────────────────────────────────────────

    def group(self, node: syntax.Group, path: Path, streams: Streams, checked: bool) -> list[Path]:
        streams = self.redirect(path, node.redirects, streams)
        if not node.subshell:
            return self.run(node.body, path, streams, checked)
        before, done = path.clone(), list[Path]()
        for one in self._run_subshell(node.body, path, streams, checked):
            one.restore_shell(before)
            done += self.after(one, checked)
        return done

    def _run_subshell(self, body: Node, path: Path, streams: Streams, checked: bool) -> list[Path]:
        """Runs its own EXIT trap, not that of the outer shell."""
        path.trap = None
        return [end for one in self.run(body, path, streams, checked) for end in programs.finish_shell(self, one)]

    def if_(self, node: syntax.If, path: Path, streams: Streams, checked: bool) -> list[Path]:
        streams = self.redirect(path, node.redirects, streams)
        waiting, done = [path], list[Path]()
        for condition, body in node.branches:
            tested, waiting = self.run_all(condition, waiting, streams, True), []
            for one in tested:
                if one.control:
                    done.append(one)
                    continue
                good, bad = flow.split_path(one, one.status)
                done += self.run_all(body, good, streams, checked)
                waiting += bad
        # An `if` none of whose conditions holds ends with 0.
        for one in waiting:
            one.status = SUCCESS
        return done + (self.run_all(node.otherwise, waiting, streams, checked) if node.otherwise else waiting)

    def while_(self, node: syntax.While, path: Path, streams: Streams, checked: bool) -> list[Path]:
        """The number of rounds is unknown: one is followed, and nothing is concluded from it."""
        streams = self.redirect(path, node.redirects, streams)
        before = path.clone()
        tested = self._looped(node.condition, path, streams)
        once = self._looped(node.body, tested.clone(), streams)
        return [self._blurred(before, tested), self._blurred(before, once)]

    def _looped(self, node: Node, path: Path, streams: Streams) -> Path:
        self.looping += 1
        paths = self.run(node, path, streams, True)
        self.looping -= 1
        return flow.merge_all(paths)

    def _blurred(self, before: Path, path: Path) -> Path:
        path.control = "" if path.control in ("break", "continue") else path.control
        path.status = UNKNOWN_STATUS
        # Assumptions hold for one round only.
        path.assumed = {k: v for k, v in path.assumed.items() if k in before.assumed}
        path.ran = {k: v if k in before.ran else False for k, v in path.ran.items()}
        return path

    def for_(self, node: syntax.For, path: Path, streams: Streams, checked: bool) -> list[Path]:
        streams = self.redirect(path, node.redirects, streams)
        paths = self.substitutions(node.values, [path])
        done: list[Path] = []
        for one in paths:
            values = expand_words(one, node.values)
            if len(values) > MAX_ITERATIONS or any(UNKNOWN in v or "*" in v for v in values):
                done += self._endless(node, one, streams)
            else:
                done += self._iterate(node, values, one, streams, checked)
        return done

    def _endless(self, node: syntax.For, path: Path, streams: Streams) -> list[Path]:
        before = path.clone()
        values = expand_words(path, node.values)
        # For a single pattern, writes are reported with the pattern.
        path.variables[node.variable] = Value(values[0] if len(values) == 1 and UNKNOWN not in values[0] else UNKNOWN)
        once = self._looped(node.body, path.clone(), streams)
        return [self._blurred(before, path), self._blurred(before, once)]

    def _iterate(self, node: syntax.For, values: list[str], path: Path, streams: Streams, checked: bool) -> list[Path]:
        path.status = SUCCESS
        going, done = [path], list[Path]()
        outer = self.context
        for number, value in enumerate(values):
            # Every round starts invocations of its own.
            self.context = (*outer[:MAX_CALLS], number + 1)
            for one in going:
                one.variables[node.variable] = Value(value)
            ran, going = self.run_all(node.body, going, streams, checked), []
            for one in ran:
                stop = one.control == "break"
                one.control = "" if one.control in ("break", "continue") else one.control
                (done if stop or one.control else going).append(one)
            going = flow.merge_paths(going, MAX_PATHS)
        self.context = outer
        return done + going

    def case(self, node: syntax.Case, path: Path, streams: Streams, checked: bool) -> list[Path]:
        streams = self.redirect(path, node.redirects, streams)
        value = word_text(path, node.value)
        if len(node.branches) > MAX_BRANCHES:
            return self.unparsed(syntax.Unparsed(""), path, streams, checked)
        if UNKNOWN not in value:
            for patterns, body in node.branches:
                if any(fnmatchcase(value, word_text(path, pattern)) for pattern in patterns):
                    return self.run(body, path, streams, checked)
            path.status = SUCCESS
            return [path]
        paths = [done for _patterns, body in node.branches for done in self.run(body, path.clone(), streams, checked)]
        path.status = SUCCESS
        return [*paths, path]

    def function(self, node: syntax.Function, path: Path, streams: Streams, checked: bool) -> list[Path]:
        # bash calls it for unknown names.
        called = self.run(node.body, path.clone(), streams, True) if node.name == "command_not_found_handle" else []
        path.functions = {**path.functions, node.name: node.body}
        path.status = SUCCESS
        return [*called, path]

    def condition(self, node: syntax.Condition, path: Path, streams: Streams, checked: bool) -> list[Path]:
        done: list[Path] = []
        for one in self.substitutions(node.words, [path]):
            one.status = expand.evaluate_test(one, node.words)
            done += self.after(one, checked)
        return done

    def unparsed(self, node: syntax.Unparsed, path: Path, streams: Streams, checked: bool) -> list[Path]:
        path.status = UNKNOWN_STATUS
        path.tamper("a part of the command could not be parsed")
        return [path]

    # ── simple commands ──────────────────────────────────────────────────────────────────────────────────────────────

    def simple(self, node: syntax.Simple, path: Path, streams: Streams, checked: bool) -> list[Path]:
        values = (a.elements or ((a.value,) if a.value else ()) for a in node.assignments)
        words = (
            *node.words,
            *(word for value_words in values for word in value_words),
            *(r.target for r in node.redirects),
        )
        # Substitutions run first, including those in assignments and redirections.
        paths = self.substitutions(words, [path])
        done: list[Path] = []
        for one in paths:
            for ran in self._simple(node, one, streams, checked):
                done += self.after(ran, checked)
        return done

    def _simple(self, node: syntax.Simple, path: Path, streams: Streams, checked: bool) -> list[Path]:
        words = expand_words(path, node.words)
        streams = self.redirect(path, node.redirects, streams)
        if not words:
            status = self._substitution_status(node, path)
            for assignment in node.assignments:
                builtins.assign_variable(path, assignment.name, assigned_value(path, assignment), assignment.append)
            path.status = status
            return [path]
        # `exec > file` without a command changes where the shell itself writes from here on.
        if words == ["exec"]:
            path.replaced = {**path.replaced, "&1": streams.stdout, "&2": streams.stderr}
            path.status = SUCCESS
            return [path]
        environment = {a.name: value_text(assigned_value(path, a)) for a in node.assignments}
        call = programs.Call(words, node, environment, streams, checked=checked)
        paths = programs.run_call(self, call, path)
        for one in paths:
            # A simple command resets PIPESTATUS to its own `status`.
            one.pipestatus = ()
        return paths

    def _substitution_status(self, node: syntax.Simple, path: Path) -> Status:
        """`x=$(cmd)` ends as `cmd` does."""
        status = SUCCESS
        for assignment in node.assignments:
            for part in assignment.value.parts if assignment.value else ():
                if part.kind == "substitution":
                    captured = path.variables.get(f"{capture_name(part)}?")
                    status = captured.status if captured and captured.status else UNKNOWN_STATUS
        return status

    def substitutions(self, words: tuple[Word, ...], paths: list[Path]) -> list[Path]:
        """Runs every `$(…)` and `<(…)` of the words and keeps its output for when they are expanded."""
        for word in words:
            for part in word.parts:
                if part.body is not None:
                    paths = [done for path in paths for done in self._substitute(part, path)]
                elif part.default is not None:
                    paths = self.substitutions((part.default,), paths)
        return paths

    def _run_beside(self, body: Node, path: Path, before: Path) -> list[Path]:
        """The reader behind `>(…)` runs in parallel and does not affect the status."""
        self.background += 1
        paths = self.run(body, path, Streams(None, self.sink()), True)
        self.background -= 1
        for one in paths:
            one.restore_shell(before)
            one.status = before.status
        return paths

    def _substitute(self, part: Part, path: Path) -> list[Path]:
        before, target = path.clone(), self.sink()
        assert part.body is not None
        if part.text == ">(":
            return self._run_beside(part.body, path, before)
        paths = self._run_subshell(part.body, path, Streams((), target), True)
        for one in paths:
            one.restore_shell(before)
            pieces = one.outputs.pop(target, ())
            name = capture_name(part)
            # The name with `?` holds how the substitution ended.
            one.variables = {**one.variables, f"{name}?": Value(status=one.status)}
            one.variables[name] = Value(pieces=pieces) if part.kind == "substitution" else Value(f"&{name}")
            if part.kind == "process":
                one.outputs[f"&{name}"] = pieces
            one.status = before.status
        return paths

    # ── redirections ─────────────────────────────────────────────────────────────────────────────────────────────────

    def redirect(self, path: Path, redirects: tuple[Redirect, ...], streams: Streams) -> Streams:
        for one in redirects:
            streams = apply_redirect(path, one, streams)
            if one.operator in (">", ">>"):
                self.redirected.append((len(self.invocations), file_name(path, word_text(path, one.target))))
        return streams

    def file_pieces(self, path: Path, name: str, unknown: OutputPiece) -> Pieces:
        """What the command wrote into a file so far."""
        file = file_name(path, name)
        return path.outputs.get(file, (unknown,)) if UNKNOWN not in file else (unknown,)

    # ── invocations ──────────────────────────────────────────────────────────────────────────────────────────────────

    def invocation(self, path: Path, node: syntax.Simple, made: flow.Invocation) -> flow.Invocation:
        """The record of this command; shared by paths that reach it in the same state."""
        # By node and not by text: the same words at two places are two programs.
        key = (id(node), tuple(made.words), made.cwd, self.context, made.shadowed)
        index = self._known.get(key)
        if index is None:
            index = self._known[key] = made.index = len(self.invocations)
            self.invocations.append(made)
        existing = self.invocations[index]
        existing.tampered = existing.tampered or made.tampered
        existing.repeated = existing.repeated or made.repeated or self.looping > 0
        existing.background = existing.background or self.background > 0
        # Inside of a loop that may go round zero times nothing ran for sure.
        path.ran[index] = not self.looping
        return existing


def _negate_status(path: Path, status: Status) -> Status:
    if status.kind == "code":
        return Status("code", 0 if status.code else 1)
    if status.kind == "of":
        assumed = path.assumed.get(status.invocation)
        if assumed is not None:
            return Status("code", 0 if assumed else 1)
        return Status("not", invocation=status.invocation)
    return SUCCESS if status.kind == "failed" else UNKNOWN_STATUS


_HANDLERS: dict[type, Callable[..., list[Path]]] = {
    syntax.Sequence: Executor.sequence,
    syntax.AndOr: Executor.and_or,
    syntax.Negation: Executor.negation,
    syntax.Background: Executor.background_job,
    syntax.Pipeline: Executor.pipeline,
    syntax.Group: Executor.group,
    syntax.If: Executor.if_,
    syntax.While: Executor.while_,
    syntax.For: Executor.for_,
    syntax.Case: Executor.case,
    syntax.Function: Executor.function,
    syntax.Condition: Executor.condition,
    syntax.Simple: Executor.simple,
    syntax.Unparsed: Executor.unparsed,
}
