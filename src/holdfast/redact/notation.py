"""How a value is put to a name: the patterns of every notation, and where a value ends."""

import re
from collections.abc import Iterable
from functools import cache

from holdfast.core.lazy import lazy_pattern

# A quote, behind as many backslashes as JSON inside JSON inside JSON puts before it.
Q = rb"\\{0,7}[\"'`]"
# Words that may end a name without making it the name of something else.
TAIL_WORDS = (
    "access key base value string b64 base64 enc prod production dev development test testing staging live old new primary"
    " secondary current main admin root default env plain plaintext raw header hash digest text field data secret token s"
    " private db database v"
).split()
TAIL = rb"(?P<tail>(?:[_.-]?(?:" + "|".join(TAIL_WORDS).encode() + rb"|\d{1,3})(?![a-z])){0,3})"
# A type between name and sign: `: str =`, ` string =`, ` As String =`.
TYPE = rb"(?:::?\s?[&A-Za-z_'\[*?][A-Za-z0-9_.<>\[\]|&' ]{0,40}(?==)|\s(?:string|String|str|text|varchar)\s(?==)|\sas\s[A-Za-z.]{3,30}\s(?==))?"
LINE = rb"(?:\\{0,3}\\[rn]|\r?\n)"
# Signs of assignment; the bytes are the wide colon and equals sign of CJK, \x1e ends a key of JSON.
SIGN = rb"(?:=>|\xe2\x86[\x90\x92]|\|\|=|:=|\?=|\+=|={1,3}|!=|:(?!:)|\xef\xbc\x9a|\xef\xbc\x9d|\x1e|<-)"
GAP = rb"[ \t]{0,40}"
_PREFIX = rb"(?:[bfruN@$]{1,2}(?=[\"'])|<<(?=\"))?"
"""What may stand right before the quote of a string."""
WRAPPER = (
    rb"(?:Some|Just|Ok|Secret|SecretStr|SecretString|SecretBytes|Password|Token|ApiKey|String::from|NSString|GuardedString|Sensitive|str|bytes)"
    rb"(?:\.new|::new|\.of|::from)?\(\s{0,16}(?:[a-z_]{1,16}\s?[=:]\s?)?(?=[\"'])"
)
"""`Some("…")`, `Token(value='…')`: what is put around a value and changes nothing."""
# Spaces and line breaks, and the escapes that stand for them.
_GAPS = rb"(?:\s|\\{1,4}[rnt]){0,24}"
VALUE_WORD = rb"(?:value|val|default|plaintext|secret_string|stringvalue|parametervalue|content)"
# The value may stand behind a tag of YAML, on the next line, in a block of YAML, in parentheses, or behind a prefix such as b"".
ASSIGN = (
    GAP
    + TYPE
    + SIGN
    + GAP
    # An address before a string, as a debugger prints it; a constructor around it.
    + rb"(?:0x[0-9a-f]{3,16}\s(?=[\"']))?(?:"
    + WRAPPER
    + rb")?"
    + rb"(?:!{1,2}[A-Za-z]{2,16}[ \t]{1,4})?(?:[>|][+-]?[ \t]{0,4})?(?:\\?"
    + LINE
    + rb"[ \t]{1,40})?\(?(?:(?<!\()|(?=[\"']))(?:[bfruN@$]{1,2}(?=[\"']))?"
    # A raw string of C++, one of Ruby or Perl, bold in Markdown, braces of ODBC.
    rb"(?:R\"\(|%[qQwW]?[(\[{|]|qq?[({](?=\S)|\*\*(?=[^\s*])|\{(?=[^\s{}]{6,64}\};))?"
)
# Colours that a terminal program puts between name, sign and value.
ANSI = rb"(?:(?:\x1b|\\{1,4}u001[bB]|\\x1b|\\033|\\e)\[[0-9;]{0,12}m){0,3}"
# The name of each notation and its pattern. The first that matches counts, so the loose ones come last.
_CHOICES = (
    (b"orelse", rb"[)\]]{0,2}\s{0,4}(?:\|\||\?\?|or|\?:|:-)\s{1,4}(?=" + Q + rb")|\)\s{0,2}\{\s{0,2}(?=" + Q + rb")"),
    (b"block", rb"\s{0,3}[:=]?\s{0,3}\{(?:[^{}]{0,160}?[\s\"'\\,])?" + VALUE_WORD
        + rb"(?:" + Q + rb")?\s{0,3}[:=]\s{0,3}(?=" + Q + rb")"),
    (b"inner", rb"\x1e(?:" + VALUE_WORD + rb"|string|S)\x1e"),
    (b"prop", rb"(?:\sby lazy)?\s{0,3}\{(?:[^{}\"']{0,40}\}\s{0,3}=)?\s{0,3}(?=" + Q + rb")"),
    (b"pair", rb"(?:\x1f|,)?(?:\s|" + LINE + rb"){0,20}"
        # Between name and value stand further fields: `"secret": true,`.
        rb"(?:(?:" + Q + rb")?[a-z]{2,12}(?:" + Q + rb")?:\s{0,2}(?:true|false|null|\d{1,6}|" + Q + rb"[a-z]{2,12}" + Q + rb"),\s{0,20}){0,3}"
        rb"(?:" + Q + rb")?(?:" + VALUE_WORD
        + rb")(?:" + Q + rb")?(?:\s{0,3}[:=]\s{0,3}|\x1e)"),
    (b"plist", rb"(?:</(?:key|name)>|\s{0,3}>)\s{0,8}<(?:string|value)>"),
    (b"list", GAP + SIGN + GAP + rb"(?:\[" + _GAPS + rb"(?=" + Q + rb")|" + LINE + rb"[ \t]{0,40}- )"),
    (b"assign", ASSIGN),
    (b"comma", rb"(?<=[\"'`a-z])\s{0,4},(?:[ \t]{0,16}|\s{0,4})(?:" + _PREFIX + rb")(?=" + Q + rb")"),
    (b"cell", rb"\s{0,3}</(?:td|th|dt)>\s{0,8}<(?:td|dd)[^<>]{0,60}>\s{0,8}(?:<[a-z]{1,6}>){0,2}(?=[^\s<])"),
    (b"xml", rb"(?:\s[\w:.-]{1,30}=" + Q + rb"[^\"'<>]{0,60}" + Q + rb"){0,3}\s{0,3}(?:>|&gt;)\s{0,8}"),
    (b"table", rb"[ \t]{0,40}[|\t][ \t]{0,40}(?=[^\s|=])|,(?=[^\s,|=\"'])"),
    (b"index", rb"\s?\]?\)?\s{0,3}(?:\|\||\?\?)?=(?!=)>?\s{0,12}(?:string\(\d{1,4}\)\s)?" + _PREFIX),
    (b"fill", rb"[^\"'\x1e\x1f\n]{0,20}(?:" + Q + rb")?[^\"'\x1e\x1f\n]{0,14}"
        rb"\)\.(?:fill|type|pressSequentially|press_sequentially|send_keys|sendKeys|setValue|clear_and_fill)\(\s{0,2}(?=" + Q + rb")"),
    (b"typed", rb"[^\"'\x1e\x1f\n\\]{0,40}(?:\x1f|" + Q + rb"\s{0,2},)"
        rb"(?:[^\x1e\x1f\n]{0,30}(?:\x1e|:)[^\x1e\x1f\n,]{0,60}(?:\x1f|,)){0,3}\s{0,2}"
        rb"(?:" + Q + rb")?(?:text|value)(?:\x1e|" + Q + rb"\s{0,2}:\s{0,2})"),
    (b"space", rb"[ \t]{1,40}(?:\\" + LINE + rb"[ \t]{0,20})?(?:(?:--body|-b|--value|--secret-string|<<<)[ =])?(?=[^\s=:])"),
    (b"call", rb"\(\s{0,2}(?=" + Q + rb")"),
    (b"said", rb""),
)  # fmt: skip
OPEN = rb"(?P<open>\"\"\"|'\'\'|" + Q + rb"(?:\\{1,7}[\"'])?)?"


