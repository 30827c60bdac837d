"""Names and paths that somebody typed as they are: those come first."""

import re

import apsw

from holdfast.search import words

_NAME = re.compile(r"^[\w$]+(?:(?:\.|::|#|->|/)[\w$]+)*[!?]?$")
_CUTS = re.compile(r"::|#|->|/")
MOST = 20
MOST_NAMES = 8
_KINDS = "case c.kind when 'function' then 0 when 'class' then 0 when 'method' then 1 else 2 end"


def symbols(db: apsw.Connection, text: str) -> list[int]:
    """Chunks of definitions with exactly that name; `Class.method` and `Class::method` name the method in the class."""
    found: dict[int, None] = {}
    for name in names(text):
        last = name.rpartition(".")[2]
        rows = db.execute(
            "select c.id, c.symbol, c.name from chunks c join files f on f.id = c.file where c.name = ?"
            f" order by c.name <> ?, f.path like '%test%', {_KINDS}, length(f.path), c.id limit 200", (last, last),
        )  # fmt: skip
        whole = name.lower()
        for id_, symbol, _ in rows:
            low = symbol.lower()
            if low == whole or low.endswith(f".{whole}"):
                found.setdefault(id_)
    return list(found)[:MOST]


def names(text: str) -> list[str]:
    """The whole question if it is a name, else words in it that can only be names (`parse_status`, `LazyObject`)."""
    text = text.strip().removesuffix("()")
    if _NAME.match(text):
        return [_CUTS.sub(".", text)]
    told = [word.strip("`'\"(),.;:?!").removesuffix("()") for word in text.split()]
    return [_CUTS.sub(".", word) for word in told if _NAME.match(word) and _only_a_name(word)][:MOST_NAMES]


def is_name(text: str) -> bool:
    return bool(_NAME.match(text.strip().removesuffix("()")))


def _only_a_name(word: str) -> bool:
    return (
        "_" in word.strip("_")
        or "::" in word
        or (len(words.parts(word)) > 1 and not word.islower() and not word.isupper())
    )


def paths(db: apsw.Connection, text: str) -> list[int]:
    """The first chunk of each file that is called so."""
    text = text.strip().removeprefix("./")
    if not text or len(text) > 400 or " " in text or not ("/" in text or "." in text):
        return []
    rows = db.execute(
        "select min(c.id) from files f join chunks c on c.file = f.id where f.path = ?1 or f.path like ?2 escape '\\'"
        " group by f.id order by f.path <> ?1, length(f.path), f.path limit ?3", (text, f"%/{_literal(text)}", MOST),
    )  # fmt: skip
    return [row[0] for row in rows]


def _literal(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)
