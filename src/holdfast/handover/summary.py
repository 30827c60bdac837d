"""Events of a session → its summary: goal, outcome, what failed, what is open, the next step in the words it was said in. Pure.

Nothing is claimed that the runs contradict: an agent's "all green" after a failed check is left out."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from holdfast.handover.runs import (
    CommandRun,
    command_runs,
    failing_runs,
    is_same_act,
    reverted_paths,
    working_runs,
)
from holdfast.statements.cues import IMPERATIVE_START
from holdfast.statements.observe import FUNCTION_WORDS, KEPT, observe_prompt
from holdfast.statements.segments import split_prompt, split_sentences

# Stems that two lines must share to speak of one thing.
ONE_SUBJECT = 2
# Prompts, lines of one kind, characters of a line.
MOST_GOALS, MOST_LINES, LONGEST_LINE = 5, 6, 220
# Words of an answer that say something is not done.
_OPEN = re.compile(
    r"\b(?:left|still|remain\w*|not (?:started|done|yet|included|covered|tested)|haven'?t|hasn'?t|isn'?t "
    r"(?:done|started|there|signed)|can'?t|couldn'?t|could not|won'?t|stub|missing|todo|to do|pending|waiting|"
    r"blocked|next (?:big )?part|without|"
    r"refused|fails?|failing|unclear|doesn'?t say|offen|fehlt|noch|queda[n]?|falta[n]?|reste|manque|faltan?|"
    r"осталось|ещё)\b|还|没|残り|まだ",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"\b(?:tomorrow|tonight|later|another day|next (?:time|week|session|sprint)|monday|tuesday|wednesday|"
    r"thursday|friday|not now|until then|afterwards|leave (?:it|the|that)|for another|some other|morgen|"
    r"später|mañana|luego|demain|plus tard|amanhã|depois|"
    r"завтра|потом)\b|明天|以后再|明日|あとで",
    re.IGNORECASE,
)
# Words of the last prompt that name what comes next.
_NEXT = re.compile(
    r"\b(?:next(?: step| up| time)?|then|start with|begin with|continue with|go on with|first|after that|"
    r"tomorrow|nächster schritt|als nächstes|morgen|siguiente|primero|mañana|ensuite|d'abord|prochaine|demain|"
    r"próximo|primeiro|amanhã|дальше|сначала|завтра)\b|下一步|明天|次は|明日",
    re.IGNORECASE,
)
# A prompt, or a part of it, that begins with the next step.
_STEP = re.compile(rf"^\W*(?:ok(?:ay)?[,.]? |and |und |y |et )?{_NEXT.pattern}", re.IGNORECASE)
# Words with which an agent claims success: dropped where a run still fails.
_CLAIM = re.compile(
    r"\b(?:fixed|green|pass(?:es|ed|ing)?|works?|working|done|all good|complete[d]?|resolved|finished|solved|"
    r"behoben|grün|läuft|fertig|arreglad\w+|funciona|corrigé\w*|marche|funciona|pronto|исправлен\w*|"
    r"работает)\b|修好|通过|直り",
    re.IGNORECASE,
)
_CHAT = re.compile(
    r"^(?:ok(?:ay)?|yes|no|hi|hello|hey|thanks?|thx|good|great|fine|cool|right|ah nothing\b.*|sure|go on|"
    r"continue|good plan|perfect|danke|gut|ja|nein)[\s.,!]*$",
    re.IGNORECASE,
)
# "stop, wrong file": steers what is being done, and is no goal of its own.
_STEERS = re.compile(r"^(?:stop|wait|hold on|halt|warte|espera|attends|подожди)\b.{0,40}$", re.IGNORECASE)
_EMPTY_ANSWER = re.compile(r"^(?:ok(?:ay)?|done|sure|hello!?.*\?|alright|understood|gut|fertig)[.!\s]*$", re.IGNORECASE)
_TAKES_BACK = re.compile(
    r"\b(?:put .* back|back!|undo|revert|restore|take .* back|throw (?:it|that) away|wrong|not what|don'?t|"
    r"not passing|no,|stop|zurück|deshaz|annule|desfaz|верни)\b|!$|还原|戻して",
    re.IGNORECASE,
)
# A prompt that says the last answer is not true: it did not work.
_DENIES = re.compile(
    r"^\W*(?:no+|nope|nein|nee|non|não|нет)\b[,.!: ]|\b(?:still (?:the same|not|fails?|broken|crash\w*|happen\w*|there|wrong|get\w*|see\w*|"
    r"two|three|double|nothing)|same (?:error|problem|thing)|(?:doesn'?t|does not|didn'?t) (?:work|help)|not fixed|isn'?t fixed|immer noch|"
    r"geht nicht|sigue (?:igual|sin|fallando)|"
    r"no funciona|toujours pas|marche pas|continua (?:igual|sem)|não funciona|всё ещё|не работает)\b|还是|没用|まだ",
    re.IGNORECASE,
)
# A prompt that picks an option by its number.
_CHOICE = re.compile(r"^\s*(?:option |number |nr\.? ?|#)?(\d)\b[.,:)]?\s*(.*)$", re.IGNORECASE | re.DOTALL)
# The options of a list in an answer: number, then the text up to the next number.
_OPTION = re.compile(r"(?:^|[\s,;:])\(?(\d)[).:]\s*([^0-9\n].*?)(?=(?:[,;]?\s+\(?\d[).:]\s)|\n|$)", re.DOTALL)
# A full stop behind a word is not part of it; one inside of it is ("calc.py").
_WORD = re.compile(r"\w[\w.-]{2,}\w")
_NEXT_WORDS = (
    r"next(?: steps?| up)?|(?:als )?nächste[rs]?(?: schritte?)?|siguiente(?: paso)?|prochaine(?: étape)?|próximo(?: passo)?|"
    r"следующий(?: шаг)?|дальше|下一步|次は?"
)
# What an answer or a prompt puts before its list; the line has a name of its own.
_LABEL = re.compile(
    r"^\W*(?:(?:left|still) open|open(?: points?)?|remaining|to-?do|to do|noch offen|offen|pendiente|reste à faire|pendente|осталось|"
    rf"{_NEXT_WORDS})\s*[:：]\s*",
    re.IGNORECASE,
)
_POLITE_WORDS = frozenset("sorry sure okay right thanks noted understood could would well good great fine.".split())
# How an agent names the next step, in its own words.
_AGENTS_NEXT = re.compile(rf"^(?:{_NEXT_WORDS})\s*[:：]\s*", re.IGNORECASE)


class SessionEvent(msgspec.Struct, frozen=True):
    """`kind`: prompt, answer, command, edit, note, check (a judged run), commit, refused (by a gate)."""

    kind: str
    text: str = ""
    command: str = ""
    exit: int | None = None
    output: str = ""
    path: str = ""
    of: int = 0
    """The call that a check belongs to."""


class Summary(msgspec.Struct, frozen=True):
    goals: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()
    proven: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """By a gate, and not done since."""
    open: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()

    def as_text(self) -> str:
        named = (
            ("Goal", self.goals, "; then: "), ("Outcome", self.outcome, " "), ("Proven by", self.proven, "; "),
            ("Failing", self.failing, "; "), ("Refused by a gate, not done since", self.refused, "; "), ("Open", self.open, "; "),
            ("Next", self.next, "; "), ("Decided", self.decided, "; "), ("Commands that work", self.commands, ", "),
            ("Files", self.files, ", "), ("Commits", self.commits, ", "),
        )  # fmt: skip
        return "\n".join(f"{name}: {glue.join(values)}" for name, values, glue in named if values)

    def as_line(self) -> str:
        """The part that matters for going on, on one line: what comes next before what was."""
        outcome = tuple(line for line in self.outcome if line not in self.open)
        named = (("Goal", self.goals[:2], 110), ("Next", self.next, 130), ("Open", self.open, 130),
                 ("Failing", self.failing, 120), ("Outcome", outcome, 160))  # fmt: skip
        return " ".join(f"{name}: {_shorten_line(_as_list(values), most)}" for name, values, most in named if values)


_PART = re.compile(r"(?:^| )(Goal|Next|Open|Failing|Outcome): ")


@lru_cache(maxsize=500)
def is_settled(line: str, newer: str) -> bool:
    """Whether a newer summary speaks of what an older one (both by `as_line`) left open or failing: then the older one is out of date."""
    parts = _PART.split(line)[1:]
    left = " ".join(
        text for name, text in zip(parts[::2], parts[1::2], strict=False) if name in ("Next", "Open", "Failing")
    )
    commands = re.findall(r"`([^`]+)`", left)
    stems, newer_stems = _stems(left), _stems(newer)
    return any(command in newer for command in commands) or len(stems & newer_stems) >= ONE_SUBJECT


def _stems(text: str) -> set[str]:
    return {word[:5] for word in _WORD.findall(text.lower()) if word not in FUNCTION_WORDS}


def build_summary(events: Sequence[SessionEvent]) -> Summary:
    # "ok", "thanks" and the like are no goals.
    prompts = [(n, e.text) for n, e in enumerate(events) if e.kind == "prompt" and not _CHAT.match(e.text.strip())]
    runs = command_runs(events)
    failing = failing_runs(runs)
    open_, next_ = _left_open(events, prompts), tuple(dict.fromkeys(_next_steps(events, prompts)))
    gone = reverted_paths(runs)
    edited = dict.fromkeys(
        # What was reverted is not reported as edited.
        e.path
        for e in events
        if e.kind == "edit" and e.path and not any(e.path.startswith(g) for g in gone)
    )
    # A session in which nothing happened has no goal worth handing over.
    worked = any(e.kind in ("answer", "command", "edit", "check") for e in events)
    return Summary(
        goals=tuple(_goal_lines(prompts, next_)) if worked else (),
        outcome=tuple(_outcome_lines(events, bool(failing)))[:MOST_LINES],
        proven=tuple(_shorten_line(_describe_proof(run, runs)) for run in working_runs(runs) if run.is_check)[-3:],
        failing=tuple(_shorten_line(run.result()) for run in failing)[-3:],
        refused=tuple(dict.fromkeys(_refused_lines(events)))[-3:],
        open=tuple(dict.fromkeys(open_))[:MOST_LINES],
        next=next_[:3],
        decided=tuple(dict.fromkeys(_decision_lines(events)))[:MOST_LINES],
        commands=tuple(f"`{_shorten_line(run.command, 120)}`" for run in working_runs(runs))[-5:],
        files=tuple(list(edited)[:10]),
        commits=tuple(_shorten_line(e.text, 120) for e in events if e.kind == "commit")[-5:],
    )  # fmt: skip


def _describe_proof(run: CommandRun, runs: Sequence[CommandRun]) -> str:
    """A check that went wrong first says more than one that never did."""
    mended = any(before.command == run.command and not before.ok and before.at < run.at for before in runs)
    return f"{run.result()} (went wrong before, passes since)" if mended else run.result()


def _goal_lines(prompts: Sequence[tuple[int, str]], next_steps: Sequence[str]) -> Iterator[str]:
    """The first prompt whole, unless it only says how things are done here; of later ones the task alone,
    without what is told as the next step."""
    later = list(_task_lines([text for _, text in prompts[1:][-MOST_GOALS + 1 :]], next_steps))
    if prompts and not (later and _only_tells(prompts[0][1])):
        yield _shorten_line(" ".join(prompts[0][1].split()))
    yield from later


def _only_tells(prompt: str) -> bool:
    """Each of its sentences is remembered by itself."""
    kept = [one for one in observe_prompt(prompt) if one.outcome == KEPT]
    return bool(kept) and len(kept) == len(split_prompt(prompt).segments)


def _task_lines(prompts: Sequence[str], next_steps: Sequence[str]) -> Iterator[str]:
    for text in prompts:
        kept = {one.text for one in observe_prompt(text) if one.outcome == KEPT}
        sentences = [
            s.text
            for s in split_prompt(text).segments
            if not _CHAT.match(s.text)
            and not _LATER.search(s.text)
            and not _STEERS.match(s.text)
            and s.text not in kept
            and _without_label(s.text) not in next_steps
        ]
        tasks = [_task_clause(s) for s in sentences if IMPERATIVE_START.match(s) or "?" in s or _looks_like_task(s)]
        if tasks:
            yield _shorten_line(" ".join(tasks))


def _looks_like_task(text: str) -> bool:
    return bool(re.search(r"\b(?:i need|i want|broken|why|how|bitte|please|add|fix)\b", text, re.IGNORECASE))


def _task_clause(text: str) -> str:
    """Up to a comma after which no further task is named."""
    head, comma, tail = text.partition(", ")
    return (
        head
        if comma and IMPERATIVE_START.match(head) and not IMPERATIVE_START.match(tail) and len(head.split()) > 3
        else text
    )


def _outcome_lines(events: Sequence[SessionEvent], failing: bool) -> Iterator[str]:
    """What the agent reported, as far as nothing later took it back and no run contradicts it."""
    answers = [n for n, e in enumerate(events) if e.kind == "answer" and not _EMPTY_ANSWER.match(e.text.strip())]
    # Where something was done, an answer to a mere question is no outcome.
    answers = [n for n in answers if _follows_work(events, n)] or answers
    for n in answers[-4:]:
        later = [e.text for e in events[n + 1 :] if e.kind == "prompt"]
        last = n == answers[-1]
        denied = bool(later) and bool(_DENIES.search(later[0]))
        for sentence in _answer_sentences(events[n].text):
            if _says_nothing(sentence) or _AGENTS_NEXT.match(sentence):
                continue
            # "no, still two of them": the user has tried it, and his word counts.
            if denied and (_CLAIM.search(sentence) or _shares_stems(sentence, later[0])):
                continue
            # Kept where the same sentence admits what is open.
            if failing and last and _CLAIM.search(sentence) and not _OPEN.search(sentence):
                continue
            # Of earlier answers only what still holds: open points may be closed by now.
            if not last and (_is_contradicted(sentence, later) or _OPEN.search(sentence)):
                continue
            yield _shorten_line(sentence)


def _follows_work(events: Sequence[SessionEvent], answer: int) -> bool:
    for event in reversed(events[:answer]):
        if event.kind == "prompt":
            return False
        if event.kind in ("edit", "command", "check", "commit"):
            return True
    return False


def _says_nothing(sentence: str) -> bool:
    """ "They are.", "Sorry!": nothing by themselves."""
    return not set(_WORD.findall(sentence.lower())) - FUNCTION_WORDS - _POLITE_WORDS


def _is_contradicted(sentence: str, later: Sequence[str]) -> bool:
    """A later prompt takes it back, or asks to do what it spoke of."""
    words = set(_WORD.findall(sentence.lower()))
    return any(words & set(_WORD.findall(text.lower())) and _TAKES_BACK.search(text) for text in later)


def _left_open(events: Sequence[SessionEvent], prompts: Sequence[tuple[int, str]]) -> Iterator[str]:
    for n, event in enumerate(events):
        if event.kind == "note" and "interrupt" in event.text.lower():
            before = [text for at, text in prompts if at < n]
            if before:
                yield f"{_shorten_line(before[-1], 160)} (interrupted)"
    answers = [(n, e.text) for n, e in enumerate(events) if e.kind == "answer"]
    for n, text in answers:
        later = [t for at, t in prompts if at > n]
        worked_on = any(e.kind in ("edit", "command") for e in events[n + 1 :])
        for sentence in _answer_sentences(text):
            # Spoken of again later, with work after it: taken for done.
            if _OPEN.search(sentence) and not (later and worked_on and _shares_words(sentence, later)):
                yield _shorten_line(_without_label(sentence))
    if prompts:
        for sentence in _answer_sentences(prompts[-1][1]):
            if _LATER.search(sentence) and not any(e.kind == "edit" for e in events[prompts[-1][0] :]):
                yield _shorten_line(sentence)


def _refused_lines(events: Sequence[SessionEvent]) -> Iterator[str]:
    """What a gate refused, as far as it was not done later."""
    for n, event in enumerate(events):
        if event.kind != "refused":
            continue
        later = events[n + 1 :]
        if event.path:
            if not any(e.kind == "edit" and e.path == event.path for e in later):
                yield _shorten_line(f"an edit of {event.path}", 160)
        elif not any(
            e.kind in ("command", "check") and e.exit == 0 and is_same_act(e.command, event.command) for e in later
        ):
            yield f"`{_shorten_line(event.command, 160)}`"


def _shares_words(sentence: str, later: Sequence[str]) -> bool:
    words = set(_WORD.findall(sentence.lower()))
    return any(words & set(_WORD.findall(text.lower())) for text in later)


def _shares_stems(sentence: str, other: str) -> bool:
    one, two = ({word[:5] for word in _WORD.findall(text.lower())} for text in (sentence, other))
    return bool(one & two)


def _next_steps(events: Sequence[SessionEvent], prompts: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Said in the last prompt, or by the agent, and nothing was done any more since."""
    yield from _agents_next(events)
    if not prompts:
        return
    at, text = prompts[-1]
    # The only prompt is the goal, not a next step.
    if any(e.kind in ("edit", "command") for e in events[at + 1 :]) or at == 0:
        return
    sentences = _answer_sentences(text)
    for number, sentence in enumerate(sentences):
        if _NEXT.search(sentence):
            about = (
                sentences[number - 1]
                # A short sentence ("then start with that") needs the one before it to be understood.
                if number and len(sentence.split()) < 7 and not _CHAT.match(sentences[number - 1])
                else ""
            )
            yield _shorten_line(_without_label(f"{about} {sentence}".strip()))
            yield from _named_options(sentence, events[:at])


