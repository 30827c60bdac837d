"""Text → the sentences somebody wrote himself: pasted code, quotes, logs and tags are left out."""

import re
from collections.abc import Iterator

SHORTEST, LONGEST = 12, 400
MOST_TAGS = 200
"""With more it is a page, not words."""
LOOKED_AT = 1200
"""Of a very long text only so much at each end: what lies between was pasted."""

_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<(\w[\w-]*)\b[^>]*>.*?</\1\s*>", re.DOTALL)
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(])|\n+|(?<=;)\s+")
_PASTED = re.compile(r"^\s*(>|\||[$#%]\s|at\s+\S+\(|File \"|Traceback|\d+\s*[|:]\s|<|\{|\})")


def sentences(text: str) -> Iterator[str]:
    own = _CODE.sub("\n", text)
    own = _TAGGED.sub("\n", own) if own.count("<") <= MOST_TAGS else ""
    if len(own) > 2 * LOOKED_AT:
        own = f"{own[:LOOKED_AT]}\n{own[-LOOKED_AT:]}"
    for piece in _END.split(own):
        if _PASTED.match(piece):
            continue
        words = " ".join(piece.split()).lstrip("-*• ")
        if SHORTEST <= len(words) <= LONGEST:
            yield words
