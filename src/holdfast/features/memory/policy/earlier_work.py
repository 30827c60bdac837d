"""Finds the earlier work that a session's first prompt belongs to: its plan, the likely files, what was left unfinished."""

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from holdfast.core.decision import Context, ContextLine
from holdfast.core.event import Event
from holdfast.core.feature import State
from holdfast.core.lazy import lazy_pattern
from holdfast.core.times import DAY
from holdfast.features.memory.policy.learn import UNFINISHED
from holdfast.features.memory.settings import DEFAULTS, MemorySettings, is_excluded
from holdfast.features.memory.state import documents
from holdfast.features.memory.state.documents import MemorySession, ProjectItem
from holdfast.features.memory.state.session_state import plan_title, prompt_words
from holdfast.features.memory.state.words import plain_words, stem_word

MOST_FILES = 5
# Among the contexts of all features.
WEIGHT, HEAVY = 55, 80
FADING = 2 * DAY
LEAST_SESSIONS = 2
"""One session says nothing of what usually goes together."""
# Weights of what says that a file is needed, chosen by `make bench ONLY=start`.
OF_PATH, OF_AGE, OF_PROMPTS, OF_NAMED, SAME_BRANCH = 0.8, 0.1, 1.0, 1.0, 20.0
MAIN_BRANCHES = frozenset(("main", "master", "HEAD", "develop", "trunk", ""))
_PLAN = lazy_pattern(r"\s*(?:please )?implement (?:the |this )(?:following )?plan\b", re.IGNORECASE)
_TRANSCRIPT = lazy_pattern(r"transcript at:?\s*\S*?([0-9a-f]{8}-[0-9a-f-]{27})\.jsonl")
_GO_ON = lazy_pattern(
    r"\b(?:(?:go|carry) on|continue|pick up|resume|finish)\b.{0,40}\b(?:where|what|last|previous|earlier|yesterday|session)\b"
    r"|\bwhere (?:we|you|i|the last \w+) (?:left off|stopped)\b",
    re.IGNORECASE,
)
ABOUT_FILES = "Files that such work here needed before (from recorded sessions, most likely first):"
ABOUT_SESSION = (
    "Left unfinished in session {session} (said: asked, the agent said; the rest was recorded): {text} [{id}]"
)
ABOUT_PLAN = "This plan was made in session {session}{files}. Details: holdfast session show {short}"
LONGEST_SUMMARY = 300


def find_earlier_work(
    state: State, event: Event, items: Sequence[ProjectItem], settings: MemorySettings
) -> Iterator[Context]:
    """For the first prompt of a new session; nothing where nothing fits. `items`: what may be injected here."""
    doc = documents.session_of(state, event.session)
    if doc is None or doc.prompts > 1 or doc.went_on or event.data.synthetic:
        return
    recent = list(recent_sessions(state, event))
    prompt: str = event.data.prompt
    if _PLAN.match(prompt):
        yield from _plan_context(recent, prompt)
        return
    ranked = LikelyFiles(prompt, event.at, doc.branch, recent, settings)
    unfinished = {
        item.session: item for item in items if item.type == documents.SUMMARY and item.importance == UNFINISHED
    }
    if _GO_ON.search(prompt[:400]):
        newest = max(unfinished.values(), key=lambda item: item.at, default=None)
    else:
        files = ranked.best(MOST_FILES)
        if files and len(recent) >= LEAST_SESSIONS:
            root = event.data.worktree or event.project
            # One line each, because a file that is gone is left out.
            lines = tuple(ContextLine(f"- {name}", (f"{root}/{name}",)) for name in files)
            yield Context(documents.EARLIER, ABOUT_FILES, WEIGHT, lines)
        newest = unfinished.get(ranked.main_session(files))
    if newest:
        text = documents.one_line(newest.text, LONGEST_SUMMARY)
        told = ABOUT_SESSION.format(session=newest.session[:8], text=text, id=newest.id)
        yield Context(documents.EARLIER, told, WEIGHT)


def recent_sessions(state: State, event: Event) -> Iterator[MemorySession]:
    recent = documents.RECENT.get(state, documents.recent_ref(documents.place_of(event)).key)
    for session in recent.sessions if recent else ():
        if session != event.session and (doc := documents.session_of(state, session)):
            yield doc


