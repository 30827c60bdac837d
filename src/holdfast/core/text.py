"""Makes foreign text safe to show, store and put before a model, and shortens it."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from holdfast.core.decision import Context
from holdfast.core.lazy import lazy_pattern

FENCE_TAG = "holdfast-context"
DEFUSED = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"
"""Replaces the first character of a defused mark."""
NO_COLON = "\N{MODIFIER LETTER COLON}"

# ── What cannot be seen ──────────────────────────────────────────────────────────────────────────────────────────────

# Bounded repeats: an unclosed sequence removes at most that much text.
_ESCAPES = lazy_pattern(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]?"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]{0,100000}(?:\x07|\x1b\\|\x9c)?"  # OSC 52 and the like
    r"|\x1b[ -/]{0,8}[0-~]?"
)
# Letters that draw nothing: Hangul and Khmer fillers, Mongolian selectors, the Braille blank.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_SEPARATORS = {"\u2028": "\n", "\u2029": "\n", "\x85": "\n", "\v": "\n", "\f": "\n"}
# More than three combining marks in a row can cover neighbouring lines.
_PILED = lazy_pattern(
    r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3})[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
_SUSPECT = lazy_pattern(r"[^\n\t\x20-\x7e]")


def strip_controls(text: str) -> str:
    """Remove control characters, escape sequences, direction marks and invisible characters."""
    if not _SUSPECT.search(text):
        return text
    # Sequences first: without its escape character the rest of one would remain as text.
    visible = _SUSPECT.sub(lambda match: _visible_char(match[0]), _ESCAPES.sub("", text))
    return _PILED.sub(r"\1", visible)


def escape_invisible(text: str, *, yaml: bool = False) -> str:
    """Escape the same characters in JSON text or a double-quoted YAML scalar, so that programs lose nothing."""
    return _SUSPECT.sub(lambda match: _escape_char(match[0], yaml), text) if _SUSPECT.search(text) else text


def _escape_char(char: str, yaml: bool) -> str:
    if _visible_char(char) == char:
        return char
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    # JSON escapes have four digits; beyond them a surrogate pair is written.
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\U{code:08x}" if yaml else f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def name_invisible(text: str) -> str:
    """Show the same characters as names: `⟨202E⟩`, `␛`."""
    return _SUSPECT.sub(lambda match: _name_char(match[0]), text) if _SUSPECT.search(text) else text


def _name_char(char: str) -> str:
    code = ord(char)
    if _visible_char(char) == char or char == "\r":
        return char
    if 0xFE00 <= code <= 0xFE0F:  # They only choose how the letter before them is drawn.
        return ""
    return chr(0x2400 + code) if code < 0x20 else f"⟨{code:04X}⟩"


@lru_cache(4096)
def _visible_char(char: str) -> str:
    if char in _SEPARATORS:
        return _SEPARATORS[char]
    if char in _INVISIBLE or 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF:
        return ""
    return "" if unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs", "Cn") else char


# ── Marks of a conversation ──────────────────────────────────────────────────────────────────────────────────────────

_ROLES = (
    "holdfast system user assistant human function tool antml important hook invoke parameter developer model thinking"
    " reasoning im_ start_of_turn end_of_turn startofturn endofturn bos eos sys inst s> command- local-command result"
    " artifact instruction endoftext fim_ eot begin_of end_of python_tag ipython env_context environment_context think"
    " task-notification session-start-hook ide_selection ide_opened_file bash-input bash-stdout bash-stderr"
).split()
# `<` (repeated), `/`, `!` or `?`, then `|` or a role, optionally with a namespace (`antml:`).
_TAG = lazy_pattern(r"<+[!?]?/?(?:\||(?:[a-z0-9]{1,12}[:_])?(?:" + "|".join(map(re.escape, _ROLES)) + r"))")
_BRACKET = lazy_pattern(
    r"\[/?(?:inst|sys|system_prompt|available_tools|tool_calls|tool_results|assistant|avail|think\])"
)
# `User:` opens a turn if it is a heading; elsewhere it is a YAML key.
_TURN = lazy_pattern(
    r"(?m)^([ \t]*(?:Human|HUMAN|Assistant|ASSISTANT|System|H|A|#{1,6}[ ]?(?:Human|Assistant|System|User|Instruction))[ ]?)"
    r"(?::(?=\s|\*|$)|\uff1a)"
)
_OPENERS = (
    "<[\uff1c\ufe64\u2329\u3008\u27e8\u276c\u276e\u2770\u1438\u02c2\u300a\u226a\u00ab\uff3b\u3010\u27e6\u02f1\u29fc\u2a79\u226e"
    "\u16b2\U0001d236"
)
_FOLDED_OPENERS = dict.fromkeys(
    "\uff1c\ufe64\u2329\u3008\u27e8\u276c\u276e\u2770\u1438\u02c2\u300a\u226a\u00ab\u02f1\u29fc\u2a79\u226e\u16b2\U0001d236",
    "<",
) | dict.fromkeys("\uff3b\u3010\u27e6", "[")
# Letters of other scripts that resemble Latin ones, and the variants of - / | _ and :.
_LOOKALIKES = str.maketrans(
    {
        **dict(zip("аеорсхуіѕԁһӏոкмтвнԛԝјгզցսνορατκικυεγϲϳɡɑıℓⅼⅿⅾⅽⅰⅴⅹ", "aeopcxyisdhlnkmtbhqwjrqgunopatkikueycjgaillmdcivx", strict=False)),
        **dict(zip("ΒΖΗΜΝԌԍꓐꓑꓓꓔꓖꓗꓙꓚꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ", "bzhmngdbpdtgkjcfmnlsrvhwxyaeiou", strict=True)),
        **dict(zip("ᎠᎡᎢᎥᎩᎪᎫᎬᎳᎷᎻᎽᏀᏂᏃᏒᏔᏙᏚᏞᏟᏢᏦꮪՏՍՕՀꙇ", "drtiyajewmhyghzrwvslcpkssuohi", strict=True)),
        **dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢʂ", "abcdefghijklmnoprstuvwyzs", strict=True)),
        **dict(zip("ⲀⲂⲈⲎⲒⲔⲘⲚⲞⲢⲤⲦⲨⲬ", "abehikmnopctyx", strict=True)),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d\u2043\u02d7\u2796", "-"),
        **dict.fromkeys("\u2044\u2215\uff0f\u29f8\u2571\u27cb", "/"),
        **dict.fromkeys("\uff5c\u2223\u01c0\u2502\u00a6\u2758", "|"),
        **dict.fromkeys("\uff3f\u02cd\u2017", "_"),
        **dict.fromkeys("\uff1a\ua789\u2236\ufe55", ":"),
    }
)  # fmt: skip
_OPENER = lazy_pattern("[" + re.escape(_OPENERS) + "]")
_LONGEST_MARK = 48


def sanitise(text: str) -> str:
    """Make text safe for a model: nothing invisible, and no conversation mark with effect."""
    visible = strip_controls(text)
    if "<" in visible or "[" in visible or not visible.isascii():
        visible = _defuse_marks(visible)
    return _defuse_turns(visible) if ":" in visible or "\uff1a" in visible else visible


def _defuse_turns(text: str) -> str:
    """Replace the colon with a lookalike, so that a line opens no turn."""
    text = _TURN.sub(rf"\1{NO_COLON}", text)
    return text if text.isascii() else "\n".join(map(_defuse_turn, text.split("\n")))


def _defuse_turn(line: str) -> str:
    """Defuse a role written in letters of other scripts."""
    head, colon, rest = line.partition(":")
    if not colon or head.isascii() or len(head) > _LONGEST_MARK:
        return line
    role = "".join(map(_fold_char, head)).lstrip("#")
    return f"{head}{NO_COLON}{rest}" if role in ("human", "assistant", "system") else line


def sanitise_line(text: str, limit: int = 0) -> str:
    """The same on one line of at most `limit` characters."""
    line = " ".join(sanitise(text).split())
    return shorten_line(line, limit) if limit else line


def _defuse_marks(text: str) -> str:
    """Read lookalikes, full-width forms and accented letters as the letters they stand for."""
    powers = [at for at in _opener_positions(text) if _has_power(text, at)]
    if not powers:
        return text
    chars = list(text)
    for at in powers:
        chars[at] = DEFUSED
    return "".join(chars)


def _opener_positions(text: str) -> Iterator[int]:
    return (match.start() for match in _OPENER.finditer(text))


def _has_power(text: str, at: int) -> bool:
    mark = _folded_from(text, at)
    return bool((_BRACKET if mark[:1] == "[" else _TAG).match(mark))


def _folded_from(text: str, at: int) -> str:
    """Fold the mark that begins here to lowercase without spaces, up to the longest mark."""
    first = _FOLDED_OPENERS.get(text[at], text[at])
    folded = [first]
    for n in range(at + 1, len(text)):
        char = text[n]
        # The next opener is handled separately.
        if char in _OPENERS and len(folded) > 1:
            break
        plain = _fold_char(char)
        if plain:
            folded.append(plain)
        if len(folded) > _LONGEST_MARK:
            break
    return "".join(folded)


@lru_cache(8192)
def _fold_char(char: str) -> str:
    """Return the lowercase letter it resembles; empty for spaces and combining marks."""
    if char in _FOLDED_OPENERS:
        return _FOLDED_OPENERS[char]
    # Before and after casefold: some lookalikes appear only after decomposition or folding.
    apart = unicodedata.normalize("NFKD", char).translate(_LOOKALIKES)
    plain = "".join(
        c for c in apart if not unicodedata.combining(c) and unicodedata.category(c) not in ("Mn", "Me", "Cf")
    )
    return plain.casefold().translate(_LOOKALIKES).strip()


def wrap_untrusted(text: str, source: str) -> str:
    """Put foreign text inside the fence with its source. It cannot close, open or imitate the fence."""
    label = re.sub(r"[^\w.:/-]", "_", strip_controls(source))
    return f'<{FENCE_TAG} source="{label}">\n{sanitise(text).strip()}\n</{FENCE_TAG}>'


# ── Shortening ───────────────────────────────────────────────────────────────────────────────────────────────────────


CUT_MARK = "characters left out"
"""Marks a cut: text that must be judged as a whole must not be judged then."""


def shorten(text: str, limit: int) -> str:
    """Keep at most `limit` characters: the beginning, how much is omitted, and the end."""
    if len(text) <= limit:
        return text
    note = f"\n…[{len(text) - limit} {CUT_MARK}]…\n"
    space = max(limit - len(note), 0)
    tail = space // 3
    return (text[: space - tail] + note + text[len(text) - tail :])[:limit]


def shorten_line(text: str, limit: int) -> str:
    """Keep at most `limit` characters of one line, ending with `…` if cut."""
    return text if len(text) <= limit else f"{text[: max(0, limit - 1)]}…"[:limit]


# Stored text enters a context only inside a fence: attributed, budgeted, unable to close it (P10).

CHARS_PER_TOKEN = 4
_HOOK_CONTEXT = lazy_pattern(r"\s*<hook_context>.*?</hook_context>\s*", re.DOTALL)
_LEADING_FENCE = lazy_pattern(rf"\s*<{FENCE_TAG} [^>]*>.*?</{FENCE_TAG}>\s*", re.DOTALL)
# Groups: the opening tag, the content, the closing tag.
_FENCE_MARK = lazy_pattern(rf"</?{FENCE_TAG}[^>]{{0,200}}>\n?")
_OWN_FENCE = lazy_pattern(rf'(<{FENCE_TAG} source="[\w.:/-]*">\n)(.*?)(\n</{FENCE_TAG}>)', re.DOTALL)
VOICE = "[Holdfast] "
"""Prefix of the reason of a refused stop, for agents that send it to their hooks like a prompt."""


def estimate_tokens(text: str) -> int:
    """A careful estimate: four ASCII characters, or one of any other script, are a token."""
    narrow = len(text) if text.isascii() else sum(1 for c in text if c < "\x80")
    return -(-narrow // CHARS_PER_TOKEN) + (len(text) - narrow)


def wrap_context(context: Context) -> str:
    return wrap_untrusted(context.text, context.source)


def without_contexts(prompt: str) -> str:
    """Return the prompt without the contexts that hooks put before it."""
    while match := _HOOK_CONTEXT.match(prompt) or _LEADING_FENCE.match(prompt):
        prompt = prompt[match.end() :]
    return prompt


def without_fences(text: str) -> str:
    """Remove fences for people; they only tell an agent whose words these are."""
    return _FENCE_MARK.sub("", text).rstrip()


def sanitise_around_fences(text: str) -> str:
    """Sanitise text that may contain our fences: they stay, and everything else is made harmless."""
    parts, end = [], 0
    for match in _OWN_FENCE.finditer(text):
        parts += [sanitise(text[end : match.start()]), match[1], sanitise(match[2]), match[3]]
        end = match.end()
    return "".join([*parts, sanitise(text[end:])])


def within_budget(contexts: Iterable[Context], budget: int) -> tuple[list[Context], list[Context]]:
    """Return (kept in order, omitted). The heaviest are chosen first; no text is cut."""
    offered = list(contexts)
    left = budget
    chosen: set[int] = set()
    # A lighter text that fits is kept even after a heavier one that did not.
    for i in sorted(range(len(offered)), key=lambda i: -offered[i].weight):
        cost = estimate_tokens(offered[i].text)
        if cost <= left:
            chosen.add(i)
            left -= cost
    return [c for i, c in enumerate(offered) if i in chosen], [c for i, c in enumerate(offered) if i not in chosen]


# `<private>…</private>` in a prompt is for the agent only: it is removed before anything is stored.

T = TypeVar("T")

SPOKEN = ("prompt", "user_prompt", "userPrompt", "command_args", "last_assistant_message", "prompt_response")
"""Only words between person and agent. Tool input stays whole, because a gate must see the full command."""
INSTEAD = "[private]"
# An unclosed mark hides all that follows.
_PRIVATE = lazy_pattern(r"<\s*private\s*>.*?(?:<\s*/\s*private\s*>|\Z)", re.DOTALL | re.IGNORECASE)


def without_private(body: bytes) -> bytes:
    """Never raises. A body without private words is returned unchanged; an unreadable one is stored with the words
    removed."""
    if not _mentions_private(body):
        return body
    try:
        payload = msgspec.json.decode(body)
        if not isinstance(payload, dict):
            return body
        spoken = {name: _cut_private(payload[name]) for name in SPOKEN if name in payload}
        return body if all(payload[n] == v for n, v in spoken.items()) else msgspec.json.encode({**payload, **spoken})
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _PRIVATE_BYTES.sub(INSTEAD.encode(), body)


def _mentions_private(body: bytes) -> bool:
    """Search by the rarest letter of the word: several times faster than ignoring case."""
    return bool(_WITH_SMALL_V.search(body)) or (b"V" in body and bool(_WITH_LARGE_V.search(body)))


_WITH_SMALL_V = lazy_pattern(rb"v(?<=[Pp][Rr][Ii]v)[Aa][Tt][Ee]")
_WITH_LARGE_V = lazy_pattern(rb"V(?<=[Pp][Rr][Ii]V)[Aa][Tt][Ee]")
# JSON may escape `<`, `>` and `/`; this body could not be decoded.
_PRIVATE_BYTES = lazy_pattern(
    rb"(?:<|\\u003c)\s*private\s*(?:>|\\u003e).*?(?:(?:<|\\u003c)\s*\\?/\s*private\s*(?:>|\\u003e)|\Z)",
    re.DOTALL | re.IGNORECASE,
)


def _cut_private(value: Any) -> Any:
    if isinstance(value, str):
        return _PRIVATE.sub(INSTEAD, value)
    return [_cut_private(one) for one in value] if isinstance(value, list) else value


LEAST_PRIVATE, MOST_PRIVATE = 6, 100
"""Shorter words are too common to remove everywhere."""
_PRIVATE_WORDS = lazy_pattern(r"<\s*private\s*>(.*?)(?:<\s*/\s*private\s*>|\Z)", re.DOTALL | re.IGNORECASE)


# Names, codes and addresses: digits next to letters, an inner capital, or an @.
_TELLING = lazy_pattern(r"^(?=.*[^\W\d_])(?:.*\d|.+[A-ZÀ-Þ]|.*@)")
_TOKEN = lazy_pattern(r"[^\s,;:!?()\"'<>]{4,80}")
# In German a capital makes no name: every noun has one.
_GERMAN = lazy_pattern(r"\b(?:der|die|das|und|ist|ein|eine|nicht|mit|von|für)\b", re.IGNORECASE)
_SENTENCE_ENDS = (".", "!", "?")
ANSWERED = ("last_assistant_message", "prompt_response")
SESSION_FIELDS = ("session_id", "sessionId", "conversation_id", "thread_id")


def telling_words(stretch: str) -> Iterator[str]:
    """Return the private words that identify something by themselves: names, codes, addresses."""
    names_by_capital = not _GERMAN.search(stretch)
    before = _SENTENCE_ENDS[0]
    for token in _TOKEN.findall(stretch):
        word = token.rstrip(".")
        is_name = names_by_capital and word[:1].isupper() and not before.endswith(_SENTENCE_ENDS)
        if len(word) >= 4 and (is_name or _TELLING.match(word)):
            yield word
        before = token


class PrivateWords:
    """Private words since the process started, in memory only: an agent's answer that repeats them unmarked is not
    stored with them. Names and codes from them are removed only in that session's answers."""

    def __init__(self, find_private: Callable[[bytes, int], int] | None = None) -> None:
        """`find_private`: a faster search for the word."""
        self._find_private = find_private
        self._known: dict[str, bytes] = {}
        self._telling: dict[str, set[str]] = {}

    def _mentions(self, body: bytes) -> bool:
        find = self._find_private
        return find(body, 0) < len(body) if find else _mentions_private(body)

    def clean(self, body: bytes) -> bytes:
        if not self._mentions(body):
            return self._without_repeats(body) if self._known else body
        self._learn(body)
        return self._without_repeats(without_private(body))

    def clean_answer(self, session: str, answer: str) -> str:
        """Clean an answer that no hook reported."""
        return _blank_tokens(answer, self._telling.get(session, ()))

    def clean_own(self, content: bytes) -> bytes:
        """Clean JSON of our own, whatever its fields. Imports contain prompts as typed, marks included."""
        if self._mentions(content):
            self._learn(content)
            content = without_private(content)
        for written in self._known.values():
            content = content.replace(written, INSTEAD.encode())
        return content

    def _learn(self, body: bytes) -> None:
        try:
            payload = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return
        spoken = [payload[name] for name in SPOKEN if name in payload] if isinstance(payload, dict) else []
        known, telling = dict(self._known), dict(self._telling)
        for spoken_text in (text for text in spoken if isinstance(text, str)):
            for marked in _PRIVATE_WORDS.findall(spoken_text):
                session = _session_of(payload)
                telling[session] = {*telling.get(session, ()), *telling_words(marked)}
                for words in {marked.strip(), *(line.strip() for line in marked.splitlines())}:
                    if len(words) >= LEAST_PRIVATE:
                        # In JSON form, so that a body is searched without decoding.
                        known[words] = msgspec.json.encode(words)[1:-1]
        # Replaced, never changed in place: another thread may be iterating.
        self._known, self._telling = _newest(known), _newest(telling)

    def _without_repeats(self, body: bytes) -> bytes:
        repeated = [words for words, written in self._known.items() if written in body]
        answered = self._telling and any(name.encode() in body for name in ANSWERED)
        if not repeated and not answered:
            return body
        try:
            payload = msgspec.json.decode(body)
            if not isinstance(payload, dict):
                return body
            spoken = {name: _blank_words(payload[name], repeated) for name in SPOKEN if name in payload}
            telling = self._telling.get(_session_of(payload), ())
            spoken |= {
                name: _blank_tokens(spoken[name], telling) for name in ANSWERED if isinstance(spoken.get(name), str)
            }
            # Unchanged bodies keep their bytes: a spool names a body by them.
            return msgspec.json.encode(payload | spoken) if any(payload[n] != v for n, v in spoken.items()) else body
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self.clean_own(body)


def _newest(known: dict[str, T]) -> dict[str, T]:
    return dict(list(known.items())[-MOST_PRIVATE:])


def _blank_words(value: Any, words: list[str]) -> Any:
    if isinstance(value, str):
        # The longest first: a shorter one may be part of it.
        for one in sorted(words, key=len, reverse=True):
            value = value.replace(one, INSTEAD)
        return value
    return [_blank_words(one, words) for one in value] if isinstance(value, list) else value


def _session_of(payload: dict[str, Any]) -> str:
    return next((str(payload[name]) for name in SESSION_FIELDS if payload.get(name)), "")


def _blank_tokens(answer: str, tokens: Iterable[str]) -> str:
    """Only whole words: a name may be the beginning of another word."""
    named = [re.escape(token) for token in sorted(tokens, key=len, reverse=True) if token in answer]
    return re.sub(rf"(?<!\w)(?:{'|'.join(named)})(?!\w)", INSTEAD, answer) if named else answer
