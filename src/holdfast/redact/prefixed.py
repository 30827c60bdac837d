"""Tokens of issuers that no rule knows: a prefix, or a sign that joins two parts, and a long random run.

Ids are written alike, so a prefix must not be one of theirs, and a run must be more random than an id is."""

import re

from holdfast.core.lazy import lazy_pattern
from holdfast.redact import judge
from holdfast.redact.judge import Span

# One to five words joined by `_` or `-` right before the run.
_PREFIX = lazy_pattern(
    rb"(?:^|(?<=[^A-Za-z0-9_./+=%&-])|(?<=[A-Za-z0-9]=))"
    rb"(?P<words>[A-Za-z][A-Za-z0-9]{1,14}(?:[_-][A-Za-z0-9]{1,20}){0,6})[_-]$"
)
# The further pieces of a token in the URL-safe alphabet.
_MORE = lazy_pattern(rb"(?:[_-]{1,2}[A-Za-z0-9]{1,128}){1,8}|\.[A-Za-z0-9_-]{16,128}")
# What a vendor writes: letters of one case, perhaps a number behind them.
_VENDOR = lazy_pattern(rb"(?:[A-Z]?[a-z]{1,14}|[A-Z]{2,14})\d{0,3}(?:[_-]|$)|[a-z][a-z0-9]{1,5}(?:[_-]|$)")
_NAMED_ID = lazy_pattern(rb"(?i:\bid|[a-z]Id|_id|ident|identifier)[\"'`]?\s{0,3}[:=\x1e ]\s{0,3}\\{0,3}[\"'`]?$")
_PLAIN_PIECE = lazy_pattern(rb"[A-Z]?[a-z]{4,}$|[A-Z]{4,}$")
SECRET_WORDS = "tok token key sec secret pat sk api auth apikey priv pass pwd".split()
"""What a prefix ends with that says what follows it."""
_SAYS_SECRET = lazy_pattern(rb"(?:^|[_-]|[a-z])(?:" + "|".join(SECRET_WORDS).encode() + rb")$", re.IGNORECASE)
_LAST_SAYS = lazy_pattern(rb"(?:^|[_-])(?:" + "|".join(SECRET_WORDS).encode() + rb")$", re.IGNORECASE)
PUBLIC_WORDS = frozenset(
    "toolu msg call chatcmpl cmpl resp req evt event cus pi pm ch sub price prod in inv thread run step file asst batch session sess"
    " user org proj project team item obj id ref commit rev sha sha1 sha256 sha384 sha512 md5 blake2 blake3 hash digest integrity etag cid"
    " image img asset chunk main app index vendor bundle page static css js font icon svg svc srv host node pod job task trace span"
    " build release version pk pub public pubkey publishable example sample data blob cache tmp temp doc page layer rs fc conv"
    " message reasoning phc ca acct seti client txn card src fee dp ba po tr py il si link mandate re order ord cart customer plan product"
    " payment charge refund invoice subscription account company workspace space channel group role policy rule view table row col field"
    " record entry node edge graph vertex block tx addr address wallet nft pool uid uuid guid ulid ksuid nanoid oid pid gid sid cuid"
    " slot section component comp module mod pkg package lib dist out lock snapshot snap backup dump log logs metric alert incident ticket"
    " issue pr comment review thread post reply topic feed story video audio media photo upload attachment avatar thumb dep deploy dpl"
    " deployment env stage region zone cluster ns pvc pv vol volume disk subnet vpc sg eni igw rtb ami eipalloc vm instance inst fn func"
    " lambda queue stream shard part partition offset cursor next prev page req res request response trace corr correlation op operation"
    " act action stp wf workflow exec execution flow pipeline pl art artifact model ft ftjob vs vector emb embedding asn rsn resource rg "
    " usr cust mem member membership contact lead deal company opp quote site domain zone dns cert crt ver srvtoolu gen prj cg dt".split()
)
"""Prefixes of ids: what follows them is to be seen."""
_SET_OF_PUBLIC = frozenset(word.encode() for word in PUBLIC_WORDS)
_NEVER = frozenset(
    b"pk pub public pubkey publishable sha sha1 sha256 sha384 sha512 md5 hash digest integrity commit".split()
)
_HASH_BEFORE = lazy_pattern(rb"(?i:sha-?\d{1,3}|md5|blake\w{1,3}|hash|digest|integrity|etag)[=:\"' -]{1,3}$")
_HEX_PAIR = lazy_pattern(rb"(?<![A-Za-z0-9._-])(?:[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})[:.]$")
_AFTER_HEX = lazy_pattern(rb"-(?:[0-9a-f]{8}-[0-9a-f]{8}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![0-9A-Za-z-])")
_AFTER_POINT = lazy_pattern(rb"\.(?P<tail>[A-Za-z0-9]{16})(?![A-Za-z0-9._-])")
_DOTTED_PREFIX = lazy_pattern(rb"(?<![A-Za-z0-9._/-])[a-z]{2,6}\.$")
_COUNTED = lazy_pattern(rb"(?<![A-Za-z0-9._|-])\d{1,8}\|$")
_APPLICATION = lazy_pattern(rb"(?<![A-Za-z0-9._|-])\d{14,17}\|$")
_SIGNED = lazy_pattern(rb"[A-Za-z0-9+/=%]{32,}--$")
_USER_ID = lazy_pattern(rb"(?<![A-Za-z0-9._-])\d{15,20}-$")
# A time and a random number in base 62, as ngrok's tokens begin.
_KSUID = lazy_pattern(rb"(?<![A-Za-z0-9._/-])[12][A-Za-z0-9]{26}_$")