def _compile_after_name(choices: Iterable[tuple[bytes, bytes]], tail: bytes = TAIL) -> re.Pattern[bytes]:
    named = b"|".join(b"(?P<%b>%b)" % pair for pair in choices)
    return lazy_pattern(
        tail
        + rb"(?P<close>"
        + Q
        + rb")?(?:\s\[[\w* -]{0,40}\](?=:\s))?"
        + ANSI
        + rb"(?:"
        + named
        + rb")"
        + ANSI
        + OPEN
        + rb"(?P<value>)",
        re.IGNORECASE,
    )


_OF_BROWSERS = (b"fill", b"typed")
AFTER_NAME = _compile_after_name(_CHOICES[:-1])
AFTER_NAME_BRIEF = _compile_after_name(pair for pair in _CHOICES[:-1] if pair[0] not in _OF_BROWSERS)
"""The same without what programs that drive a browser write: that is costly to look for, and rare."""
AFTER_WHOLE_NAME = _compile_after_name(
    (pair for pair in _CHOICES[:-1] if pair[0] not in _OF_BROWSERS), tail=rb"(?P<tail>)"
)
"""The same where the name is at its end."""
# A name that goes on may have a tail, which the shorter pattern does not read.
_GOES_ON = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_BROWSER = lazy_pattern(rb"\)\.|\x1f|[\"'`]\s{0,2},")
_BROWSER_REACH = 340


