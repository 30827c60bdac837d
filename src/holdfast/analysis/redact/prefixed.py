"""Finds tokens of unknown issuers: a prefix or separator, and a long random run."""

# Ids look alike, so a prefix must not be one of an id, and a run must be more random than an id.

import re

from holdfast.analysis.redact import judge
from holdfast.analysis.redact.rule_data import PATTERNS, RULES, WORDS, RunRule
from holdfast.analysis.redact.spans import Span
from holdfast.core.lazy import lazy_pattern

_LONGEST = 400


def may_be_token(text: bytes, start: int, end: int) -> bool:
    """The cheap half of `find_prefixed`: a lock file may have thousands of runs that are none."""
    sign = text[start - 1 : start]
    if sign in (b"|", b":", b"."):
        return text[start - 2 : start - 1].isdigit() or end - start >= 32
    if sign not in (b"_", b"-"):
        return True
    word = PATTERNS.last_prefix_word.search(text, max(0, start - 32), start - 1)
    return not word or word[0].lower() not in WORDS.public_prefix or text[word.start() - 1 : word.start()] == b"\\"


def find_prefixed(text: bytes, start: int, end: int) -> Span | None:
    """The token containing the run at `start:end`. The native search lists only runs that may be one."""
    sign = text[start - 1 : start]
    if sign in (b"_", b"-") and (token := _find_vendor_token(text, start, end)):
        return token
    return next((span for rule in _RUNS if (span := rule.find(text, start, end))), None)


class _Run:
    """A run in the form of its issuer."""

    def __init__(self, rule: RunRule) -> None:
        self._rule, self._sign = rule, rule.sign.encode()
        self._before, self._after = lazy_pattern(rule.before.encode()), lazy_pattern(rule.after.encode())
        self._form = lazy_pattern(rule.form.encode())
        self._accept = judge.JUDGES[rule.judge]

    def find(self, text: bytes, start: int, end: int) -> Span | None:
        rule = self._rule
        if (rule.sign and text[start - 1] not in self._sign) or not rule.has_size(end - start):
            return None
        before = self._before.search(text, max(0, start - rule.reach), start)
        after = self._after.match(text, end)
        if not before or not after or not self._form.match(text[start:end]):
            return None
        judged = after["judged"] if "judged" in after.re.groupindex else text[start:end]
        token = before.start(), after.end(), rule.kind
        return token if self._accept(text[token[0] : end] if rule.whole else judged) else None


_RUNS = [_Run(rule) for rule in RULES.runs]


def _find_vendor_token(text: bytes, start: int, end: int) -> Span | None:
    prefix = PATTERNS.vendor_prefix.search(text, max(0, start - 96), start)
    if not prefix or PATTERNS.hash_before.search(text, max(0, prefix.start() - 16), prefix.start()):
        return None
    more = PATTERNS.more_pieces.match(text, end)
    last = more.end() if more else end
    # The run continues, so it is part of a path or of encoded text.
    if text[last : last + 1] in (b".", b"/", b"+", b"=", b"_", b"-") or last - start > _LONGEST:
        return None
    if _is_public(prefix["words"]) or PATTERNS.named_id.search(text, max(0, prefix.start() - 24), prefix.start()):
        return None
    body = text[start:last]
    if judge.is_placeholder(body) or not _is_token_body(body, end - start, prefix["words"]):
        return None
    return prefix.start(), last, "unknown-vendor-token"


def _is_public(prefix: bytes) -> bool:
    words = prefix.replace(b"-", b"_").lower().split(b"_")
    public = WORDS.public_prefix.intersection(words) | ({b"test"} if words[0] == b"test" else set())
    # `mcp_tok_` says more than `mcp_`; a public key stays one.
    return bool(public) and (not public.isdisjoint(WORDS.never_secret) or words[-1] not in WORDS.secret_prefix)


def _is_token_body(body: bytes, run: int, prefix: bytes) -> bool:
    """Whether the text after the prefix, whose first `run` bytes are one run, is more random than an id."""
    says_secret = bool(PATTERNS.says_secret.search(prefix))
    if not (says_secret or PATTERNS.vendor_word.match(prefix)):
        return False
    if any(map(PATTERNS.plain_piece.match, re.split(rb"[_.-]", body[run:]))):
        return False
    counts = judge.count_groups(body)
    if min(counts) < 2 or not _is_random_run(body[:run]):
        is_mixed = min(counts[0], counts[1] + counts[2]) * 6 >= len(body)
        return is_mixed and (says_secret or _is_base36(body, run))
    if len(body) == run >= 32:
        return judge.looks_random(body)
    return not _is_id(body, run, says_secret) and _is_mixed_enough(body, prefix, min(counts))


def _is_id(body: bytes, run: int, says_secret: bool) -> bool:
    """As GitHub ids (`kwDO…`) and ids that begin with a time."""
    has_time = run == len(body) == 27 and body[:1] in b"123" and not says_secret
    return has_time or body.startswith(tuple(WORDS.public_start))


def _is_mixed_enough(body: bytes, prefix: bytes, rarest: int) -> bool:
    least, rare = (20, 2) if PATTERNS.last_says.search(prefix) else (24, 3)
    return len(body) >= 32 or (len(body) >= least and rarest >= rare)


def _is_random_run(run: bytes) -> bool:
    # In a long run chance may leave fewer changes of class than are required of a short one.
    if judge.is_random_part(run):
        return True
    return judge.looks_random(run) and (len(run) >= 48 or (len(run) >= 28 and judge.is_well_mixed(run)))


def _is_base36(body: bytes, run: int) -> bool:
    """In one case, with more letters than hexadecimal has, and without short pieces."""
    is_long = run >= 32 if run == len(body) else min(map(len, re.split(rb"[_-]", body))) >= 18
    beyond_hex = len(body.translate(None, b"0123456789abcdefABCDEF_-"))
    return is_long and (body.islower() or body.isupper()) and beyond_hex * 4 >= len(body)
