"""Runs on record, and whether one of them proves what a requirement asks for; nobody's word counts."""

import fnmatch
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from holdfast.core.document import with_newest, without_keys
from holdfast.core.event import Event
from holdfast.core.fingerprint import content_key
from holdfast.core.globs import any_matches
from holdfast.core.ids import session_alias
from holdfast.core.kinds import ToolEndPayload, ToolPayload
from holdfast.core.kinds.check_events import CheckFinished
from holdfast.core.kinds.gates_events import GatesLooked, GatesMeasured
from holdfast.core.kinds.session_events import ToolExitRead
from holdfast.core.shell.acts import BLANK
from holdfast.core.shell.analysis import Analysis, Ran, ShellCommand, analyse_command, remember_by_text
from holdfast.core.shell.written_files import WHOLE_TREE, put_back_after, written_after
from holdfast.features.gates.events import UAT
from holdfast.features.gates.triggers import Rule

if TYPE_CHECKING:
    from holdfast.features.gates.requirements import Here
    from holdfast.features.gates.settings import Evidence

replace = msgspec.structs.replace
MOST_EDITS, MOST_COMMANDS, MOST_SKILLS, MOST_COMMITS, MOST_RUNS, MOST_SIZES = 60, 40, 30, 20, 30, 20
LONGEST_COMMAND = 400
SOMEWHERE = "*"
"""Stands for an edit whose files the agent did not name: it may be any file."""
MOST_PROGRAMS, MOST_READINGS, MOST_CHANGED = 12, 3, 20
_QUIET_MAKE = re.compile(r"^(?:-s|-j\d*|--silent|--no-print-directory|-w)$")
_COPIES = re.compile(r"^(?:cp|rsync|mktemp|tar|git clone|git worktree|git archive)(?: |$)")
_LOOKS_ONLY = frozenset(
    "ls cat head tail grep rg find fd cd echo pwd wc which sleep tree stat file env date whoami jq less awk true holdfast sed sort".split()
)
_GIT_LOOKS = frozenset("status log diff show branch rev-parse fetch stash blame grep ls-files remote config".split())
_RUNS_NOTHING = frozenset(
    "--version --help -h --collect-only --co --setup-plan --fixtures --markers --dry-run --listTests --list-tests --just-print".split()
)