def _has_browser_word(near: bytes) -> bool:
    return b"text" in near or b"value" in near or b")." in near


def after_name(text: bytes, end: int) -> re.Pattern[bytes]:
    """The pattern that reads what follows a name here."""
    # A cheap search rules the costly pattern out at most names.
    if _BROWSER.search(text, end, end + 90) and _has_browser_word(text[end : end + _BROWSER_REACH].lower()):
        return AFTER_NAME
    return AFTER_NAME_BRIEF if end < len(text) and text[end] in _GOES_ON else AFTER_WHOLE_NAME


# Prose: what may stand between name and value (`for the shop`), then "is" in some 20 languages or a sign.
SAID = lazy_pattern(
    rb"(?P<tail>s?)(?P<close>" + Q + rb")?(?:\s(?:prompt|field|box|gestern|heute|ayer|hier|\xd0\xb1\xd0\xb0\xd0\xb7\xd1\x8b))?"
    rb"(?:\s\([^()\r\n]{2,40}\)|,\s[a-z'. ]{2,40}(?=:)|,(?=\s(?:it(?:'s|\sis)|c'est|the\s(?:current|new|old)\sone\sis)\s)|(?:\s[a-z']{1,12}){1,6}(?=:\s))?"
    rb"(?:\s(?:for|of|to|on|in|into|from|at|with|under|between|f\xc3\xbcr|para|pour|per|di|dell'|de|del|della|du|da|do|van|voor|dla|von|der|auf|til|till|f\xc3\xb6r|na|a|al|au|\xd0\xbe\xd1\x82|\xd0\xb4\xd0\xbb\xd1\x8f)\s[^\s:=]{1,40}(?:\s[^\s:=]{1,24}){0,5}?)?(?:\s(?:right now|at the moment))?"
    rb"(?:\s(?:nueva|nuevo|nova|novo|actual|atual|attuale|nuova|nouveau|actuel|ge\xc3\xa4ndert(?=:)))?"
    rb"(?:\s[\xd0\xd1][\x80-\xbf\xd0\xd1]{3,60}(?=\s(?:\xe2\x80\x94|-)\s))?(?:\s(?:that|which))?(?:\s(?:you|we|they|he|she|i)(?:['\xe2\x80\x99]{1,3}(?:re|ve|m))?\s[a-z]{2,12}(?:\s[a-z]{1,12}){0,3}?)?"
    rb"(?:[ \t\xe3\x80\x80]{0,3})(?:"
    rb"(?:(?:was|is|got|has been|have been|been|just) (?:re)?(?:set|changed|updated|rotated|switched|reset) to|back to|(?:has |have )?(?:turned|turns) out to be|would be|must be|happens to be|ended up (?:as|being)|(?:currently |now )?reads|has always been|has been|take|type|enter|auf|para|\xd0\xbd\xd0\xb0|c'est (?:maintenant|d\xc3\xa9sormais)|est (?:maintenant|d\xc3\xa9sormais)|es ahora|agora \xc3\xa9|it(?:'s| is)(?: now| currently)?"
    rb"|is (?:now|just|simply|still|actually|probably|literally|always)|is set to|should be|will be|is|are|was|to"
    rb"|ist (?:jetzt|nun|einfach|immer noch|\xc3\xbcbrigens|aktuell|weiterhin)|ist|the (?:current|new|old) one is|(?:lautet|hei\xc3\x9ft) (?:jetzt|nun|ab sofort)|lautet|hei\xc3\x9ft|heisst|c'est|war|es|est|sera|\xc3\xa8|\xc3\xa9|\xc3\xa4r|er|jest|(?<=na )on|(?<=si )on|je|este|l\xc3\xa0|\xce\xb5\xce\xaf\xce\xbd\xce\xb1\xce\xb9|\xd9\x87\xd9\x8a|\xd7\x94\xd7\x99\xd7\x90"
    rb"|\xe0\xa4\xb9\xe0\xa5\x88|adalah|yra|ir|is currently|used to be|has been set to|has changed to"
    rb"|stands for|era|foi|\xc3\xa9tait|byl[ao]|var|oli|was)(?=[ \t:\"'`])"
    rb"|\xe3\x82\x92|\xeb\xa5\xbc|\xec\x9d\x84|(?:\xe5\xb7\xb2)?(?:\xe6\x94\xb9|\xe8\xae\xbe|\xe8\xae\xbe\xe7\xbd\xae|\xe6\x8d\xa2|\xe6\x9b\xb4\xe6\x96\xb0|\xe4\xbf\xae\xe6\x94\xb9)(?:\xe6\x88\x90\xe4\xba\x86?|\xe4\xb8\xba|\xe6\x88\x90)"
    rb"|['\xe2\x80\x99]{1,3}s(?=\s)|\|\|=|=|:|\xe3\x81\xaf|\xe6\x98\xaf|\xe4\xbf\x82|\xe4\xb8\xba|\xe7\x82\xba|\xec\x9d\x80|\xeb\x8a\x94|\xef\xbc\x9a"
    rb"|\xe0\xb8\x84\xe0\xb8\xb7\xe0\xb8\xad|->|\xe2\x86[\x90\x92]|\xe2\x80\x94|\xe2\x80\x93|-(?=[ \t])|\((?:(?:currently|now|is|it's|it is|aktuell|derzeit|actuellement|actualmente)\s)?(?=[^\s()]{8}))"
    rb"(?P<said>[ \t:]{0,3}|:?[ \t]?(?:\r?\n){1,2}[ \t]{0,12})(?P<open>" + Q + rb")?(?P<value>)", re.IGNORECASE,
)  # fmt: skip