def _agents_next(events: Sequence[SessionEvent]) -> Iterator[str]:
    for event in reversed(events):
        if event.kind in ("edit", "command"):
            return
        if event.kind == "answer":
            for sentence in _answer_sentences(event.text):
                if match := _AGENTS_NEXT.match(sentence):
                    yield _shorten_line(sentence[match.end() :])


def _named_options(sentence: str, before: Sequence[SessionEvent]) -> Iterator[str]:
    """ "start with 1 and 2": the points of the plan it speaks of."""
    numbers = re.findall(r"\b\d\b", sentence)
    plan = next((e.text for e in reversed(before) if e.kind == "answer"), "")
    options = dict(_OPTION.findall(plan))
    yield from (_shorten_line(options[n].rstrip(" ,;."), 120) for n in numbers if n in options)


def _decision_lines(events: Sequence[SessionEvent]) -> Iterator[str]:
    """What the user settled on the way: an option that was picked, and what memory would keep of his words. A step of the plan
    or a fault is neither."""
    agent_message = ""
    for event in events:
        if event.kind == "answer":
            agent_message = event.text
        if event.kind != "prompt":
            continue
        if (choice := _CHOICE.match(event.text)) and (options := dict(_OPTION.findall(agent_message))).get(choice[1]):
            yield _shorten_line(options[choice[1]].rstrip(" ,;."), 160)
        yield from (
            _shorten_line(o.text)
            for o in observe_prompt(event.text, agent_message)
            # After words of the agent an answer counts with less certainty: it settles a question.
            if (o.outcome == KEPT or (agent_message and o.probability > 0.4))
            and not _LATER.search(o.text)
            and not _STEP.match(o.text)
            and not (agent_message and _DENIES.search(event.text))
        )


def _answer_sentences(text: str) -> list[str]:
    return split_sentences(text)


def _as_list(values: Sequence[str]) -> str:
    """A sentence's own full stop does not stand before a semicolon."""
    return "; ".join([*(value.removesuffix(".") for value in values[:-1]), *values[-1:]])


def _without_label(text: str) -> str:
    return _LABEL.sub("", text, count=1) or text


def _shorten_line(text: str, most: int = LONGEST_LINE) -> str:
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


__all__ = ["CommandRun", "SessionEvent", "Summary", "build_summary"]