class RunFact(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A command, a commit, a skill or a scenario that ran."""

    seq: int
    at: int
    outcome: int = 1
    """1: it passed · 0: it failed · -1: it proves nothing, `why` says why."""
    session: str = ""
    branch: str = ""
    content: dict[str, str] = {}
    """Fingerprints of what it ran on, by what they cover."""
    why: str = ""
    changed_after: list[str] = []
    """Files that the same command wrote after it: what they held when it ran is not known."""
    put_back: list[str] = []
    """Those that it wrote before as well: the run saw them as they no longer are."""

    @property
    def passed(self) -> bool:
        return self.outcome > 0


class BranchLines(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    lines: int = 0
    base: str = ""
    at: int = 0


class CoveredFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What the files that a requirement covers looked like, and up to which event that was."""

    digest: str
    as_of: int


class Facts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is on record of one project."""

    project: str = ""
    at: int = 0
    edits: dict[str, int] = {}
    floor: int = 0
    """Edits up to this event were too many to remember."""
    ran: dict[str, RunFact] = {}
    skills: dict[str, RunFact] = {}
    commits: dict[str, RunFact] = {}
    """By session."""
    uat: dict[str, RunFact] = {}
    sizes: dict[str, BranchLines] = {}
    """By branch."""
    seen: dict[str, CoveredFiles] = {}
    touched: dict[str, int] = {}
    """Requirement → up to which event its facts are older than a change no tool told us of."""
    missing: list[str] = []
    """Skills that requirements name and nobody has."""


NO_FACTS = Facts()


def reduce_facts(doc: Facts | None, event: Event) -> Facts | None:
    data, doc = event.data, doc or Facts(project=event.project)
    if isinstance(data, ToolPayload):
        return None if data.claimed else with_tool(doc, event, data)
    if isinstance(data, ToolExitRead):
        return with_run(doc, event, data) if data.action == "shell" and data.command else None
    if isinstance(data, CheckFinished):
        return with_check(doc, event, data)
    if isinstance(data, GatesMeasured):
        return with_measure(doc, event, data)
    if isinstance(data, GatesLooked):
        return replace(doc, missing=data.missing[:50], at=event.at)
    return with_uat(doc, event) if event.kind in UAT else None


def with_tool(doc: Facts, event: Event, data: ToolPayload) -> Facts | None:
    ended = data if isinstance(data, ToolEndPayload) else ToolEndPayload()
    if data.action == "edit" and event.kind == "tool.finished":
        return _add_edits(doc, event, data)
    if data.action == "shell" and data.command:
        updated = with_run(doc, event, ended)
        return _add_edits(updated or doc, event, data) if data.written else updated
    if data.action in ("mcp", "other") and data.written:
        return _add_edits(doc, event, data)
    if data.action == "skill" and data.skill and ended.ok is not False:
        ran = RunFact(seq=event.seq, at=event.at, session=event.session, branch=data.branch)
        return replace(doc, skills=with_newest(doc.skills, data.skill, ran, MOST_SKILLS), at=event.at)
    return None


def _add_edits(doc: Facts, event: Event, data: ToolPayload) -> Facts:
    edits, floor = doc.edits, doc.floor
    for path in data.written or data.paths or (SOMEWHERE,):
        edits = with_newest(edits, path, event.seq, MOST_EDITS + 1)
        if len(edits) > MOST_EDITS:
            oldest = next(iter(edits))
            floor = edits[oldest]
            edits = without_keys(edits, [oldest])
    return replace(doc, edits=edits, floor=floor, at=event.at)


def with_run(doc: Facts, event: Event, data: ToolEndPayload | ToolExitRead) -> Facts | None:
    """A command without an exit code (still running, interrupted) is no fact at all.

    One whose exit code was found out later is a fact of the moment when it ended: what was edited since makes it stale.
    """
    code, ended = data.exit_code, data if isinstance(data, ToolEndPayload) else ToolEndPayload()
    if code is None or ended.detached or ended.interrupted:
        return None
    if only_looks(data.command):
        return None
    seq = data.of if isinstance(data, ToolExitRead) else event.seq
    analysis = analyse_command(data.command, code, ended.output, cwd=None)
    ran, made = doc.ran, doc.commits
    for command in analysis.commands[:MOST_PROGRAMS]:
        outcome = _run_outcome(command, code, len(analysis.commands) == 1)
        if outcome is None:
            continue
        changed, back = _changed_after(analysis, command)
        fact = RunFact(seq=seq, at=event.at, outcome=outcome, session=event.session, branch=data.branch,
                       content=dict(ended.content), changed_after=changed, put_back=back)  # fmt: skip
        ran = _with_latest(ran, reading_of(command)[:LONGEST_COMMAND], fact, MOST_COMMANDS)
        if outcome == 1 and reading_of(command).startswith("git commit"):
            made = _with_latest(made, event.session, replace(fact, content={}), MOST_COMMITS)
    return None if ran is doc.ran else replace(doc, ran=ran, commits=made, at=event.at)


def _changed_after(analysis: Analysis, command: ShellCommand) -> tuple[list[str], list[str]]:
    """Files that it wrote after that program, and those of them that it wrote before too."""
    index = command.invocation.index
    return written_after(analysis, index)[:MOST_CHANGED], put_back_after(analysis, index)[:MOST_CHANGED]


def _run_outcome(command: ShellCommand, code: int, alone: bool) -> int | None:
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
    return not (name in ("make", "gmake") and any(re.match(r"^-[BbdeikLmprRsStvw]*[nq]", word) for word in words[1:]))


_MAY_ACT = {
    "awk": re.compile(r"[>|]|system|getline|^-f|inplace"),
    "sed": re.compile(r"^-[a-zA-Z]*[if]|^--(?:in-place|file)|(?:^|[;\n{}/$gp\d])\s*[we](?:\s|$)|/\w*[we]\w*$"),
    "find": re.compile(r"^-(?:exec|ok|delete|fprint|fls)"),
    "sort": re.compile(r"^-[a-zA-Z]*o|^--(?:output|compress-program)"),
    "env": re.compile(r"^[^-=]+$"),
    "fd": re.compile(r"^(?:-[xX]|--exec)"),
}
"""Programs that mostly look, and the word by which they may do more."""


@remember_by_text
def only_looks(command: str) -> bool:
    """Nothing of it can have changed a file or a branch."""
    analysis = analyse_command(command, cwd=None)
    if analysis.problem or analysis.run_later or analysis.sourced:
        return False
    return not any(is_real_run(one.words) or one.invocation.writes or _may_act(one.words) for one in analysis.commands)


def _may_act(words: list[str]) -> bool:
    pattern = _MAY_ACT.get(words[0].rpartition("/")[2])
    return pattern is not None and any(pattern.search(word) for word in words[1:])


def is_named_by(rule: Rule, command: str) -> bool:
    """Whether a program of the command is what the rule takes for proof, be it a check tool or any script."""
    globs = tuple(glob for one in rule.spec.evidence for glob in one.command or ())
    commands = analyse_command(command, cwd=None).commands if globs else ()
    return any(command_matches(reading_of(one), globs) for one in commands if is_real_run(one.words))


def reading_of(command: ShellCommand) -> str:
    """Its words in one line; options between `git` and its verb are left out."""
    return " ".join(reading_words(command.words))


def reading_words(raw_words: list[str]) -> list[str]:
    words = [_one_word(word) for word in raw_words]
    words[0] = words[0].rpartition("/")[2] or words[0]
    if words[0] == "git":
        at = 1
        while at < len(words) and words[at].startswith("-"):
            at += 2 if words[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1
        words = ["git", *words[at:]]
    if words[0] in ("make", "gmake"):
        words = ["make", *(word for word in words[1:] if not _QUIET_MAKE.match(word))]
    return words


def _one_word(word: str) -> str:
    return "".join(BLANK if c.isspace() else c for c in word)


def with_check(doc: Facts, event: Event, check: CheckFinished) -> Facts:
    """What was found out about a check goes before what its exit code alone says."""
    if check.verdict == "unknown" and (check.presumed or _is_plain_entry(check)):
        return doc  # A script that nobody knows more of: how it ended is what the rule asked for.
    readings = _readings_of(check)
    analysis = analyse_command(check.command, cwd=None)
    verdict = {"passed": 1, "failed": 0}.get(check.verdict, -1)
    copied = check.dir == "?" and any(_COPIES.match(reading_of(one)) for one in analysis.commands)
    ran = {command: fact for command, fact in doc.ran.items() if fact.seq != check.of or command not in readings}
    changed, back = _changed_after_check(analysis, check)
    fact = RunFact(
        seq=check.of, at=event.at, outcome=-1 if copied else verdict, session=event.session,
        branch=check.branch, content=dict(check.content), why=COPIED if copied else check.why,
        changed_after=changed, put_back=back,
    )  # fmt: skip
    for reading in readings:
        ran = with_newest(ran, reading[:LONGEST_COMMAND], fact, MOST_COMMANDS)
    return replace(doc, ran=ran, at=event.at)


_PLAIN_MAKE = re.compile(r"make(?: -s| -j ?\d*| --silent| --no-print-directory)*(?: [\w./][\w./-]*)+$")


def _is_plain_entry(check: CheckFinished) -> bool:
    """`make test` of a project whose tests print no summary, without options that change what its status means."""
    commands = analyse_command(check.command, cwd=None).commands
    named = [one for one in commands if reading_words(one.words)[:1] == ["make"]]
    plain = all(
        _PLAIN_MAKE.match(" ".join(one.words)) and "MAKEFLAGS" not in one.invocation.environment for one in named
    )
    return check.why.endswith(NO_SUMMARY) and bool(named) and plain


NO_SUMMARY = "shows no summary of a test run"
COPIED = "it ran in a copy of the project"


def _changed_after_check(analysis: Analysis, check: CheckFinished) -> tuple[list[str], list[str]]:
    if check.verdict != "passed" or (len(analysis.commands) == 1 and not analysis.redirected):
        return [], []
    named = [one for one in analysis.commands if check.runner in (word.rpartition("/")[2] for word in one.words)]
    last = (named or [one for one in analysis.commands if is_real_run(one.words)] or analysis.commands)[-1:]
    return _changed_after(analysis, last[0]) if last else ([], [])


def _readings_of(check: CheckFinished) -> list[str]:
    """How rules may name it: the program that was typed, and the tool that it came down to (`python -m pytest`)."""
    commands = [
        reading_words(one.words) for one in analyse_command(check.command, cwd=None).commands if is_real_run(one.words)
    ]
    named = [words for words in commands if check.runner in (word.rpartition("/")[2] for word in words)]
    shown = [" ".join(words) for words in named or commands]
    return list(dict.fromkeys([*shown[:MOST_READINGS], " ".join([check.runner, *map(_one_word, check.operands)])]))


def _with_latest(runs: dict[str, RunFact], name: str, fact: RunFact, most: int) -> dict[str, RunFact]:
    """Of two exit codes that were found out later, the one of the earlier command may come last."""
    return runs if name in runs and runs[name].seq > fact.seq else with_newest(runs, name, fact, most)


def with_uat(doc: Facts, event: Event) -> Facts | None:
    """Of any tool that reports scenarios: what it calls them and their outcome differs."""
    scenario = event.get("scenario") or event.get("name")
    if not isinstance(scenario, str):
        return None
    outcome = event.get("outcome") or event.get("status") or event.get("verdict")
    passed = outcome in ("passed", "pass", "success")
    fact = RunFact(seq=event.seq, at=event.at, outcome=int(passed), session=event.session)
    return replace(doc, uat=with_newest(doc.uat, scenario[:200], fact, MOST_RUNS), at=event.at)


def with_measure(doc: Facts, event: Event, data: GatesMeasured) -> Facts:
    seen, touched = {}, dict(doc.touched)
    for name, digest in data.covers.items():
        seen[name] = CoveredFiles(digest=digest, as_of=data.as_of)
        if name in doc.seen and doc.seen[name].digest != digest:
            touched[name] = doc.seen[name].as_of
    size = BranchLines(lines=data.lines, base=data.base, at=event.at)
    touched = {name: seq for name, seq in touched.items() if name in seen}
    sizes = with_newest(doc.sizes, data.branch, size, MOST_SIZES)
    return replace(doc, sizes=sizes, seen=seen, touched=touched, at=event.at)


EVERYTHING = ("**",)
_REPORT = re.compile(r"\.(?:txt|log|xml|json|html|out|csv|tap|lcov|info)$|/[^./]+$")
"""What people write beside a run: no source."""
_TEST_FILE = re.compile(r"(?:^|/)tests?/|(?:^|/)test_[^/]*$|[._]test\.|[._]spec\.|(?:^|/)specs?/")


class Asked:
    """One question, with everything it is asked about. `used`: the event that used up what was proven before;
    `content_at`: when the content was last known."""

    def __init__(self, rule: Rule, facts: Facts, here: "Here", used: int = 0, content_at: int = 0) -> None:
        self.content_at = content_at
        self.rule, self.facts, self.project, self.now = rule, facts, here.project, here.now
        self.session = "" if rule.scope in ("branch", "permanent") else here.session
        self.asking, self.branch, self.used, self.content = here.session, here.branch, used, here.content

    def missing(self) -> str:
        """What is not proven, in words; empty when all of it is."""
        return next((why for one in self.rule.spec.evidence if (why := self._missing(one))), "")

    def proven(self) -> str:
        """In words: `proven`, and whose run it was where it was another session's."""
        whose = [fact.session for one in self.rule.spec.evidence if (fact := self._proof(one))]
        theirs = sorted({session_alias(sid) for sid in whose if sid and sid != self.asking})
        return f"proven by session {', '.join(theirs)}" if theirs else "proven"

    def proved_other_content(self) -> bool:
        every = ((one, fact) for one in self.rule.spec.evidence for fact in self._candidates(one))
        runs = [fact for one, fact in every if not self._is_same_content(one, fact)]
        return any(fact.passed and fact.session == self.asking and fact.content for fact in runs)

    def changed_tests(self) -> list[str]:
        """Tests that were edited before the run that proves it: whether they still test the same, a person can say."""
        proofs = [fact for one in self.rule.spec.evidence if (fact := self._proof(one))]
        return [
            path.removeprefix(f"{self.project}/")
            for path, seq in self.facts.edits.items()
            if _TEST_FILE.search(path) and any(seq <= proof.seq for proof in proofs)
        ]

    def latest(self) -> list[RunFact]:
        """For each part of it the newest fact."""
        return [fact for one in self.rule.spec.evidence if (fact := self._newest(one))]

    def _missing(self, one: "Evidence") -> str:
        if self._proof(one):
            return ""
        what, newest = _describe_evidence(one), self._newest(one)
        if newest is None or newest.seq <= self.used:
            return f"no {what} is on record"
        if newest.outcome == 0:
            return f"the last {_describe_evidence(one, '')} failed"
        if newest.outcome < 0:
            return f"the last {_describe_evidence(one, '')} proves nothing: {newest.why or 'how it ended is not known'}"
        if changed := self._undone(one, newest):
            return f"{changed} was changed after the last {what}, in the same command"
        if self._is_too_old(one, newest):
            return f"the last {what} is older than {one.within} s"
        return (
            f"{self._change(one, newest)} changed after the last {what}"
            if self._knows(one, newest)
            else self._unknown(what)
        )

    def _unknown(self, what: str) -> str:
        ago = max(0, self.now - self.content_at) // 1000
        since = f", since {ago} s ago" if self.content_at else ""
        return f"whether something changed since the last {what} is unknown{since}: the files could not be read in time"

    def _proof(self, one: "Evidence") -> RunFact | None:
        """The newest run that counts. On the very same content anybody's does."""
        candidates = [
            fact
            for fact in self._candidates(one)
            if fact.passed and fact.seq > self.used and not self._is_too_old(one, fact) and not self._undone(one, fact)
        ]
        same = [fact for fact in candidates if self._is_same_content(one, fact)]
        own = [fact for fact in candidates if self._is_ours(fact) and not fact.content and not self._change(one, fact)]
        if self.content and any(fact.content for fact in candidates):
            own = []
        return max(same + own, default=None, key=lambda fact: fact.seq)

    def _newest(self, one: "Evidence") -> RunFact | None:
        candidates = self._candidates(one)
        ours = [fact for fact in candidates if self._is_ours(fact)]
        return max(ours or candidates, default=None, key=lambda fact: fact.seq)

    def _is_too_old(self, one: "Evidence", fact: RunFact) -> bool:
        return bool(one.within) and self.now - fact.at > one.within * 1000

    def _undone(self, one: "Evidence", fact: RunFact) -> str:
        """A file it covers that the very command changed after the run: `echo fix >> f; pytest; git checkout f`."""
        if WHOLE_TREE in fact.changed_after:
            return "the worktree"
        root = f"{self.project}/"
        full = {name: name if name.startswith("/") else root + name.removeprefix("./") for name in fact.changed_after}
        inside = [(name, path) for name, path in full.items() if path.startswith(root)]
        # A test that was swapped for the run undoes it too, whatever files the rule covers.
        covered = (p for n, p in inside if n in fact.put_back or any_matches(one.after_edit, p, self.project))
        return next((path.removeprefix(root) for path in covered if not _REPORT.search(path)), "")

    def _is_same_content(self, one: "Evidence", fact: RunFact) -> bool:
        key = _evidence_key(one)
        return bool(self.content.get(key)) and fact.content.get(key) == self.content[key]

    def _knows(self, one: "Evidence", fact: RunFact) -> bool:
        """Whether the contents can be compared, or neither was ever looked at and edits tell."""
        key = _evidence_key(one)
        return bool(self.content.get(key)) == bool(fact.content.get(key)) or not fact.content

    def _candidates(self, one: "Evidence") -> list[RunFact]:
        if one.command:
            return [fact for command, fact in self.facts.ran.items() if command_matches(command, one.command)]
        if one.skill:
            return self._skills(one.skill)
        if one.commit:
            return [*self.facts.commits.values()]
        run = self.facts.uat.get(one.uat)
        return [replace(run, session=self.asking, branch=self.branch)] if run else []

    def _skills(self, names: tuple[str, ...]) -> list[RunFact]:
        skill_names = {name.lstrip("/").rpartition(":")[2] for name in names}
        return [fact for name, fact in self.facts.skills.items() if name.rpartition(":")[2] in skill_names]

    def _is_ours(self, fact: RunFact) -> bool:
        """By this session, or, for what the whole branch shares, on this branch."""
        return fact.session == self.session if self.session else fact.branch == self.branch

    def _change(self, one: "Evidence", fact: RunFact) -> str:
        """What was edited after that run, as far as tool calls told."""
        since = fact.seq
        for path, seq in reversed(self.facts.edits.items()):
            if seq > since and (path == SOMEWHERE or any_matches(one.after_edit, path, self.project)):
                return "a file" if path == SOMEWHERE else path.removeprefix(f"{self.project}/")
        if self.facts.floor > since:
            return "too much"
        touched = self.facts.touched.get(self.rule.name, -1)
        if touched >= since or (self.content and fact.content):
            return "a file it covers"
        return ""


def _evidence_key(one: "Evidence") -> str:
    return "" if one.after_edit == EVERYTHING else content_key(one.after_edit)


def _describe_evidence(one: "Evidence", how: str = " that passed") -> str:
    if one.command:
        return f"`{' or '.join(one.command)}`{how}"
    if one.skill:
        return "run of " + " or ".join(f"/{name.lstrip('/')}" for name in one.skill)
    return "commit" if one.commit else f"UAT run of {one.uat}"


@lru_cache(8_000)
def command_matches(command: str, globs: tuple[str, ...]) -> bool:
    """A command as it was typed, and by its program's bare name."""
    name, _, rest = command.partition(" ")
    bare = f"{name.rpartition('/')[2]} {rest}".strip()
    texts = {command.replace(BLANK, " "), bare.replace(BLANK, " ")}
    return any(fnmatch.fnmatchcase(text, " ".join(glob.split())) for glob in globs for text in texts)
