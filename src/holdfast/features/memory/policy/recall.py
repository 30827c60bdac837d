"""Stored memories and what comes next → the few that are told; stale, finished and momentary ones never. Pure."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.features.memory.state.documents import stem_word
from holdfast.features.memory.validity import Statement, superseded_by, valid_statements
from holdfast.features.memory.validity.expiry import end_of
from holdfast.features.memory.validity.parse import content_words
from holdfast.features.memory.validity.resolve import parse_date
from holdfast.features.memory.validity.tools import GROUP_OF
from holdfast.handover.summary import SessionEvent, Summary, build_summary
from holdfast.statements.cues import IMPERATIVE_START
from holdfast.statements.observe import load_classifier, observe_prompt, spans_of

# Words of software work by what they are about, so that "amount" finds the rule on money. Stems, English and a little more.

_GROUPS: dict[str, str] = {
    "money": ("money amount amounts price prices cent cents refund refunds payment pay fee fees invoice invoices total "
"totals currency decimal euro dollar discount discounts tax vat net gross cost balance charge billing "
"coupon preis betrag"),
    "tests": ("test tests testing pytest unittest vitest jest spec fixture fixtures mock mocks flaky assertion "
"coverage cassette cassettes e2e suite snapshot snapshots tdd prueba pruebas"),
    "docs": ("docs doc documentation readme page wiki handbook guide changelog tutorial docstring docstrings manual "
"article chapter spelling glossary"),
    "time": "date dates day time timestamp timestamps utc timezone zone calendar clock deadline due datum",
    "database": ("database db postgres mysql sqlite table tables column columns migration migrations schema index indexes "
"query queries sql view insert inserts row rows statement statements transaction orm pgbouncer "
"sqlalchemy relation relations join select record records lookup alembic backfill datenbank tabelle"),
    "orm": ("sqlalchemy orm lazy relation relations selectinload eager model models repository repositories "
"hibernate prisma query queries builder"),
    "auth": ("auth authentication login logout permission permissions role roles sso token tokens session sessions "
"password passwords oauth user-rights access group groups keycloak jwt"),
    "release": ("release releases push commit commits signed version versions tag tags deploy deploys deployment publish "
"hotfix rollout changelog ship pipeline bump"),
    "git": ("git commit commits push pushing pull branch branches merge merges rebase squash pr prs review approval "
"approvals signed main master develop"),
    "ui": ("ui page screen button banner header footer colour colours color colors css component components style "
"styling layout label labels font icon icons dialog form modal theme dark red green blue tooltip text "
"texts menu view width tailwind hex tokens navbar sidebar widget"),
    "texts": "text texts string strings translation translations i18n language wording label message banner title copy key",
    "storage": ("file files upload uploads download bucket s3 storage attachment attachments aws disk volume blob "
"presigned image images picture pictures"),
    "performance": ("slow faster speed performance latency p95 p50 p99 ms cache caching optimise optimize profile memory "
"bundle size budget kb gzipped throughput load transaction request requests seconds"),
    "bundle": "bundle chunk webpack vite icons moment lodash import imports size kb kilobyte minify entry",
    "network": "http retry retries request requests upstream gateway proxy websocket rest grpc rate limit callback webhook",
    "timeouts": "timeout timeouts times slow latency hang deadline",
    "jobs": "job jobs worker workers queue queues celery cron batch background scheduler task nightly async",
    "accessibility": "accessibility a11y axe label labels aria keyboard contrast screenreader interactive",
    "logging": "log logs logging logger trace tracing metrics monitoring alert alerts sentry print console structlog",
    "errors": "error errors exception exceptions problem+json status failure 404 409 500",
    "security": "secret secrets password passwords key keys vault encryption credentials token audit compliance gdpr privacy pii",
    "dependencies": ("dependency dependencies package packages library libraries npm pnpm yarn pip uv licence license upgrade "
"version install node"),
    "import": ("import importer imports export exporter csv xlsx parser parse supplier feed lieferant datei dateien "
"import-file file files encoding"),
    "infra": ("infra terraform docker compose kubernetes k8s container containers helm server servers cluster staging "
"production prod environment env port region runner runners ci"),
    "mobile": "mobile ios android app phone swift kotlin simulator emulator",
    "data": "data model models dataset training features pipeline etl warehouse analytics notebook plot",
    "deletion": "delete remove removed drop cleanup clean dead unused purge archive archived hard",
    "generated": "generated generate codegen openapi proto client clients schema sdk field fields",
}  # fmt: skip
CONCEPTS_OF: dict[str, set[str]] = {}
for _name, _words in _GROUPS.items():
    for _word in _words.split():
        # Stems, because `memory_words` gives stems; a name such as `problem+json` or `s3` stays as it is.
        CONCEPTS_OF.setdefault(stem_word(_word) if _word.isalpha() else _word, set()).add(_name)


def is_specific(concept: str, words: set[str]) -> bool:
    """Whether one of the words means this and nothing else."""
    return any(CONCEPTS_OF.get(word) == {concept} for word in words) or concept.startswith("tool:")


def concepts_of(words: set[str]) -> set[str]:
    concepts = {concept for word in words for concept in CONCEPTS_OF.get(word, ())}
    return concepts | {f"tool:{GROUP_OF[word]}" for word in words if word in GROUP_OF}


# At most so many with a prompt, twice as many at a start.
MOST_TOLD = 5
# Least probability that a stored statement lasts; least score at which a memory is told with a prompt.
LEAST_LASTING, LEAST_FIT = 0.65, 0.4
DONE_BELOW, REPEATED = 0.9, 0.8
"""A memory less certain than the first that repeats the task of a session to the second is that task, not knowledge."""
USER, AGENT, DEED = "user", "agent", "deed"
# The user goes on with earlier work, so that the last summary counts as part of the question.
_CONTINUES = re.compile(
    (
        r"\b(?:continue|go on|carry on|finish|back to|what was left|what's left|left|where were we|resume|start "
        r"with|let's start|still open|anything open|weiter|sigue|continúa|reprends|continua|продолж\w*)\b|继续|続き"
    ),
    re.IGNORECASE,
)
# A question that is answered in the chat: no memory of the project helps there.
_TALK = re.compile(
    (
        r"\b(?:just the \w+ (?:here )?in (?:the )?chat|what'?s \d|how many (?:bytes|seconds)|what does \w+ mean|"
        r"just a question|regex that)\b"
    ),
    re.IGNORECASE,
)
_WORK = re.compile(
    (
        r"\b(?:add|implement|write|fix|change|refactor|remove|make|build|create|run|test|update|rename|move|"
        r"finish|show|bring|start|speed|clean|convert|upgrade|merge|deploy|prepare|put|delete|füge|bau|lies|"
        r"reparier|mach)\b"
    ),
    re.IGNORECASE,
)
_ABOUT_AGENT = re.compile(
    (
        r"\b(?:answers?|antworten|respuestas?|réponses?|respostas?|reply|summary|summaries|explain|ask (?:me|"
        r"before)|tell me|commit messages?|i do the|you never|diffs?|in (?:english|german|french|spanish)|auf "
        r"(?:deutsch|englisch)|short|bullet)\b|回答|отвечай"
    ),
    re.IGNORECASE,
)
_HOW_TO_TEST = re.compile(
    r"\btests? (?:have to be|must be|are) run with\b|\brun (?:the )?tests? with\b|\bmake test\b", re.IGNORECASE
)
# The wording of `turn_rules.worked_otherwise`.
_COMMAND_LORE = re.compile(r"^`[^`]+` fails here; `[^`]+` works")
# "the audit is done": news that was true once and says nothing about later work.
_HAPPENED = re.compile(r"^\S+(?: \S+){0,3} (?:is|are) (?:out|done|over|released|merged|live)\W*$", re.IGNORECASE)


class Memory(msgspec.Struct, frozen=True):
    id: str
    text: str
    at: str = ""
    by: str = USER
    type: str = ""


class Next(msgspec.Struct, frozen=True):
    """`kind`: "start" (nothing asked yet) or "prompt"."""

    at: str
    kind: str = "prompt"
    prompt: str = ""


def select_memories(memories: Sequence[Memory], next_: Next, summary: Summary | None = None) -> list[str]:
    """Ids, the most fitting first."""
    goals = [content_words(goal) for goal in summary.goals] if summary else []
    holding = [m for m in still_valid(memories, next_.at) if not _repeats_task(m, goals)]
    if next_.kind == "start":
        # A repaired bug is of use only where a prompt is about it.
        return [m.id for m in holding if m.type != "bug_fix"][: 2 * MOST_TOLD]
    return [identity for identity, _ in rank_fitting(holding, next_.prompt, summary, memories)][:MOST_TOLD]


def rank_fitting(
    holding: Sequence[Memory], prompt: str, summary: Summary | None = None, corpus: Sequence[Memory] = ()
) -> list[tuple[str, float]]:
    """Ids with how well they fit, the best first; how rare a word is, is counted over `corpus`."""
    if _TALK.search(prompt) or not holding:
        return []
    question, everything = _build_question(prompt, summary), corpus or holding
    often = Counter(word for m in everything for word in memory_words(m.text))
    scored = [(m.id, _fit_score(m, prompt, question, often, len(everything))) for m in holding]
    return sorted((one for one in scored if one[1] >= LEAST_FIT), key=lambda one: (-one[1], one[0]))


@lru_cache(maxsize=2_000)
def memory_words(text: str) -> frozenset[str]:
    return frozenset(_with_parts(content_words(text)))


def still_valid(memories: Sequence[Memory], asked_at: str) -> list[Memory]:
    ordered = sorted(memories, key=lambda m: m.at)
    # A summary is no statement of the user: marked as a deed it neither replaces nor is replaced.
    ended = superseded_by([Statement(m.at, m.by if m.type != "session_summary" else DEED, m.text) for m in ordered])
    today = parse_date(asked_at)
    newest = max((m.at for m in ordered if m.type == "session_summary"), default="")
    valid = [m for n, m in enumerate(ordered) if n not in ended and _worth_telling(m) and not _has_ended(m, today)]
    return [m for m in valid if m.type != "session_summary" or m.at == newest]


def _worth_telling(memory: Memory) -> bool:
    if memory.by == AGENT or _HAPPENED.match(memory.text):
        return False
    if memory.by == DEED or _COMMAND_LORE.match(memory.text):
        return True
    return _lasting_probability(memory.text) >= LEAST_LASTING


def _lasting_probability(text: str) -> float:
    return max((load_classifier().probability(span.features) for span in spans_of(text)), default=0.0)


def _repeats_task(memory: Memory, goals: Sequence[set[str]]) -> bool:
    words = content_words(memory.text)
    repeated = any(len(words & goal) >= REPEATED * len(words) for goal in goals) if words else False
    return repeated and memory.by == USER and _lasting_probability(memory.text) < DONE_BELOW


def _has_ended(memory: Memory, today: object) -> bool:
    stated_on = parse_date(memory.at)
    until = end_of(memory.text, stated_on) if stated_on else None
    return until is not None and today is not None and until < today  # type: ignore[operator]


class _Question(msgspec.Struct, frozen=True):
    words: frozenset[str]
    concepts: frozenset[str]
    around: frozenset[str]
    around_concepts: frozenset[str]
    goes_on: bool


def _build_question(prompt: str, summary: Summary | None) -> _Question:
    """Who goes on with something also asks for what that was about."""
    words = _with_parts(content_words(prompt))
    goals = _with_parts(content_words(" ".join(summary.goals))) if summary else set()
    goes_on = bool(_CONTINUES.search(prompt)) or len((words & goals) - _COMMON) >= 1
    around = (
        goals | content_words(" ".join((*summary.open, *summary.next, *summary.outcome)))
        if summary and goes_on
        else set()
    )
    return _Question(
        frozenset(words), frozenset(concepts_of(words)), frozenset(around), frozenset(concepts_of(around)), goes_on
    )


def _with_parts(words: set[str]) -> set[str]:
    """The parts of a path or a compound name count as words, too."""
    return words | {part for word in words for part in re.split(r"[/._-]+", word) if len(part) > 2}


def _fit_score(memory: Memory, prompt: str, question: _Question, often: Counter[str], total: int) -> float:
    words = set(memory_words(memory.text))
    if not words:
        return 0.0
    if _always_of_use(memory, prompt):
        return 1.5
    asked_words = set(question.words)
    weight = {w: _word_weight(w, often, total) for w in words}
    direct = sum(weight[w] for w in words & question.words)
    around = sum(weight[w] for w in (words & question.around) - question.words)
    concepts = concepts_of(words)
    # A concept counts half where all its words also mean something else ("key", "view", "model").
    shared = sum(
        1.0 if is_specific(c, words) or is_specific(c, asked_words) else 0.5 for c in concepts & question.concepts
    )
    near = len((concepts & question.around_concepts) - question.concepts)
    # Concepts are capped at three each, so that a memory on many subjects does not win by that.
    fit = direct + 0.6 * around + 0.45 * min(shared, 3) + 0.2 * min(near, 3)
    return fit + (0.8 if memory.type == "session_summary" and question.goes_on else 0.0)


def _word_weight(word: str, often: Counter[str], total: int) -> float:
    # Between 0 and 1, whatever the size of the memory.
    rare = math.log(1 + total / (1 + often[word])) / math.log(1 + total)
    return (0.25 if word in _COMMON else 0.9) * (0.6 + 0.6 * rare)


_COMMON = frozenset(
    (
        "api test user file data code page run project repo service name new part thing client local field app "
        "list order time write add local locally"
    ).split()
)


def _always_of_use(memory: Memory, prompt: str) -> bool:
    """How this person wants the agent to work, wherever work is asked; how tests are run, wherever code is changed."""
    works = bool(_WORK.search(prompt) or IMPERATIVE_START.match(prompt))
    if memory.by == USER and memory.type == "preference" and _ABOUT_AGENT.search(memory.text):
        return works
    return works and bool(_HOW_TO_TEST.search(memory.text))


# One line of `holdfast memory explain`: what would be remembered, what holds, what would be told. By the code that runs live. Pure.

FORMS = '{"prompt", "context"}, {"statements": [{"at", "by", "text"}], "asked_at"} or {"events", "memories", "next"}'


class Row(msgspec.Struct):
    id: str | int | None = None
    prompt: str | None = None
    context: str | None = None
    statements: list[Statement] | None = None
    asked_at: str = ""
    events: list[SessionEvent] | None = None
    memories: list[Memory] = []
    next: Next | None = None


def explain_line(line: str | bytes) -> dict[str, Any]:
    """Always an answer: a line that is none of the three forms gives `error`."""
    try:
        row = msgspec.json.decode(line, type=Row)
    except msgspec.MsgspecError as error:
        return {"error": f"not a line of explain: {error}. One of: {FORMS}"}
    answer = _explain_row(row)
    return {"id": row.id, **answer} if row.id is not None else answer


def _explain_row(row: Row) -> dict[str, Any]:
    if row.prompt is not None:
        observations = observe_prompt(row.prompt, row.context or "")
        return {"remembered": [{"type": one.type, "text": one.text, "outcome": one.outcome} for one in observations]}
    if row.statements is not None:
        return {"valid": valid_statements(row.statements, row.asked_at)}
    if row.events is not None or row.next is not None:
        summary = build_summary(row.events or [])
        selected = select_memories(row.memories, row.next, summary) if row.next else []
        return {"told": selected, "summary": summary.as_text()}
    return {"error": f"nothing to explain in this line. One of: {FORMS}"}
