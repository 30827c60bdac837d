"""Secrets of many lines: private keys, and the values of a Kubernetes `Secret`."""

import base64
import binascii
import re

from holdfast.core.lazy import lazy_pattern
from holdfast.redact import judge
from holdfast.redact.acceptance import STRING_END
from holdfast.redact.judge import Span
from holdfast.redact.views import UNJUDGED

_BEGIN = lazy_pattern(
    rb"-{4,5} ?BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)? ?-{4,5}|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
)
_END = lazy_pattern(rb"-{4,5} ?END [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)? ?-{4,5}")
# Another key begins, or braces and `$` show a template: what lies between is not the body of a key.
_NOT_BODY = lazy_pattern(rb"-{4,5} ?BEGIN |[^\x00-\x7f]|[{}$]")
# In bytes. A private key of 16,384 bits in base64 is shorter.
_LONGEST = 20_000
_LINE = lazy_pattern(rb"[^\r\n\x1f]*(?:\r?\n|\x1f|$)")
# Base64 or a header, perhaps behind `file:12:` of grep, a line number, the sign of a diff, or quotes.
_BODY_LINE = lazy_pattern(
    rb"[ \t]*(?:[\w./-]{1,80}[:-]\d{1,5}[:-]|\d{1,5}[\t:| ]|[+>|-](?![+>|-]))?[ \t\"'+]*(?:\\n|\\r)*"
    rb"(?:[A-Za-z0-9+/=]{1,100}|(?:Proc-Type|DEK-Info|Version|Comment|Hash)[: ][^\r\n]{0,100}|)(?:\\n|\\r)*[ \t\"',+\\)]*\r?\n?\x1f?$"
)
# The body in one string, its line breaks written as escapes (once or several times over).
_ESCAPED_BODY = lazy_pattern(rb"(?:\\{1,7}[nr]|[A-Za-z0-9+/=\s]){16,}")
_INLINE_HEADERS = lazy_pattern(
    rb"(?:\s|\\{1,7}[nr])*(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash): ?[^\s\\]{1,100}(?:\s|\\{1,7}[nr])+){1,5}"
)
"""The headers of a key whose lines were joined to one."""
_BODY_RUN = lazy_pattern(rb"[A-Za-z0-9+/=]{16,}")
_REFUSED = 4
"""What it costs to see that there is nothing, in units of work.py."""
KEY_ANCHORS = ("PRIVATE KEY",)
PUTTY_ANCHORS = ("Private-Lines:",)
SECRET_ANCHORS = (
    "kind: Secret",
    'kind": "Secret',
    'kind":"Secret',
    'kind\\": \\"Secret',
    "kind\x1eSecret",
    "stringData",
)
# Between its lines: indents, signs of comments and quotes, escapes, and the place that grep names.
_BETWEEN_LINES = rb"(?:[\s>|\"',+#*]|\\{1,4}[nr]|[\w./-]{1,60}:\d{1,4}:){1,24}"
_PUTTY = lazy_pattern(
    rb"Private-Lines: ?\d{1,3}" + _BETWEEN_LINES + rb"(?P<body>[A-Za-z0-9+/]{40,80}={0,2}"
    rb"(?:" + _BETWEEN_LINES + rb"[A-Za-z0-9+/]{4,80}={0,2}(?![\w-]|:)){0,60})"
)


def find_private_key(text: bytes, start: int, end: int) -> Span | None:
    """From `-----BEGIN … PRIVATE KEY` to its end; without an end as far as lines of a key go; or back from an end."""
    # The anchor stands in the middle of the line; words such as `ENCRYPTED` come before it.
    first = max(0, start - 50)
    begin = next(
        (m for m in _BEGIN.finditer(text, first, min(len(text), end + 20)) if m.start() <= start < m.end()), None
    )
    if begin:
        closing = _next_end(text, begin.end())
        # Without these checks the text between two unrelated marks would be removed.
        body = (begin.end(), closing.start()) if closing else (0, 0)
        if closing and _BODY_RUN.search(text, *body) and not _NOT_BODY.search(text, *body):
            return begin.start(), closing.end(), "private-key"
        stop = _lines_after(text, begin.end())
        return (
            (begin.start(), stop, "private-key")
            if stop > begin.end() and _BODY_RUN.search(text, begin.end(), stop)
            else None
        )
    return _find_tail(text, start, end)