_LAST_WORD = lazy_pattern(rb"[A-Za-z0-9]*$")


def may_be_token(text: bytes, start: int, end: int) -> bool:
    """The cheap half of `find_prefixed`: of runs that are surely none there may be thousands in a lock file."""
    sign = text[start - 1 : start]
    if sign in (b"|", b":", b"."):
        return text[start - 2 : start - 1].isdigit() or end - start >= 32
    if sign not in (b"_", b"-"):
        return True
    word = _LAST_WORD.search(text, max(0, start - 32), start - 1)
    return not word or word[0].lower() not in _SET_OF_PUBLIC or text[word.start() - 1 : word.start()] == b"\\"


def find_prefixed(text: bytes, start: int, end: int) -> Span | None:
    """The token of which the run at `start:end` is a part. The native search lists only runs that may be one."""
    sign = text[start - 1 : start]
    if sign in (b"_", b"-"):
        return _find_vendor_token(text, start, end) or _find_signed(text, start, end)
    return _find_joined(text, start, end)


def _find_vendor_token(text: bytes, start: int, end: int) -> Span | None:
    prefix = _PREFIX.search(text, max(0, start - 96), start)
    if not prefix or _HASH_BEFORE.search(text, max(0, prefix.start() - 16), prefix.start()):
        return None
    more = _MORE.match(text, end)
    last = more.end() if more else end
    # The run goes on, so it is a part of a path or of encoded text.
    if text[last : last + 1] in (b".", b"/", b"+", b"=", b"_", b"-") or last - start > 400:
        return None
    words = prefix["words"].replace(b"-", b"_").lower().split(b"_")
    public = _SET_OF_PUBLIC.intersection(words) | ({b"test"} if words[0] == b"test" else set())
    # `mcp_tok_` says more than `mcp_`; a public key stays one.
    if (public and (public & _NEVER or words[-1].decode() not in SECRET_WORDS)) or _NAMED_ID.search(
        text, max(0, prefix.start() - 24), prefix.start()
    ):
        return None
    if not _is_token_body(text[start:last], end - start, prefix["words"]):
        return None
    return prefix.start(), last, "unknown-vendor-token"