@cache
def _kinds_in(pattern: bytes) -> list[str]:
    return [kind.decode() for kind, _ in _CHOICES[:-1] if b"(?P<%b>" % kind in pattern]


def notation_of(match: re.Match[bytes]) -> str:
    """How the value is put to the name."""
    # By the text of the pattern: the one that matched is not the object that it was asked of.
    pattern = match.re.pattern
    return "said" if pattern == SAID.pattern else next(kind for kind in _kinds_in(pattern) if match[kind] is not None)


IN_QUOTES = {
    b'"': re.compile(rb"[^\"\\\r\n\x1f]*(?:\\(?:\"|(?=[^\"]))[^\"\\\r\n\x1f]*)*"),
    b"'": re.compile(rb"[^'\r\n\x1f]*"),
    b"`": re.compile(rb"[^`\r\n\x1f]*"),
}
# Up to any quote: an escaped one cannot be told from the end.
IN_ESCAPED = lazy_pattern(rb"[^\"'`\\\r\n\x1f]*")
UNQUOTED = lazy_pattern(rb"(?:[^ \t\n\r\f\v\"'`\\<>\x1e\x1f\x1b]+|\\(?=[=:#!]))*")
UNQUOTED_PART = lazy_pattern(
    rb"(?:[^ \t\n\r\f\v\"'`\\<>\x1e\x1f\x1b,;)}\]|&]+|&(?![\s\"'`\\<>\x1e\x1f\x1b&]|$|[\w.%\[\]-]{1,60}=))*"
)
"""The same up to a sign that ends a value within a line. An `&` within a password is none between two parameters or commands."""
TO_STRING_END = lazy_pattern(rb"[^\x1e\x1f]*")
TO_TAG = lazy_pattern(rb"[^<\r\n\x1f]*")
LINE_END = lazy_pattern(rb"[ \t]*(?:$|[\r\n\"'\x1f#]|\\[nr\"])")
# In undecoded JSON a line begins after a quote or the two characters `\n`.
LINE_STARTS = (b"\n", b"\r", b"\x1e", b"\x1f", b'"', b"\\n")
# Signs of comments, lists and diffs, `ada@host's`, `export`, the place that grep names, a line number.
BEFORE_NAME = lazy_pattern(
    rb"[ \t+>#/*;-]*(?:[\w.-]{1,40}@[\w.-]{1,60}'s |export |set |ENV |declare -x |[\w./-]+:\d+:|\d+\s)?[\w.:;$ -]{0,60}"
)
CALL_BEFORE = lazy_pattern(
    rb"\{\s{0,3}:?\w{0,30}$|\(\s{0,3}(?:[\"']String[\"']\s{0,2},\s{0,2})?"
    + Q
    + rb"[\w.-]*$|--?[\w-]*$|\bdefine\(\s{0,3}[\w.-]*$"
)
# A flag of a program, or a statement that sets a name to the word after it.
FLAG = lazy_pattern(
    rb"(?:^|[\s\"'])(?:--?|/)[A-Za-z][\w.-]*$"
    rb"|(?:#define|setx?|set -[gxU]{1,3}|ENV|secret set|secrets? add|export|config set(?: --?[\w-]{1,20}){0,3}|git config(?: --[\w-]{1,12}){0,2}|machine \S+.{0,60}|login \S+)\s+(?:/M )?[\w.$:-]*$",
    re.DOTALL,
)
# The first cell of a row, alone on its line so far.
CELL = lazy_pattern(rb"(?:^|[\n|\x1e\x1f]|\\n)[ \t`*]*(?:[\w.$-]{1,20} ){0,2}[\w.$-]*$")
WORDS_OF_LINE = lazy_pattern(rb"[A-Za-z0-9 .,'!-]{8,200}(?=[\r\n\x1f\"\\]|$)")