def _next_end(text: bytes, at: int) -> re.Match[bytes] | None:
    """The end of the key, if the next mark is one: only the text up to that mark is looked at."""
    mark = text.find(b"PRIVATE KEY", at, at + _LONGEST)
    return _END.search(text, max(at, mark - 60), mark + 30) if mark >= 0 else None


def _lines_after(text: bytes, at: int) -> int:
    """Where the lines of base64 end. Whatever else is on the first line ends it at once."""
    stop = at
    # At most 400 lines of 400 bytes, so that a long text costs no more.
    for _ in range(400):
        line = _LINE.match(text, at, min(len(text), at + 400))
        if not line or line.end() == at or not _BODY_LINE.match(line[0]):
            break
        stop = at = line.end()
    while stop > 0 and text[stop - 1] in b"\r\n\x1f":
        stop -= 1
    headers = _INLINE_HEADERS.match(text, max(at, stop))
    escaped = _ESCAPED_BODY.match(text, headers.end() if headers else max(at, stop), at + _LONGEST)
    return max(stop, escaped.end() if escaped else 0)


def _find_tail(text: bytes, start: int, end: int) -> Span | None:
    """The last lines of a key whose beginning was cut off."""
    closing = next(
        (m for m in _END.finditer(text, max(0, start - 50), min(len(text), end + 20)) if m.start() <= start < m.end()),
        None,
    )
    if not closing:
        return None
    at = closing.start()
    for _ in range(400):
        line_start = max(text.rfind(b"\n", max(0, at - 300), at - 1), text.rfind(b"\x1f", max(0, at - 300), at - 1)) + 1
        line = text[line_start:at]
        # Words with spaces are prose, not a line of base64.
        if line_start >= at or not _BODY_LINE.match(line) or b" " in line.strip():
            break
        at = line_start
    return (at, closing.end(), "private-key") if _BODY_RUN.search(text, at, closing.start()) else None


def find_putty_key(text: bytes, start: int, _end: int) -> Span | None:
    match = _PUTTY.match(text, start)
    return (*match.span("body"), "putty-private-key") if match else None


# The key `data` or `stringData` in YAML, in JSON, and in strings that were taken out of JSON.
_DATA = lazy_pattern(rb"(?:^|[\n\x1e\x1f{,\"'])[ \t]*[\"']?(?:data|stringData)\\{0,3}[\"']?(?:[ \t]*:|\x1e)")
# YAML with indent, JSON with quotes, or taken out of JSON; then a value of one line.
_ENTRY = lazy_pattern(
    rb"(?:\r?\n[ \t]+[\"']?[\w.-]{1,80}[\"']?:[ \t]*(?!\||>)[\"']?"
    rb"|[\"'][\w.-]{1,80}\\{0,3}[\"']\s{0,3}:\s{0,3}\\{0,3}[\"']|[\w.-]{1,80}\x1e)"
    rb"(?P<value>[^\s\"'\\\x1e\x1f]{4,20000}(?: [a-z0-9]{2,20}){0,24})"
)
# In bytes before and after the anchor.
_DOCUMENT = 16_000
_MOST_DATA = 24


def find_secret_values(text: bytes, start: int, end: int) -> list[Span] | int:
    """Every value under `data` or `stringData` of the document that says `kind: Secret`."""
    # `---` separates documents of YAML: only the one that holds the anchor counts.
    first = max(text.rfind(b"\n---", max(0, start - _DOCUMENT), start), max(0, start - _DOCUMENT))
    last = text.find(b"\n---", end, end + _DOCUMENT)
    last = last if last >= 0 else min(len(text), end + _DOCUMENT)
    if text.startswith(b"stringData", start):  # only what stands under it
        data = _DATA.search(text, max(0, start - 40), end + 4)
        return _secret_entries(text, data.end(), last) if data else _REFUSED
    spans: list[Span] = []
    at = first
    for _ in range(_MOST_DATA):
        data = _DATA.search(text, at, last)
        if not data:
            break
        entries = _secret_entries(text, data.end(), last)
        # Where none follows at all there is none under a later `data` either, and each look reads to the end.
        if not entries and not _ENTRY.search(text, data.end(), last):
            break
        spans += entries
        at = entries[-1][1] if entries else data.end()
    return spans