def _plan_context(recent: Sequence[MemorySession], prompt: str) -> Iterator[Context]:
    if made := plan_session(recent, prompt):
        files = ", ".join(sorted(made.files, key=lambda name: -made.files[name])[:MOST_FILES])
        read = f", which looked at {files}" if files else ""
        yield Context(documents.EARLIER, ABOUT_PLAN.format(session=made.id, short=made.id[:8], files=read), HEAVY)


def plan_session(recent: Sequence[MemorySession], prompt: str) -> MemorySession | None:
    """The one whose transcript the prompt names, else the newest that made a plan of this title."""
    if match := _TRANSCRIPT.search(prompt):
        named = next((doc for doc in recent if doc.id == match[1]), None)
        if named:
            return named
    title = plan_title(prompt)
    return next((doc for doc in reversed(recent) if title and doc.plan == title), None)


@dataclass
class LikelyFiles:
    """Ranks the files of earlier sessions by age, branch, the words of their paths and of those sessions' prompts."""

    prompt: str
    at: int
    branch: str
    recent: Sequence[MemorySession]
    settings: MemorySettings = DEFAULTS

    def best(self, most: int) -> list[str]:
        """Without those that the prompt names: these the agent knows already."""
        ranked = sorted(self._scores, key=lambda name: (-self._scores[name], name))
        wanted = (name for name in ranked if name not in self._named and not is_excluded([name], "", self.settings))
        return list(itertools.islice(wanted, most))

    def main_session(self, files: Sequence[str]) -> str:
        """The newest session that used most of these files."""
        used = [(sum(name in doc.files for name in files), doc.at, doc.id) for doc in self.recent]
        most, _, session = max(used, default=(0, 0, ""))
        return session if files and most * 2 > len(files) else ""

    @cached_property
    def _named(self) -> set[str]:
        return {name for name in self._uses if name.rpartition("/")[2] in self.prompt}

    @cached_property
    def _uses(self) -> dict[str, float]:
        """Uses, fading by the day; more on the same branch, which is the same piece of work."""
        uses: dict[str, float] = defaultdict(float)
        for doc in self.recent:
            same = doc.branch == self.branch and self.branch not in MAIN_BRANCHES
            weight = math.exp(-max(0, self.at - doc.at) / FADING) * (1 + SAME_BRANCH * same)
            for name, times in doc.files.items():
                uses[name] += times * weight
        return uses

    @cached_property
    def _scores(self) -> dict[str, float]:
        top = max(self._uses.values(), default=0.0) or 1e-300
        by_path, by_prompts, by_named = self._path_fit(), _scaled(self._prompt_fit()), _scaled(self._named_fit())
        return {
            name: use / top + OF_AGE * math.log(use / top + 1e-9) + OF_PATH * by_path.get(name, 0.0)
            + OF_PROMPTS * by_prompts.get(name, 0.0) + OF_NAMED * by_named.get(name, 0.0)
            for name, use in self._uses.items()
        }  # fmt: skip

    @cached_property
    def _asked(self) -> frozenset[str]:
        return frozenset(prompt_words(self.prompt))

    def _path_fit(self) -> dict[str, float]:
        """Rare words that the path shares with the prompt."""
        words = {name: _path_words(name) for name in self._uses}
        often = Counter(word for known in words.values() for word in known)
        whole = math.log(1 + len(words))
        return {
            name: sum(math.log(1 + len(words) / often[word]) for word in known & self._asked) / whole
            for name, known in words.items()
        }

    def _prompt_fit(self) -> dict[str, float]:
        """Files of sessions whose prompts had the same rare words."""
        often = Counter(word for doc in self.recent for word in doc.words)
        fits: dict[str, float] = defaultdict(float)
        for doc in self.recent:
            shared = sum(math.log(1 + len(self.recent) / often[word]) for word in self._asked.intersection(doc.words))
            likeness = shared / math.sqrt((len(doc.words) + 1) * (len(self._asked) + 1))
            for name in doc.files:
                fits[name] += likeness
        return fits

    def _named_fit(self) -> dict[str, float]:
        """Files used together with those that the prompt names."""
        fits: dict[str, float] = defaultdict(float)
        for doc in self.recent:
            together = len(self._named.intersection(doc.files))
            for name in doc.files if together else ():
                fits[name] += together / math.sqrt(len(doc.files))
        return fits


def _path_words(name: str) -> frozenset[str]:
    return frozenset(stem_word(word) for word in plain_words(name) if len(word) > 2)


def _scaled(fits: Mapping[str, float]) -> Mapping[str, float]:
    top = max(fits.values(), default=0.0)
    return {name: fit / top for name, fit in fits.items()} if top else {}
