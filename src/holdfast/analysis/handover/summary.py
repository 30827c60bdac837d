"""Summarises a session in two voices: what was said, and what was recorded."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from holdfast.analysis.handover.runs import (
    CommandRun,
    command_runs,
    failing_runs,
    is_same_act,
    reverted_paths,
    working_runs,
)
from holdfast.core.lazy import lazy_pattern

MOST_GOALS, MOST_LINES, LONGEST_LINE = 3, 3, 220
MOST_FILES, MOST_COMMANDS = 10, 5
_CHAT = lazy_pattern(
    r"(?:ok(?:ay)?|yes|no|hi|hello|hey|thanks?|thx|good|great|fine|cool|right|sure|go (?:on|ahead)|continue|perfect"
    r"|danke|gut|ja|nein)[\s.,!]*",
    re.IGNORECASE,
)
_EMPTY_ANSWER = lazy_pattern(r"(?:ok(?:ay)?|done|sure|alright|understood|hello!?)[.!\s]*", re.IGNORECASE)
_NEXT_LABEL = lazy_pattern(r"^\W*next(?: steps?| up)?\W*[:：]\W*(?P<step>\S.*)$", re.IGNORECASE | re.MULTILINE)
_SENTENCE_END = lazy_pattern(r"(?<=[.!?])\s+(?=[A-Z`\"'(])|\n+")
_MARKUP = lazy_pattern(r"^[\s#>*•-]+|\*\*")


class SessionEvent(msgspec.Struct, frozen=True):
    """`kind`: prompt, answer, command, edit, note, check (a judged run), commit, refused (by a gate)."""

    kind: str
    text: str = ""
    command: str = ""
    exit: int | None = None
    output: str = ""
    path: str = ""
    of: int = 0
    """The event of the call: the one that a check belongs to, or of a command itself."""


class Summary(msgspec.Struct, frozen=True):
    goals: tuple[str, ...] = ()
    """Said by the person. A goal they stopped is left out."""
    said: tuple[str, ...] = ()
    """The agent's last answer. A claim, not a fact."""
    next: tuple[str, ...] = ()
    """The step the agent named as next."""
    proven: tuple[str, ...] = ()
    """Checks that passed; nothing else proves."""
    failing: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Refused by a gate and not done since."""
    commands: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()

    def as_text(self) -> str:
        named = (
            ("Asked", self.goals, "; then: "), ("The agent said", self.said, " "), ("Next, it said", self.next, "; "),
            ("Checks passed", self.proven, "; "), ("Failing", self.failing, "; "),
            ("Refused by a gate, not done since", self.refused, "; "), ("Commands that worked", self.commands, ", "),
            ("Files", self.files, ", "), ("Commits", self.commits, ", "),
        )  # fmt: skip
        return "\n".join(f"{name}: {glue.join(values)}" for name, values, glue in named if values)

    def as_line(self) -> str:
        """What the next session needs, on one line."""
        named = (("Asked", self.goals[:2], 110), ("Failing", self.failing, 120), ("Refused", self.refused, 120),
                 ("Checks passed", self.proven, 120), ("Next, the agent said", self.next, 130),
                 ("The agent said", self.said, 160))  # fmt: skip
        return " ".join(f"{name}: {_shorten(_as_list(values), most)}" for name, values, most in named if values)


def build_summary(events: Sequence[SessionEvent]) -> Summary:
    runs = command_runs(events)
    worked = [run for run in working_runs(runs) if not run.judged]
    return Summary(
        goals=tuple(_goals(events)),
        said=tuple(_last_words(events)),
        next=tuple(_named_next(events)),
        proven=tuple(_shorten(_describe_proof(run, runs)) for run in working_runs(runs) if run.judged)[-MOST_LINES:],
        failing=tuple(_shorten(run.result()) for run in failing_runs(runs))[-MOST_LINES:],
        refused=tuple(dict.fromkeys(_refused(events)))[-MOST_LINES:],
        commands=tuple(f"`{_shorten(run.command, 120)}`" for run in worked)[-MOST_COMMANDS:],
        files=tuple(_edited(events, runs))[:MOST_FILES],
        commits=tuple(_shorten(event.text, 120) for event in events if event.kind == "commit")[-5:],
    )


def _goals(events: Sequence[SessionEvent]) -> list[str]:
    """The first and latest prompts, without small talk and stopped ones."""
    prompts: list[str] = []
    open_prompt = False
    for event in events:
        if event.kind == "prompt":
            open_prompt = not _CHAT.fullmatch(event.text.strip())
            if open_prompt:
                prompts.append(_shorten(event.text))
        elif event.kind == "answer":
            open_prompt = False
        elif event.kind == "note" and open_prompt:
            prompts.pop()
            open_prompt = False
    worked = any(event.kind in ("answer", "command", "edit", "check") for event in events)
    return list(dict.fromkeys([*prompts[:1], *prompts[1:][1 - MOST_GOALS :]])) if worked else []


def _last_words(events: Sequence[SessionEvent]) -> Iterator[str]:
    said = [sentence for sentence in _sentences(_last_answer(events)) if not _NEXT_LABEL.match(sentence)]
    if said:
        yield _shorten(" ".join(said))


def _sentences(text: str) -> list[str]:
    pieces = (_MARKUP.sub("", piece).strip() for piece in _SENTENCE_END.split(text))
    return [piece for piece in pieces if piece]


def _last_answer(events: Sequence[SessionEvent]) -> str:
    answers = (event.text for event in reversed(events) if event.kind == "answer")
    return next((text for text in answers if not _EMPTY_ANSWER.fullmatch(text.strip())), "")


def _named_next(events: Sequence[SessionEvent]) -> list[str]:
    """Only if nothing was asked since."""
    spoken = [event for event in events if event.kind in ("prompt", "answer")]
    if not spoken or spoken[-1].kind != "answer":
        return []
    steps = (_NEXT_LABEL.match(sentence) for sentence in _sentences(spoken[-1].text))
    return [_shorten(step["step"], 160) for step in steps if step][:MOST_LINES]


def _describe_proof(run: CommandRun, runs: Sequence[CommandRun]) -> str:
    failed_before = any(one.command == run.command and not one.ok and one.at < run.at for one in runs)
    return f"{run.result()} (failed before, passes since)" if failed_before else run.result()


def _refused(events: Sequence[SessionEvent]) -> Iterator[str]:
    for n, event in enumerate(events):
        if event.kind != "refused":
            continue
        later = events[n + 1 :]
        if event.path:
            if not any(one.kind == "edit" and one.path == event.path for one in later):
                yield _shorten(f"an edit of {event.path}", 160)
        elif not any(_did(one, event.command) for one in later):
            yield f"`{_shorten(event.command, 160)}`"


def _did(event: SessionEvent, command: str) -> bool:
    return event.kind in ("command", "check") and event.exit == 0 and is_same_act(event.command, command)


def _edited(events: Sequence[SessionEvent], runs: Sequence[CommandRun]) -> dict[str, None]:
    reverted = tuple(reverted_paths(runs))
    paths = (event.path for event in events if event.kind == "edit" and event.path)
    return dict.fromkeys(path for path in paths if not (reverted and path.startswith(reverted)))


def _as_list(values: Sequence[str]) -> str:
    return "; ".join([*(value.removesuffix(".") for value in values[:-1]), *values[-1:]])


def _shorten(text: str, most: int = LONGEST_LINE) -> str:
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[: most - 1]}…"