def work_of_document(text: bytes, start: int, end: int) -> int:
    """How much there is to read for `find_secret_values`, in units of work.py."""
    first = max(text.rfind(b"\n---", max(0, start - _DOCUMENT), start), start - _DOCUMENT, 0)
    last = text.find(b"\n---", end, end + _DOCUMENT)
    last = last if last >= 0 else min(len(text), end + _DOCUMENT)
    # Below `stringData` everything is an entry; elsewhere `data` is looked for first.
    return _REFUSED + ((last - start) // 36 if text.startswith(b"stringData", start) else (last - first) // 72)


def _secret_entries(text: bytes, at: int, last: int) -> list[Span]:
    spans: list[Span] = []
    depth = _indent_at(text, at)
    for entry in _ENTRY.finditer(text, at, last):
        if (
            # A line with no more indent than `data` itself ends the block.
            entry.start() < len(text)
            and text[entry.start() : entry.start() + 1] in b"\r\n"
            and _line_indent(entry[0]) <= depth
        ):
            break
        value = entry["value"]
        # Templates of Helm and the like stand for the value.
        if not value.startswith((b"$", b"{", b"<", b"[")):
            spans.append((*entry.span("value"), "kubernetes-secret"))
    return spans


def _indent_at(text: bytes, at: int) -> int:
    line = text[text.rfind(b"\n", 0, at) + 1 : at]
    return len(line) - len(line.lstrip(b" \t"))


def _line_indent(line: bytes) -> int:
    line = line.lstrip(b"\r\n")
    return len(line) - len(line.lstrip(b" \t"))


INSERT_ANCHORS = ("VALUES", "values", "Values")
# The list of columns; rows of values follow it, with commas between them.
_INSERT = lazy_pattern(rb"\((?P<columns>[^()]{1,600})\)(?:\s|\\[nrt]){0,8}VALUES(?:\s|\\[nrt]){0,8}\(", re.IGNORECASE)
_NEXT_ROW = lazy_pattern(rb"(?:\s|\\[nrt]){0,40}\)(?:\s|\\[nrt]){0,40},(?:\s|\\[nrt]){0,40}\(")
_MOST_ROWS = 60
_SECRET_COLUMN = lazy_pattern(rb"passw|passwd|secret|api_?key|token|pwd|private_?key", re.IGNORECASE)
# A text, or anything else up to the next comma: a number, a name, a call with at most one more in it.
_ITEM = lazy_pattern(
    rb"\s*(?:[NEB]?'(?P<value>(?:[^']|''){0,2000})'|(?:[^,'()]|\((?:[^()]|\([^()]{0,80}\)){0,200}\)){0,200})\s*(?P<comma>,)?"
)


def find_inserted(text: bytes, start: int, end: int) -> list[Span] | int:
    """`INSERT INTO users (name, password) VALUES ('ada', '…'), …`: values by the names of their columns."""
    # In undecoded JSON the line break before VALUES is written as an escape.
    if not text[max(0, start - 5) : start].rstrip(b" \t\r\n").endswith((b")", b")\\n", b")\\r")):
        return _REFUSED
    for insert in _INSERT.finditer(text, max(0, start - 620), min(len(text), end + 40)):
        if insert.start() < start < insert.end():
            return _inserted_rows(text, insert) if _SECRET_COLUMN.search(insert["columns"]) else 3 * _REFUSED
    return 3 * _REFUSED


def _inserted_rows(text: bytes, insert: re.Match[bytes]) -> list[Span]:
    columns, spans = insert["columns"].split(b","), list[Span]()
    row: re.Match[bytes] | None = insert
    for _ in range(_MOST_ROWS):
        if row is None:
            return spans
        end = _inserted_passwords(text, columns, row.end(), spans)
        row = _NEXT_ROW.match(text, end)
    return [*spans, (row.end(), _end_of_rows(text, row.end()), UNJUDGED)] if row else spans


def _end_of_rows(text: bytes, at: int) -> int:
    string = text.find(STRING_END, at)
    end = text.find(b");", at, string if string >= 0 else len(text))
    return end if end >= 0 else string if string >= 0 else len(text)


def _inserted_passwords(text: bytes, columns: list[bytes], at: int, spans: list[Span]) -> int:
    """Where the row ends; its passwords are added to `spans`."""
    for column in columns:
        item = _ITEM.match(text, at, min(len(text), at + 4000))
        if not item or item.end() == at:
            break
        if item["value"] and _SECRET_COLUMN.search(column) and judge.is_mixed_password(item["value"]):
            spans.append((*item.span("value"), "sql-password"))
        at = item.end()
        if not item["comma"]:
            break
    return at


JWK_ANCHORS = ('"kty"', '\\"kty', "kty\x1e")
# A brace ends the search: `d` of another object is not looked at. `k` is the key of `oct`, the others those of RSA.
_JWK_PART = lazy_pattern(
    rb"[{}]|(?:[\"'](?:d|k|p|q|dp|dq|qi)\\{0,3}[\"']\s{0,3}:\s{0,3}\\{0,3}[\"']|[\x1e\x1f](?:d|k|p|q|dp|dq|qi)\x1e)"
    rb"(?P<secret>[A-Za-z0-9_-]{20,2000})"
)


def find_private_jwk(text: bytes, start: int, end: int) -> list[Span]:
    """The private parts of a JSON Web Key, in the same object behind or before its type."""
    spans: list[Span] = []
    for first, last in ((end, end + 3000), (max(0, start - 3000, text.rfind(b"{", 0, start) + 1), start)):
        for part in _JWK_PART.finditer(text, first, last):
            if not part["secret"]:
                break
            spans.append((*part.span("secret"), "jwk-private"))
    return spans


# Cookies, and logins in base64 as headers and registries write them.

Q = rb"\\{0,7}[\"'`]"
# Without the first letter, so that both cases are found by one anchor.
COOKIE_ANCHORS = ("ookie", "OOKIE")
BASIC_ANCHORS = ("asic ", "auth", "AUTH")
# A cookie's name and value as RFC 6265 writes them, and no end mark of a string.
_PAIR = rb"[A-Za-z0-9!#$%&*+.^_|~-]{1,100}=[^\s\"'`\\;,<>{}()\[\]\x1e\x1f]{0,4096}"
_MOST_COOKIES = 60
_COOKIES = lazy_pattern(
    rb"(?i:ookies?)(?:"
    + Q
    + rb")?(?:\s{0,4}[:=,\x1e]\s{0,4}|\s{1,4})(?:"
    + Q
    + rb")?(?P<cookies>"
    + _PAIR
    + rb"(?:;\s?"
    + _PAIR
    + rb"){0,%d})" % _MOST_COOKIES
)
_ONE = lazy_pattern(rb"([^=;\s]+)=([^;\s\x1f]*)")
_OF_A_SESSION = lazy_pattern(rb"(?i)sess|sid|auth|token|csrf|xsrf|login|remember|jwt|key|secret|pass")
_BASIC = lazy_pattern(
    rb"(?:asic\s{1,4}|(?<![A-Za-z0-9])(?i:auth)(?:"
    + Q
    + rb"\s{0,4})?[:=\x1e]\s{0,4}(?:"
    + Q
    + rb")?(?:Basic\s)?)(?P<basic>[A-Za-z0-9+/_-]{6,4096}={0,2})"
)


def work_of_cookies(text: bytes, _start: int, end: int) -> int:
    """The same for `find_cookies`: each of the line is looked at."""
    line = text[end : end + 4096].partition(b"\n")[0]
    return 2 * _REFUSED + 5 * min(_MOST_COOKIES, line.count(b";"))


def find_cookies(text: bytes, start: int, _end: int) -> list[Span] | int:
    match = _COOKIES.match(text, start)
    if not match:
        return _REFUSED
    pairs = _ONE.finditer(text, *match.span("cookies"))
    return [(*one.span(2), "cookie") for one in pairs if _is_secret_cookie(one[1], one[2])]


def _is_secret_cookie(name: bytes, value: bytes) -> bool:
    if judge.looks_random(value) and len(value) >= 12:
        return True
    is_opaque = (
        len(value) >= 8 and not judge.is_word(value) and not judge.is_reference(value) and not judge.is_code(value)
    )
    return is_opaque and bool(_OF_A_SESSION.search(name)) and not value.isdigit()


def find_basic_login(text: bytes, start: int, _end: int) -> Span | None:
    match = _BASIC.match(text, start)
    if not match or not is_encoded_login(match["basic"]):
        return None
    return (*match.span("basic"), "authorization")


def is_encoded_login(value: bytes) -> bool:
    """Base64 of `name:password`."""
    try:
        name, colon, password = base64.b64decode(
            # Encoders often leave the padding out.
            value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4),
            altchars=None,
            validate=True,
        ).partition(b":")
    except (binascii.Error, ValueError):
        return False
    return (
        bool(colon and name and password)
        and all(32 < byte < 127 for byte in name)
        and all(32 <= byte < 127 for byte in password)
    )
