"""Reads from a query's text its tokens, names, phrases, and the kinds of files it means."""

import msgspec

from holdfast.analysis.search.tokens import STOPWORDS, distinct_words, find_identifiers, identifier_parts
from holdfast.core.lazy import lazy_pattern

# Words joined by . :: # -> / or \, and Ruby's ! or ? at the end.
_NAME = lazy_pattern(r"^[\w$]+(?:(?:\.|::|#|->|/|\\)[\w$]+)*[!?]?$")
_SEPARATORS = lazy_pattern(r"::|#|->|/|\\")
# The apostrophe of "don't" opens no quotation.
_QUOTED = lazy_pattern(r"`([^`]+)`|\"([^\"]+)\"|(?<!\w)'([^']+)'(?!\w)")
_JOINED = lazy_pattern(r"\w[./]\w")
_EDGES = "`'\"(),;:?!{}[]<>"
MOST_NAMES = 8
MOST_WORDS = 32
SHORTEST_QUOTE = 3
# Up to so many words a query may be a name typed apart.
MOST_WORDS_OF_A_NAME = 3
_QUESTION_WORDS = frozenset(
    (
        "decides decide decided code works work made makes make sure one ones existing add new another more list place want "
        "need used use get gets way something somebody someone here put called between several each every all any also "
        "before after must not no too very"
    ).split()
)

# A digit followed by a hex letter, or a digest with a digit in it.
_VALUE = lazy_pattern(r"(?i)^(?:\d+[a-f][0-9a-f]*|0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{7,})$")

_ABOUT_TESTS = frozenset(("tested", "unittest", "unittests", "spec", "specs", "fixture", "fixtures", "mock", "mocks"))
_TEST_PHRASE = lazy_pattern(
    r"(?i)\btests? (?:for|of|that|which|case|cases|suite|file|files)\b|\b(?:unit|integration) tests?\b"
)
_ABOUT_DOCUMENTS = lazy_pattern(
    r"(?i)^\W*(?:how (?:do|can|should) (?:i|we|you|one)\b|should (?:i|we|you|the)\b|what does .{1,60} mean\b|explain\b|"
    r"instructions?\b)|\b(?:documentation|documented|docs?|readme|guide|manual|tutorial|faq|instructions|explained|"
    r"contribut\w+|conventions?|guidelines?|pull requests?|changelog|licen[cs]e)\b"
)
_ABOUT_CONFIGURATION = lazy_pattern(
    r"(?i)\b(?:configuration file|config file|docker|compose|dockerfile|systemd|workflow|pipeline|ci job|github action|"
    r"makefile|helm|yaml|toml|json schema|manifest|service file|unit file|example config\w*)\b"
)
_ABOUT_STYLE = lazy_pattern(
    r"(?i)\b(?:css|s[ac]ss|less|styles?|styl(?:ed|ing)|stylesheets?|colou?rs?|fonts?|theme[ds]?|dark|layout|margins?|padding|"
    r"hover|animat\w+|responsive)\b|^\.[\w-]+"
)
_ABOUT_TRANSLATIONS = lazy_pattern(r"(?i)\b(?:translat\w+|locali[sz]\w+|i18n|l10n|locales?)\b")
# Asks for one more of something: then the place where the others are listed is meant (`ranking`).
_TASK = lazy_pattern(
    r"(?i)^\W*(?:add|adding|create|implement|support|introduce|extend|register|i want|i need|we need|a new|an? additional)\b"
    r"|\bwhere (?:are|is|do|does) (?:the |all )?(?:list|existing|others?|they|routes|built-in|defaults?)\b|\bregistered\b"
)


