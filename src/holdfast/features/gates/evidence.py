"""Runs on record, and whether one of them proves what a requirement asks for; nobody's word counts."""

import fnmatch
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from holdfast.core.bounded import with_newest
from holdfast.core.event import Event
from holdfast.core.fingerprint import content_key
from holdfast.core.globs import any_matches
from holdfast.core.ids import alias
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.core.ports import Doc
from holdfast.core.shell.acts import BLANK
from holdfast.core.shell.analysis import Analysis, Ran, ShellCommand, analyse_command
from holdfast.features.gates.triggers import Rule

if TYPE_CHECKING:
    from holdfast.features.gates.requirements import Here
    from holdfast.features.gates.settings import Evidence

MOST_EDITS, MOST_COMMANDS, MOST_SKILLS, MOST_COMMITS, MOST_RUNS, MOST_SIZES = 60, 40, 30, 20, 30, 20
LONGEST_COMMAND = 400
SOMEWHERE = "*"
"""Stands for an edit whose files the agent did not name: it may be any file."""
MOST_PROGRAMS, MOST_READINGS = 12, 3
_LOOKS_ONLY = frozenset(
    "ls cat head tail grep rg find fd cd echo pwd wc which sleep tree stat file env date whoami jq less awk true holdfast sed sort".split()
)
_GIT_LOOKS = frozenset("status log diff show branch rev-parse fetch stash blame grep ls-files remote config".split())
_RUNS_NOTHING = frozenset(
    "--version --help -h --collect-only --co --setup-plan --fixtures --markers --dry-run --listTests --list-tests --just-print".split()
)


def no_facts(event: Event) -> Doc:
    return {"project": event.project, "edits": {}, "floor": 0, "ran": {}, "skills": {}, "commits": {}, "uat": {}}


def with_tool(doc: Doc | None, event: Event) -> Doc | None:
    data = event.data
    action = data.get("action")
    doc = no_facts(event) if doc is None else doc
    if data.get("claimed"):
        return None
    if action == "edit" and event.kind == "tool.finished":
        return _edited(doc, event)
    if action == "shell" and data.get("command"):
        return _ran(doc, event) if not data.get("written") else _edited(_ran(doc, event) or doc, event)
    if action in ("mcp", "other") and data.get("written"):
        return _edited(doc, event)
    if action == "skill" and data.get("skill") and data.get("ok") is not False:
        who = [event.seq, event.at, event.session, data.get("branch", "")]
        return {**doc, "skills": with_newest(doc["skills"], data["skill"], who, MOST_SKILLS), "at": event.at}
    return None


def _edited(doc: Doc, event: Event) -> Doc:
    edits, floor = doc["edits"], doc["floor"]
    named = event.data.get("written") or event.data.get("paths") or (SOMEWHERE,)
    for path in named:
        edits = with_newest(edits, path, event.seq, MOST_EDITS + 1)
        if len(edits) > MOST_EDITS:
            oldest = next(iter(edits))
            floor = edits[oldest]
            edits = {key: seq for key, seq in edits.items() if key != oldest}
    return {**doc, "edits": edits, "floor": floor, "at": event.at}


def _ran(doc: Doc, event: Event) -> Doc | None:
    """A command without an exit code (still running, interrupted) is no fact at all.

    One whose exit code was found out later is a fact of the moment when it ended: what was edited since makes it stale.
    """
    data = event.data
    code = data.get("exit_code")
    if code is None or data.get("claimed") or data.get("detached") or data.get("interrupted"):
        return None
    seq = data["of"] if event.kind == "tool.exit_read" else event.seq
    analysis = analyse_command(data["command"], code, data.get("output", ""), cwd=None)
    ran, made = doc["ran"], doc["commits"]
    for command in analysis.commands[:MOST_PROGRAMS]:
        outcome = _outcome(command, code, len(analysis.commands) == 1)
        if outcome is None:
            continue
        fact = [seq, event.at, outcome, event.session, data.get("branch", ""), dict(data.get("content") or {})]
        ran = _with_latest(ran, reading_of(command)[:LONGEST_COMMAND], fact, MOST_COMMANDS)
        if outcome == 1 and reading_of(command).startswith("git commit"):
            made = _with_latest(made, event.session, [*fact[:2], fact[4]], MOST_COMMITS)
    if ran is doc["ran"]:
        return None
    return {**doc, "ran": ran, "commits": made, "at": event.at}


def _outcome(command: ShellCommand, code: int, alone: bool) -> int | None:
    """1: it ran and exited 0 · 0: it failed · None: not a run, or how it ended does not show."""
    invocation = command.invocation
    if command.ran is Ran.NO or invocation.shadowed or not is_real_run(command.words):
        return None
    failed = command.exit_code not in (None, 0) or (code != 0 and alone)
    if failed:
        return 0
    sure = command.ran is Ran.YES and command.exit_code == 0 and not command.pending and not invocation.tampered
    return 1 if sure and not invocation.background else None