_GROUPS = (b"0123456789", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")


def _is_token_body(body: bytes, run: int, prefix: bytes) -> bool:
    counts = [len(body) - len(body.translate(None, group)) for group in _GROUPS]
    says_secret = bool(_SAYS_SECRET.search(prefix))
    if judge.is_placeholder(body) or not (says_secret or _VENDOR.match(prefix)):
        return False
    if run < len(body) and any(_PLAIN_PIECE.match(piece) for piece in re.split(rb"[_.-]", body[run:])):
        return False
    # In a long run chance may well leave fewer changes of class than are asked of a short one.
    random = judge.is_random_part(body[:run]) or (
        judge.looks_random(body[:run]) and (run >= 48 or (run >= 28 and _is_well_mixed(body[:run])))
    )
    if min(counts) < 2 or not random:
        # Of one case: hexadecimal, which hashes are too, or more than that.
        few = min(counts[0], counts[1] + counts[2]) * 6 >= len(body)
        pieces = re.split(rb"[_-]", body)
        whole = run == len(body) and run >= 32
        return few and (says_secret or ((whole or min(map(len, pieces)) >= 18) and _is_base36(body)))
    if run >= 32 and run == len(body):
        return judge.looks_random(body)
    # Shorter or in pieces, as ids of GitHub (`kwDO…`) and those that begin with a time are.
    if body.startswith((b"kwDO", b"kgDO")) or (run == len(body) == 27 and body[:1] in b"123" and not says_secret):
        return False
    least = 20 if _LAST_SAYS.search(prefix) else 24
    return len(body) >= 32 or (len(body) >= least and min(counts) >= (2 if least == 20 else 3))


def _is_well_mixed(run: bytes) -> bool:
    """Digits, and at least a fifth of each case: names in camel case have fewer capitals."""
    digits, uppers, lowers = (len(run) - len(run.translate(None, group)) for group in _GROUPS)
    return digits >= 2 and min(uppers, lowers) * 5 >= len(run)


def _is_base36(body: bytes) -> bool:
    """More letters than hexadecimal has, and in one case."""
    return (body.islower() or body.isupper()) and len(body.translate(None, b"0123456789abcdefABCDEF_-")) * 4 >= len(
        body
    )


def _find_signed(text: bytes, start: int, end: int) -> Span | None:
    """`<content>--<signature>` as Rails writes cookies, and `<number>-<run>`, a token of a user at Twitter."""
    run = text[start:end]
    if text[start - 2 : start] == b"--" and end - start in (40, 64) and run.islower():
        signed = _SIGNED.search(text, max(0, start - 4096), start)
        return (signed.start(), end, "signed-cookie") if signed and judge.looks_random(run) else None
    if 35 <= end - start <= 50 and (user := _USER_ID.search(text, max(0, start - 24), start)):
        random = judge.has_random_tail(run) and not run[1:].isalpha()
        return (user.start(), end, "twitter-token") if random else None
    if 20 <= end - start <= 24 and (first := _KSUID.search(text, max(0, start - 30), start)):
        return (first.start(), end, "ngrok-token") if _is_well_mixed(first[0] + run) else None
    return None


def _find_joined(text: bytes, start: int, end: int) -> Span | None:
    """Two parts with `:`, `.` or `|` between them, each of the length that its issuer gives it."""
    sign, size = text[start - 1 : start], end - start
    if sign == b"|":
        counted = _COUNTED.search(text, max(0, start - 12), start) if 40 <= size <= 48 else None
        if counted and judge.looks_random(text[start:end]):
            return counted.start(), end, "laravel-token"
        application = _APPLICATION.search(text, max(0, start - 20), start) if 24 <= size <= 40 else None
        if application and judge.looks_random(text[start:end]):
            return application.start(), end, "facebook-app-token"
    if sign == b"." and size >= 32 and (word := _DOTTED_PREFIX.search(text, max(0, start - 9), start)):
        random = judge.is_random_part(text[start:end]) and text[end : end + 1] not in (b".", b"_", b"-", b"/", b"(")
        return (word.start(), end, "unknown-vendor-token") if random and _has_both_cases(text[start:end]) else None
    if sign in (b":", b".") and size in (32, 64) and (first := _HEX_PAIR.search(text, max(0, start - 40), start)):
        known = sign == b":" or size == 32
        return (first.start(), end, "two-part-key") if known and judge.looks_random(text[start:end]) else None
    return _find_with_tail(text, start, end)


def _has_both_cases(run: bytes) -> bool:
    return not run.islower() and not run.isupper()


def _find_with_tail(text: bytes, start: int, end: int) -> Span | None:
    """`<32>-<8>-<8>` (Mailgun), `<32>-<uuid>` (Infobip), `<32>.<16>` (Zhipu)."""
    if end - start != 32 or text[start - 1 : start] in (b"-", b"_", b"/", b"."):
        return None
    if text[start:end].translate(None, b"0123456789abcdef"):
        return None
    if more := _AFTER_HEX.match(text, end):
        return start, more.end(), "mailgun-key" if more.end() - end == 18 else "infobip-key"
    more = _AFTER_POINT.match(text, end)
    return (start, more.end(), "two-part-key") if more and judge.is_cased_password(more["tail"]) else None