class Query(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    words: tuple[str, ...]
    """Parts of all words, lowercase, in order, without repeats."""
    names: tuple[str, ...]
    """What can only be a name (`parse_status`, `web.timeout`, `--no-audit`), or the whole query if it is one."""
    phrases: tuple[str, ...]
    """What is in quotation marks."""
    is_name: bool
    about_tests: bool = False
    about_documents: bool = False
    about_configuration: bool = False
    about_translations: bool = False
    about_style: bool = False
    is_task: bool = False
    values: frozenset[str] = frozenset()
    """Pieces of numbers and digests filled into a message; they say nothing of its source."""

    @property
    def telling_words(self) -> tuple[str, ...]:
        """Without stopwords, and in a sentence without question words."""
        content_words = tuple(word for word in self.words if word not in STOPWORDS and word not in self.values)
        if len(content_words) > MOST_WORDS_OF_A_NAME:
            telling = tuple(word for word in content_words if word not in _QUESTION_WORDS)
            # At least two words must remain to tell one chunk from another.
            content_words = telling if len(telling) > 1 else content_words
        return (content_words or self.words)[:MOST_WORDS]


def parse_query(text: str) -> Query:
    text = text.strip()
    quoted = [next(part for part in match if part) for match in _QUOTED.findall(text)]
    words = distinct_words([text])
    values = value_pieces(text)
    return Query(
        values=values if len(values) < len(words) else frozenset(),
        text=text,
        words=tuple(words),
        names=tuple(names_in(text)),
        phrases=tuple(one for one in quoted if len(one) >= SHORTEST_QUOTE),
        is_name=is_name(text),
        about_tests=not _ABOUT_TESTS.isdisjoint(words) or bool(_TEST_PHRASE.search(text)),
        about_documents=bool(_ABOUT_DOCUMENTS.search(text)),
        about_configuration=bool(_ABOUT_CONFIGURATION.search(text)),
        about_translations=bool(_ABOUT_TRANSLATIONS.search(text)),
        about_style=bool(_ABOUT_STYLE.search(text)),
        is_task=bool(_TASK.search(text)),
    )


def value_pieces(text: str) -> frozenset[str]:
    """The pieces of `3fa0` and `0x7f` when split into words; not of `utf8` or `v2`, which begin with letters."""
    tokens = find_identifiers(text)
    pieces = {part for token in tokens if _VALUE.match(token) for part in identifier_parts(token)}
    return frozenset(pieces - {part for token in tokens if not _VALUE.match(token) for part in identifier_parts(token)})


def is_name(text: str) -> bool:
    return bool(_NAME.match(_trim_word(text)))


def names_in(text: str) -> list[str]:
    """The whole query if it is a name, else its words that can only be names."""
    words = text.split()
    if len(words) == 1:
        return [_trim_word(text)] if _trim_word(text) else []
    # A whole file may be pasted as a query.
    candidates = (_trim_word(word) for word in words[:400])
    # In so few words a hyphen belongs to a name (`css class entry-swipe`), in a sentence it may join any two words.
    joined = len(words) <= MOST_WORDS_OF_A_NAME
    names = (word for word in candidates if word and (_only_a_name(word) or (joined and "-" in word.strip("-"))))
    return list(dict.fromkeys(names))[:MOST_NAMES]


def dotted_name(name: str) -> str:
    """`Class::method`, `Class#method` and `Class->method` as they are stored."""
    return _SEPARATORS.sub(".", name)


def _trim_word(word: str) -> str:
    return word.strip(_EDGES).rstrip(".").removesuffix("()").strip(_EDGES)


def _has_case_inside(name: str) -> bool:
    """`parseStatus`: parts separated by case alone."""
    is_mixed = not name.islower() and not name.isupper() and "-" not in name
    return is_mixed and len(identifier_parts(name)) > 1 and any(c.isupper() for c in name[1:])


def _only_a_name(word: str) -> bool:
    inner = word.strip("_-./:")
    if len(inner) < 2:
        return False
    is_joined = "_" in inner or "::" in word or "->" in word
    is_marked = word.startswith(("--", "/", "$", ".")) and inner[0].isalnum() and len(inner) > 2
    is_path = not word[0].isdigit() and _JOINED.search(word) is not None
    is_constant = len(inner) > 3 and inner.isupper() and inner.isalpha()
    return any((is_joined, is_marked, is_path, is_constant, _has_case_inside(inner)))