JOINED = lazy_pattern(
    rb"(?:\\{0,3}[\"'`]\s{0,4}(?:[+.&]\s{0,4}\\?\r?\n?|\\?\r?\n)\s{0,12}[+.&]?\s{0,4}[\"'`]|\\\r?\n[ \t]{0,12})(?P<rest>[A-Za-z0-9+/=_.~-]{3,400})"
)
"""The next piece of a string that is written in several."""
WRAPPED = lazy_pattern(rb"\r?\n(?P<rest>[A-Za-z0-9+/_.~-]{8,400}={0,2})(?=[\r\n\x1f\"']|$)")
"""The next line of a value that a terminal broke."""
HEADER_LINE = lazy_pattern(
    rb"[\"']?[A-Za-z0-9_ .-]{1,40}[\"']?(?:,[\"']?[A-Za-z0-9_ .-]{1,40}[\"']?){1,40}(?=\r?\n|\\r|\\n)"
)
"""The names of the columns of a table with commas."""
PAIR_LINE = lazy_pattern(rb"(?:^|[\n\x1e\x1f])[ \t]*[\"'][\w .-]{0,40}$")
"""A quoted name at the start of a line."""
CODE_GROUPS = lazy_pattern(rb"(?=[A-Za-z]{0,5}\d)[A-Za-z0-9]{4,6}(?:[- ](?=[A-Za-z]{0,5}\d)[A-Za-z0-9]{4,6}){1,5}")
NO_LOGIN = lazy_pattern(rb"[\s/?#@]")
FURTHER_SETTING = lazy_pattern(rb";[A-Za-z][\w ]{1,24}=")
"""`;user=` in a connection string: the value before it has ended."""
WORDS_AND_NUMBER = lazy_pattern(rb"(?:[a-z]{3,9}-){2,5}\d{2,4}$")
"""`biscuit-maple-cinder-456`, as programs make passwords up that can be remembered."""
LETTER_GROUPS = lazy_pattern(rb"[a-z]{4}(?:[ -][a-z]{4}){3}(?![A-Za-z0-9])")
BEFORE_SCRIPT = lazy_pattern(rb"[!-~]{6,}?(?=\(?[\xe3-\xed\xef])")
"""A value that goes on in letters of East Asia (`…に変更しました`) ends before them."""
MORE_ITEMS = lazy_pattern(
    rb"(?:\\{0,3}[\"'`]\s{0,2},"
    + _GAPS
    + rb"\\{0,3}[\"'`](?=[^\s\"'`\\]{0,60}\d)[^\s\"'`\\]{8,200}){1,20}(?=\\{0,3}[\"'`])"
    rb"|(?:" + LINE + rb"[ \t]{0,40}- (?=[^\s\"'`\\]{0,60}\d)[^\s\"'`\\]{8,200}){1,20}(?=[\s\x1f\\]|$)"
)
"""The further values of a list."""
MORE_CODES = lazy_pattern(
    rb"(?:(?:\s|\\n|,|[*-] |\d{1,2}[.)] ){1,8}(?=[A-Za-z-]{0,30}\d)[A-Za-z0-9]{4,6}(?:[- ](?=[A-Za-z]{0,5}\d)[A-Za-z0-9]{4,6}){1,5}(?![A-Za-z0-9])){1,20}"
)
"""The further codes of a list."""
VALUE_BELOW = lazy_pattern(LINE + rb"[ \t]{0,20}\\{0,3}[\"']?val", re.IGNORECASE)
TAIL_ONLY = lazy_pattern(TAIL + rb"(?![A-Za-z0-9])", re.IGNORECASE)
SAID_WORDS = (
    "is are was to for of on in ist lautet war es est sera er jest by or string String str value should will para pour per"
    " de del della du da do von der stands je este adalah yra ir has you we they he she i I that which As into from at with under"
    " used field input box textbox between van voor dla auf heisst simply just still actually probably literally always now jetzt nun"
    # Of `heißt` and `c'est` the letters before the first that is none of ASCII.
    " einfach hei c"
    " got has have been it era foi var oli til till na leaked expired rotated currently nueva nuevo nova novo actual atual attuale nuova nouveau actuel ge"
    " here below above follows there type enter right di back turned turns would must happens ended reads currently take auf prompt field box gestern heute ayer hier"
).split()
OTHER_TAIL = lazy_pattern(
    rb"(?:[_-](?!(?:id|ids|name|names|url|uri|type|types|path|paths|file|files|length|len|size|min|max|count|expiry|expires|ttl|at|version"
    rb"|arn|ref|policy|hint|field|label|reset|rounds|hash|hashes|algorithm|format|prefix|suffix|index|pattern|regex|rule|rules|status"
    rb"|error|message|strength|manager|provider|store|limit|budget|usage|kind|mode|code|info|required|changed|updated|created|date|in)"
    rb"(?![A-Za-z]))[A-Za-z\x80-\xff]{2,32}){1,2}\d{0,3}(?=[\"'`\\]{0,3}[ \t]{0,3}(?:=(?![=>])|:(?!:)|\x1e))",
    re.IGNORECASE,
)
"""`_banco` in `senha_banco=`: any further word but those that make a name one of something else."""
# After a space a value must begin as one: a sign, a word of a sentence, or something with digits.
AFTER_SPACE = lazy_pattern(
    rb"[ \t]{1,40}(?:[^A-Za-z0-9]"
    rb"|(?:" + "|".join(SAID_WORDS).encode() + rb")\b"
    rb"|f\xc3\xbcr |l\xc3\xa0 "
    rb"|[^\s]{0,24}[0-9!@#$%^&*]|[A-Za-z]{1,24}[A-Z])"
)

# "password" in several languages, also as UTF-8 bytes.
PASSWORD_WORDS = lazy_pattern(
    rb"pass ?wor|passwd|passphrase|kennwort|contrase|mot de passe|senha"
    rb"|\xd0\xbf\xd0\xb0\xd1\x80\xd0\xbe\xd0\xbb|\xe3\x83\x91\xe3\x82\xb9\xe3\x83\xaf|\xe5\xaf\x86",
    re.IGNORECASE,
)

NO_SECRET_FORM = lazy_pattern(
    rb"\)|\\\[|0[xX][0-9A-Fa-f]{1,16}[uUlL]{0,3}\)?$|[A-Z][A-Z0-9_]{2,40}\+\d{1,5}\)?$|\([^()]{0,80}\)?$|\d{1,5}(?:\.\d{1,5}){2,}$"
)
"""Numbers and expressions of C headers, and object identifiers."""
