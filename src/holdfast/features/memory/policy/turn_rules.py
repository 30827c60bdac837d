"""What a finished turn teaches, by rules: no model, no tokens. Each rule is pure and gives candidates.

What was done: a failure that was repaired, a command that only worked another way, a choice. What the agent says it chose
and found out. What the user says, as `statements` reads it.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from holdfast.core.lazy import lazy_pattern
from holdfast.features.memory.state.documents import AGENT, DEED, USER, Act, Turn, files_in, one_line


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """`text` is what may be told to an agent; `detail` quotes tools and is only ever shown to those who ask."""

    type: str
    text: str
    origin: str
    importance: int
    evidence: tuple[int, ...]
    files: tuple[str, ...] = ()
    detail: str = ""
    uncertain: bool = False
    """A person decides first; until then it is told to nobody."""
    chance: float = 0.0
    """Of words of the user: how likely they outlast the task."""


# ── sentences ──

# In characters: shorter is no statement, longer is no single sentence.
SHORTEST, LONGEST = 12, 400
MOST_TAGS = 200
"""With more it is a page, not words."""
LOOKED_AT = 1200
"""Of a very long text only so much at each end: what lies between was pasted."""

# A fence that is never closed reaches to the end of the text.
_CODE = lazy_pattern(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
# An element with its content, as programs put them into a prompt.
_TAGGED = lazy_pattern(r"<(\w[\w-]*)\b[^>]*>.*?</\1\s*>", re.DOTALL)
# A sentence ends before a capital, a quote or a bracket, at line ends and at semicolons.
_END = lazy_pattern(r"(?<=[.!?])\s+(?=[A-Z\"'`(])|\n+|(?<=;)\s+")
# Lines of logs, tracebacks, tables, prompts of a shell, markup and JSON.
_PASTED = lazy_pattern(r"^\s*(>|\||[$#%]\s|at\s+\S+\(|File \"|Traceback|\d+\s*[|:]\s|<|\{|\})")


def split_sentences(text: str) -> Iterator[str]:
    own = _CODE.sub("\n", text)
    # The back-reference in `_TAGGED` costs quadratic time on a text full of unclosed tags.
    own = _TAGGED.sub("\n", own) if own.count("<") <= MOST_TAGS else ""
    if len(own) > 2 * LOOKED_AT:
        own = f"{own[:LOOKED_AT]}\n{own[-LOOKED_AT:]}"
    for piece in _END.split(own):
        if _PASTED.match(piece):
            continue
        words = " ".join(piece.split()).lstrip("-*• ")
        if SHORTEST <= len(words) <= LONGEST:
            yield words


# ── what was done ──

NEAR = 4
"""A variant that comes later than so many commands is another matter."""
SHOWN = 120
# Commands that look at something: a failing `grep` teaches nothing.
_DULL = lazy_pattern(r"^\s*(?:cd|ls|cat|grep|rg|find|echo|pwd|which|head|tail|sed|git (?:status|diff|log|show))\b")
_CHAINED = lazy_pattern(r"\s*(?:&&|;|\|\|)\s*")


def is_needed(acts: Sequence[Act], act: Act) -> bool:
    """Whether a rule below can still want this act. A turn in which nothing failed keeps next to nothing."""
    if act.action == "ask":
        return act.ok and bool(act.text)
    if act.action == "shell" and not act.ok and not _DULL.match(act.command):
        return True
    # Apart from questions every rule begins with a failed command.
    failed = [n for n, earlier in enumerate(acts) if earlier.action == "shell" and not earlier.ok]
    if not failed:
        return False
    since = acts[failed[-1] + 1 :]
    if act.action == "edit":
        # A second edit of the same file since the failure adds nothing to the candidate.
        return act.ok and not any(a.action == "edit" and a.paths == act.paths for a in since)
    near = sum(a.action == "shell" for a in since) < NEAR
    return near or any(_command_name(acts[n]) == _command_name(act) for n in failed)


def repaired_failures(acts: Sequence[Act]) -> Iterator[Candidate]:
    """It failed, files were changed, it passed."""
    done: set[str] = set()
    for at, act in enumerate(acts):
        if act.action != "shell" or act.ok or _command_name(act) in done or _DULL.match(act.command):
            continue
        # 0 for "never": the failed command itself comes before anything that can pass.
        passed = next((n for n in range(at + 1, len(acts)) if _same_passed(act, acts[n])), 0)
        edits = [a for a in acts[at:passed] if a.action == "edit" and a.ok]
        if passed and edits:
            done.add(_command_name(act))
            yield _bug_fix(act, edits, acts[passed])


def _same_passed(failed: Act, act: Act) -> bool:
    return act.action == "shell" and act.ok and _command_name(act) == _command_name(failed)


def _bug_fix(failed: Act, edits: Sequence[Act], passed: Act) -> Candidate:
    files = tuple(dict.fromkeys(path for edit in edits for path in edit.paths))[:5]
    short = ", ".join(path.rpartition("/")[2] for path in files)
    return Candidate(
        type="bug_fix", origin=DEED, importance=6, files=files,
        text=f"`{one_line(failed.command, SHOWN)}` failed and passes since {short or 'some files'} changed.",
        detail=one_line(failed.text, 300),
        evidence=(failed.seq, *(edit.seq for edit in edits[:5]), passed.seq),
    )  # fmt: skip


def worked_otherwise(acts: Sequence[Act]) -> Iterator[Candidate]:
    """A command failed, and a variant of it worked with no file changed between."""
    for at, act in enumerate(acts):
        if act.action != "shell" or act.ok or _DULL.match(act.command):
            continue
        later: list[Act] = []
        for other in acts[at + 1 :]:
            # After an edit the success may be due to the edit, which is `repaired_failures`.
            if other.action == "edit" or len(later) == NEAR:
                break
            if other.action == "shell":
                later.append(other)
        variant = next((o for o in later if o.ok and _is_variant(act.command, o.command)), None)
        # If the variant itself failed in between, it is flaky rather than the way that works.
        if variant and not any(not o.ok and o.command == variant.command for o in later):
            yield Candidate(
                type="gotcha", origin=DEED, importance=6, detail=one_line(act.text, 300),
                text=f"`{one_line(act.command, SHOWN)}` fails here; `{one_line(variant.command, SHOWN)}` works.",
                evidence=(act.seq, variant.seq), files=tuple(act.paths[:5]),
            )  # fmt: skip


def chosen_alternatives(acts: Sequence[Act]) -> Iterator[Candidate]:
    """The agent offered alternatives and the user took one."""
    for act in acts:
        if act.action == "ask" and act.ok and act.text:
            yield Candidate(
                type="decision", origin=USER, importance=8, text=f"Chosen by the user: {one_line(act.text, 300)}",
                evidence=(act.seq,),
            )  # fmt: skip


def _command_name(act: Act) -> str:
    """What a command is, without where it was run."""
    # "cd web && npm test" and "npm test" are the same command.
    parts = [p for p in _CHAINED.split(act.command) if p and not p.startswith(("cd ", "export "))]
    return " ".join(parts[-1].split()) if parts else act.command


def _is_variant(failed: str, passed: str) -> bool:
    one, other = set(failed.split()), set(passed.split())
    # At least a third of the words in common: "npm test" and "npm run test" are variants.
    return failed != passed and len(one & other) * 3 >= max(len(one), len(other))


# ── what the agent says ──

MOST_OF_AGENT = 3


def _any_word_pattern(*words: str) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(words) + r")\b", re.IGNORECASE)


# (type, importance, what a sentence of it holds); the first that matches wins.
BY_AGENT: tuple[tuple[str, int, re.Pattern[str]], ...] = (
    ("trade_off", 4, _any_word_pattern("trade-?offs?", "at the cost of", "in exchange for")),
    ("decision", 5, _any_word_pattern(r"(?:i|we) (?:chose|decided|went with|opted for|picked|settled on)", "rather than")),
    ("discovery", 4, _any_word_pattern(
        "root cause", "turns? out", "the (?:problem|issue|bug|cause) (?:was|is)",
        r"(?:i|we) (?:found|discovered|learned) that",
    )),
)  # fmt: skip


def by_agent(message: str, seq: int) -> Iterator[Candidate]:
    count = 0
    for words in split_sentences(message):
        typed = _match_type(words, BY_AGENT)
        if typed and count < MOST_OF_AGENT:
            count += 1
            yield _agent_candidate(typed, words, seq)


def _match_type(words: str, rules: tuple[tuple[str, int, re.Pattern[str]], ...]) -> tuple[str, int] | None:
    return next(((type_, weight) for type_, weight, rule in rules if rule.search(words)), None)


def _agent_candidate(typed: tuple[str, int], words: str, seq: int) -> Candidate:
    files = tuple(files_in(words)[:5])
    return Candidate(
        type=typed[0], importance=typed[1], text=words, origin=AGENT, evidence=(seq,) if seq else (), files=files
    )


IMPORTANCE = {"decision": 8, "rule": 8, "preference": 7, "gotcha": 7, "fact": 7, "trade_off": 6}


def said_by_user(turn: Turn) -> Iterator[Candidate]:
    from holdfast.statements.observe import KEPT, observe_prompt

    evidence = (turn.prompt_seq,) if turn.prompt_seq else ()
    for one in observe_prompt(turn.prompt, turn.context):
        yield Candidate(
            type=one.type, text=one_line(one.text), origin=USER, importance=IMPORTANCE[one.type], evidence=evidence,
            files=tuple(files_in(one.text)[:5]), uncertain=one.outcome != KEPT, chance=one.probability,
        )  # fmt: skip