def is_real_run(words: list[str]) -> bool:
    """Nobody asks for proof of an `ls`, and hundreds of them would push the proof out that somebody asks for."""
    name = words[0].rpartition("/")[2]
    if name == "git" and reading_words(words)[1:2] and reading_words(words)[1] in _GIT_LOOKS:
        return False
    if name in _LOOKS_ONLY or any(word in _RUNS_NOTHING for word in words[1:]):
        return False
    return not (name in ("make", "gmake") and any(re.match(r"^-[a-zA-Z]*[nq]", word) for word in words[1:]))


def only_looks(command: str) -> bool:
    found = analyse_command(command, cwd=None)
    return not found.problem and not any(is_real_run(one.words) for one in found.commands)


def is_named_by(rule: Rule, command: str) -> bool:
    """Whether a program of the command is what the rule takes for proof, be it a check tool or any script."""
    globs = tuple(glob for one in rule.spec.evidence for glob in one.command or ())
    found = analyse_command(command, cwd=None).commands if globs else ()
    return any(matches(reading_of(one), globs) for one in found if is_real_run(one.words))


def reading_of(command: ShellCommand) -> str:
    """Its words in one line; options between `git` and its verb are left out."""
    return " ".join(reading_words(command.words))


def reading_words(given: list[str]) -> list[str]:
    words = [_one_word(word) for word in given]
    words[0] = words[0].rpartition("/")[2] or words[0]
    if words[0] == "git":
        at = 1
        while at < len(words) and words[at].startswith("-"):
            at += 2 if words[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1
        words = ["git", *words[at:]]
    return words


def _one_word(word: str) -> str:
    return "".join(BLANK if c.isspace() else c for c in word)


def with_check(doc: Doc | None, event: Event) -> Doc | None:
    """What was found out about a check goes before what its exit code alone says."""
    check = event.data
    if not isinstance(check, CheckFinished):
        return None
    if check.presumed and check.verdict == "unknown":
        return None  # A script that nobody knows more of: how it ended is what the rule asked for.
    doc = doc or no_facts(event)
    readings = _readings_of(check)
    ran = {command: fact for command, fact in doc["ran"].items() if fact[0] != check.of or command not in readings}
    outcome = {"passed": 1, "failed": 0}.get(check.verdict, -1)
    fact = [check.of, event.at, outcome, event.session, check.branch, dict(check.content), check.why]
    for reading in readings:
        ran = with_newest(ran, reading[:LONGEST_COMMAND], fact, MOST_COMMANDS)
    return {**doc, "ran": ran, "at": event.at}


def _readings_of(check: CheckFinished) -> list[str]:
    """How rules may name it: the program that was typed, and the tool that it came down to (`python -m pytest`)."""
    commands = [
        reading_words(one.words) for one in analyse_command(check.command, cwd=None).commands if is_real_run(one.words)
    ]
    named = [words for words in commands if check.runner in (word.rpartition("/")[2] for word in words)]
    shown = [" ".join(words) for words in named or commands]
    return list(dict.fromkeys([*shown[:MOST_READINGS], " ".join([check.runner, *map(_one_word, check.operands)])]))


def _with_latest(known: dict[str, Any], name: str, fact: list[Any], most: int) -> dict[str, Any]:
    """Of two exit codes that were found out later, the one of the earlier command may come last."""
    return known if name in known and known[name][0] > fact[0] else with_newest(known, name, fact, most)


def with_uat(doc: Doc | None, event: Event) -> Doc | None:
    scenario = event.data.get("scenario") or event.data.get("name")
    if not isinstance(scenario, str):
        return None
    doc = doc or no_facts(event)
    outcome = event.data.get("outcome") or event.data.get("status") or event.data.get("verdict")
    fact = [event.seq, event.at, int(outcome in ("passed", "pass", "success")), event.session]
    return {**doc, "uat": with_newest(doc["uat"], scenario[:200], fact, MOST_RUNS), "at": event.at}


def with_measure(doc: Doc | None, event: Event) -> Doc:
    """Sizes per branch; per requirement, up to which event its facts are older than a change no tool told us of."""
    doc = doc or no_facts(event)
    data, before = event.data, doc.get("seen") or {}
    seen, touched = {}, dict(doc.get("touched") or {})
    for name, digest in (data.get("covers") or {}).items():
        seen[name] = [digest, data.get("as_of", 0)]
        if name in before and before[name][0] != digest:
            touched[name] = before[name][1]
    size = {"lines": data.get("lines", 0), "base": data.get("base", ""), "at": event.at}
    sizes = with_newest(doc.get("sizes") or {}, str(data.get("branch", "")), size, MOST_SIZES)
    touched = {name: seq for name, seq in touched.items() if name in seen}
    return {**doc, "sizes": sizes, "seen": seen, "touched": touched, "at": event.at}


def with_look(doc: Doc | None, event: Event) -> Doc:
    return {**(doc or no_facts(event)), "missing": list(event.data.get("missing") or ())[:50], "at": event.at}


Fact = list[Any]
"""[seq, at, went well, session, branch, content]"""
EVERYTHING = ("**",)
_TEST_FILE = re.compile(r"(?:^|/)tests?/|(?:^|/)test_[^/]*$|[._]test\.|[._]spec\.|(?:^|/)specs?/")


class Asked:
    """One question, with everything it is asked about. `used`: the event that used up what was proven before."""

    def __init__(self, rule: Rule, facts: Doc, here: "Here", used: int = 0) -> None:
        self.rule, self.facts, self.project, self.now = rule, facts, here.project, here.now
        self.session = "" if rule.scope in ("branch", "permanent") else here.session
        self.asking, self.branch, self.used, self.content = here.session, here.branch, used, here.content

    def missing(self) -> str:
        """What is not proven, in words; empty when all of it is."""
        return next((why for one in self.rule.spec.evidence if (why := self._missing(one))), "")

    def proven(self) -> str:
        """In words: `proven`, and whose run it was where it was another session's."""
        whose = [fact[3] for one in self.rule.spec.evidence if (fact := self._proof(one))]
        theirs = sorted({alias(sid) for sid in whose if sid and sid != self.asking})
        return f"proven by session {', '.join(theirs)}" if theirs else "proven"

    def proved_other_content(self) -> bool:
        runs = [
            fact
            for one in self.rule.spec.evidence
            for fact in self._candidates(one)
            if not self._is_same_content(one, fact)
        ]
        return any(fact[2] > 0 and fact[3] == self.asking and _content(fact) for fact in runs)

    def changed_tests(self) -> list[str]:
        """Tests that were edited before the run that proves it: whether they still test the same, a person can say."""
        proofs = [fact for one in self.rule.spec.evidence if (fact := self._proof(one))]
        edits = self.facts.get("edits", {}).items()
        return [
            path.removeprefix(f"{self.project}/")
            for path, seq in edits
            if _TEST_FILE.search(path) and any(seq < p[0] for p in proofs)
        ]

    def latest(self) -> list[dict[str, Any]]:
        """For each part of it the newest fact: its event, its time, and whether it went well."""
        found = [self._newest(one) for one in self.rule.spec.evidence]
        return [{"seq": fact[0], "at": fact[1], "ok": fact[2] > 0} for fact in found if fact]

    def _missing(self, one: "Evidence") -> str:
        if self._proof(one):
            return ""
        what, newest = _described(one), self._newest(one)
        if newest is None or newest[0] <= self.used:
            return f"no {what} is on record"
        if newest[2] == 0:
            return f"the last {what} failed"
        if newest[2] < 0:
            return f"the last {what} proves nothing: {newest[6] if len(newest) > 6 else 'how it ended is not known'}"
        if self._is_too_old(one, newest):
            return f"the last {what} is older than {one.within} s"
        return (
            f"{self._change(one, newest)} changed after the last {what}"
            if self._knows(one, newest)
            else self._unknown(what)
        )

    def _unknown(self, what: str) -> str:
        return f"whether something changed since the last {what} is unknown"

    def _proof(self, one: "Evidence") -> Fact | None:
        """The newest run that counts. On the very same content anybody's does."""
        found = [
            fact
            for fact in self._candidates(one)
            if fact[2] > 0 and fact[0] > self.used and not self._is_too_old(one, fact)
        ]
        same = [fact for fact in found if self._is_same_content(one, fact)]
        own = [fact for fact in found if self._is_ours(fact) and not _content(fact) and not self._change(one, fact)]
        if self.content and any(map(_content, found)):
            own = []
        return max(same + own, default=None, key=lambda fact: fact[0])

    def _newest(self, one: "Evidence") -> Fact | None:
        found = self._candidates(one)
        ours = [fact for fact in found if self._is_ours(fact)]
        return max(ours or found, default=None, key=lambda fact: fact[0])

    def _is_too_old(self, one: "Evidence", fact: Fact) -> bool:
        return bool(one.within) and self.now - fact[1] > one.within * 1000

    def _is_same_content(self, one: "Evidence", fact: Fact) -> bool:
        key = _key(one)
        return bool(self.content.get(key)) and _content(fact).get(key) == self.content[key]

    def _knows(self, one: "Evidence", fact: Fact) -> bool:
        """Whether the contents can be compared, or neither was ever looked at and edits tell."""
        key = _key(one)
        return bool(self.content.get(key)) == bool(_content(fact).get(key)) or not _content(fact)

    def _candidates(self, one: "Evidence") -> list[Fact]:
        if one.command:
            ran = self.facts.get("ran", {})
            return [fact for command, fact in ran.items() if matches(command, one.command)]
        if one.skill:
            return self._skills(one.skill)
        if one.commit:
            return self._commits()
        run = self.facts.get("uat", {}).get(one.uat)
        return [[*run[:3], self.asking, self.branch, {}]] if run else []

    def _skills(self, names: tuple[str, ...]) -> list[Fact]:
        wanted = {name.lstrip("/").rpartition(":")[2] for name in names}
        found = self.facts.get("skills", {}).items()
        return [[*fact[:2], 1, *fact[2:4], {}] for name, fact in found if name.rpartition(":")[2] in wanted]

    def _commits(self) -> list[Fact]:
        made = self.facts.get("commits", {}).items()
        return [[*fact[:2], 1, sid, fact[-1], {}] for sid, fact in made]

    def _is_ours(self, fact: Fact) -> bool:
        """By this session, or, for what the whole branch shares, on this branch."""
        return bool(fact[3] == self.session if self.session else fact[4] == self.branch)

    def _change(self, one: "Evidence", fact: Fact) -> str:
        """What was edited after that run, as far as tool calls told."""
        since = fact[0]
        for path, seq in reversed(self.facts.get("edits", {}).items()):
            if seq > since and (path == SOMEWHERE or any_matches(one.after_edit, path, self.project)):
                return "a file" if path == SOMEWHERE else str(path.removeprefix(f"{self.project}/"))
        if self.facts.get("floor", 0) > since:
            return "too much"
        touched = self.facts.get("touched", {}).get(self.rule.name, -1)
        if touched >= since or (self.content and _content(fact)):
            return "a file it covers"
        return ""


def _key(one: "Evidence") -> str:
    return "" if one.after_edit == EVERYTHING else content_key(one.after_edit)


def _content(fact: Fact) -> dict[str, str]:
    return fact[5] if len(fact) > 5 and isinstance(fact[5], dict) else {}


def _described(one: "Evidence") -> str:
    if one.command:
        return f"`{' or '.join(one.command)}` that passed"
    if one.skill:
        return "run of " + " or ".join(f"/{name.lstrip('/')}" for name in one.skill)
    return "commit" if one.commit else f"UAT run of {one.uat}"


@lru_cache(8_000)
def matches(command: str, globs: tuple[str, ...]) -> bool:
    """A command as it was typed, and by its program's bare name."""
    name, _, rest = command.partition(" ")
    bare = f"{name.rpartition('/')[2]} {rest}".strip()
    texts = {command.replace(BLANK, " "), bare.replace(BLANK, " ")}
    return any(fnmatch.fnmatchcase(text, " ".join(glob.split())) for glob in globs for text in texts)


# ── a command that brings its own proof ──────────────────────────────────────────────────────────────────────────────


def proves_itself(rule: Rule, command: str) -> bool:
    """`pytest && git commit`: what it asks for is reached only where the proof passed in the same line, and nothing it
    covers is written there. A line that is the proof itself is never refused for want of it."""
    analysis = analyse_command(command, cwd=None)
    if analysis.problem:
        return False
    return all(one.command and _is_guarded(rule, one, analysis) for one in rule.spec.evidence)


def _is_guarded(rule: Rule, one: "Evidence", analysis: Analysis) -> bool:
    proofs = [c.invocation.index for c in analysis.commands if _is_proof(c, one)]
    acts = [c.invocation.index for c in analysis.commands if rule.is_about(reading_of(c))]
    if not proofs:
        return False
    if not acts:
        return all(_passed(path.ran, path.assumed, proofs) for path in analysis.paths if _may_succeed(path))
    reached = [path for path in analysis.paths if any(index in path.ran for index in acts)]
    return all(_passed(path.ran, path.assumed, proofs) for path in reached) and not any(
        path.outputs.keys() - {"terminal"} for path in reached
    )


def _is_proof(command: ShellCommand, one: "Evidence") -> bool:
    invocation = command.invocation
    real = (
        command.ran is not Ran.NO and not invocation.tampered and not invocation.shadowed and not invocation.background
    )
    return real and is_real_run(command.words) and matches(reading_of(command), one.command)


def _passed(ran: dict[int, bool], assumed: dict[int, int], proofs: list[int]) -> bool:
    return any(index in ran and assumed.get(index) == 0 for index in proofs)


def _may_succeed(path: Any) -> bool:
    status = path.status
    if status.kind == "of":
        path.assumed.setdefault(status.invocation, 0)
        return bool(path.assumed[status.invocation] == 0)
    return not (status.kind == "code" and status.code != 0)
