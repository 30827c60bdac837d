"""Compiles rules/*.toml into one document that loads quickly, with the standard library only."""

import base64
import hashlib
import itertools
import json
import re
import string
import struct
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).with_name("rules")
COMPILED = Path(__file__).with_name("rules.json")
_LOWER, _UPPER, _DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
_WORD = _UPPER + _LOWER + _DIGITS
ALPHABETS = {
    "a": _LOWER, "A": _UPPER, "d": _DIGITS, "l": _LOWER + _DIGITS, "u": _UPPER + _DIGITS, "w": _WORD,
    "h": _DIGITS + "abcdef", "H": _DIGITS + "ABCDEF", "x": _DIGITS + "abcdefABCDEF", "2": _UPPER + "234567",
    "s": _WORD + "_", "t": _WORD + "_-", "p": _WORD + "._-", "y": _WORD + "._~-", "b": _WORD + "+/", "B": _WORD + "+/=",
    "j": _WORD + "+/=_-", "r": _WORD + "+/=_.-", "k": "".join(sorted(set(_WORD) - set("0OIl"))),
    "q": "023456789acdefghjklmnpqrstuvwxyz", "Q": "023456789ACDEFGHJKLMNPQRSTUVWXYZ",
    "printable": "".join(map(chr, range(0x21, 0x7F))),
    "no-letter": "".join(chr(code) for code in range(0x80) if not chr(code).isalpha()),
}  # fmt: skip
_UUID = "<h8>-<h4>-<h4>-<h4>-<h12>"
# `<w20>`, `<w20-30>`, `<w20+>`: so many of an alphabet; `(a|b)`: a choice; `{text}`: the anchor; literals.
_PIECE = re.compile(
    r"<(?P<alphabet>\w)(?P<least>\d+)(?:-(?P<most>\d+)|(?P<more>\+))?>"
    r"|\((?P<choice>[^()]*)\)|\{(?P<anchor>[^{}]*)\}|(?P<literal>[^<({]+)"
)
# In characters: the most that `+` matches.
_MOST = 4096
_FRAGMENT = re.compile(r"\(\?&(word:)?([a-z_-]+)\)")
Piece = dict[str, str | None]


def read_sources(folder: Path = SOURCES) -> dict[str, Any]:
    """All rule files as one: tables are merged, lists joined in file-name order."""
    merged: dict[str, Any] = {}
    for file in sorted(folder.glob("*.toml")):
        for key, value in tomllib.loads(file.read_text(encoding="utf-8")).items():
            if isinstance(value, list):
                merged.setdefault(key, []).extend(value)
            else:
                _merge_table(merged.setdefault(key, {}), value, file)
    merged["words"] = {key: _list_words(words) for key, words in merged["words"].items()}
    return merged


def _merge_table(into: dict[str, Any], table: Mapping[str, Any], file: Path) -> None:
    twice = into.keys() & table.keys()
    if twice:
        raise ValueError(f"{file.name} defines {', '.join(sorted(twice))} a second time")
    into.update(table)


def _list_words(words: str | list[Any]) -> list[str]:
    return words.split() if isinstance(words, str) else list(expand_anchors(words))


def fingerprint(folder: Path = SOURCES) -> str:
    """Of the sources and this compiler."""
    files = (*sorted(folder.glob("*.toml")), Path(__file__))
    return hashlib.blake2b(b"\0".join(file.read_bytes() for file in files), digest_size=16).hexdigest()


def compile_rules(folder: Path = SOURCES) -> dict[str, Any]:
    """Build the contents of `rule_data.Rules`."""
    rules = resolve(read_sources(folder))
    return {
        "fingerprint": fingerprint(folder),
        "tokens": [_pick(rule, "kind pattern head check left begins") for rule in rules["tokens"]],
        "places": [_pick(rule, "kind pattern judge back needs") for rule in rules["place"]],
        "blocks": [rule["finder"] for rule in rules["block"]],
        "names": [_pick(rule, "kind judge spoken part stem_width") for rule in rules["name"]],
        "runs": [{**rule, "sizes": [_as_range(size) for size in rule["sizes"]]} for rule in rules["run"]],
        "notations": [one["name"] for one in rules["notation"]],
        "search": pack_anchors(rules),
        **_pick(rules, "patterns words entities rare_pairs limits"),
    }


def _pick(rule: Mapping[str, Any], keys: str) -> dict[str, Any]:
    return {key: rule[key] for key in keys.split() if key in rule}


def _as_range(size: int | list[int]) -> list[int]:
    return [size, size] if isinstance(size, int) else size


def resolve(rules: dict[str, Any]) -> dict[str, Any]:
    """Expand fragments, anchors, forms and stems of the rules."""
    words, notations = rules["words"], rules["notation"]
    fragments = {
        **rules["fragments"],
        "entities": "|".join(rules["entities"]),
        "notations": _join_notations(notations),
        "notations-without-browsers": _join_notations(one for one in notations if not one.get("browser")),
    }
    return {
        **rules,
        "tokens": sorted(
            (_compile_token(rule, set(words["common_anchor"])) for rule in rules["tokens"]), key=_precision
        ),
        "place": [_compile_place(rule, fragments, words) for rule in rules["place"]],
        "block": [{**rule, "anchors": list(expand_anchors(rule["anchors"]))} for rule in rules["block"]],
        "name": [{**rule, "stems": list_stems(rule, words)} for rule in rules["name"]],
        "patterns": {key: expand(text, fragments, words) for key, text in rules["patterns"].items()},
    }


def _join_notations(notations: Iterable[Mapping[str, str]]) -> str:
    return "|".join(f"(?P<{one['name']}>{one['pattern']})" for one in notations)


def expand(pattern: str, fragments: Mapping[str, str], words: Mapping[str, Iterable[str]]) -> str:
    """`(?&name)` is replaced by a fragment, `(?&word:name)` for any word of a list."""

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return "|".join(map(re.escape, words[match[2]]))
        return expand(fragments[match[2]], fragments, words)

    return _FRAGMENT.sub(replace, pattern)


def expand_anchors(anchors: Iterable[str | list[Any]]) -> Iterator[str]:
    """A list among them means every combination of its parts."""
    for anchor in anchors:
        if isinstance(anchor, str):
            yield anchor
        else:
            yield from map("".join, itertools.product(*([part] if isinstance(part, str) else part for part in anchor)))


def _compile_place(
    rule: Mapping[str, Any], fragments: Mapping[str, str], words: Mapping[str, list[str]]
) -> dict[str, Any]:
    anchors = list(dict.fromkeys(expand_anchors(rule["anchors"])))
    own = {**fragments, "anchors": "(?:" + "|".join(map(re.escape, anchors)) + ")"}
    # A value ends with its string.
    pattern = expand(rule["pattern"], own, words).replace("[^", "[^\x1e\x1f")
    return {**rule, "anchors": anchors, "pattern": pattern}


def _precision(rule: Mapping[str, Any]) -> tuple[int, int]:
    """Of two forms of one token, prefer the longer prefix, then the smaller alphabet."""
    alphabets = [piece["alphabet"] for piece in parse_pieces(rule["shape"]) if piece["alphabet"]]
    return -min(map(len, rule["anchors"])), max((len(ALPHABETS[name]) for name in alphabets), default=0)


def _compile_token(rule: Mapping[str, Any], common: set[str]) -> dict[str, Any]:
    shape = parse_shape(rule["shape"])
    # The search itself checks what precedes a common anchor; otherwise too many hits reach Python.
    is_common = any(len(anchor) <= 2 or anchor in common for anchor in shape["anchors"])
    alone = rule.get("left") == "strict" and not shape["head"] and is_common
    begins = alone or rule.get("left") == "any" or rule["shape"].startswith("{")
    return {**rule, **shape, "alone": alone, "begins": begins}


# The forms of tokens.


def parse_shape(source: str) -> dict[str, Any]:
    """Parse the notation. Raises ValueError without a searchable literal of at least two characters."""
    pieces = parse_pieces(source)
    marked = next((n for n, piece in enumerate(pieces) if piece["anchor"] is not None), None)
    anchors = _leading_literals(pieces) if marked is None else [pieces[marked]["anchor"] or ""]
    if min(map(len, anchors)) < 2:
        raise ValueError(f"the shape {source!r} has no literal to search for")
    return {
        "anchors": anchors,
        # How many characters may precede the anchor.
        "head": 0 if marked is None else _total_width(pieces[:marked]),
        "pattern": _bound_pattern("".join(map(_piece_pattern, pieces)), pieces[-1]),
        "follow": _following_alphabet(pieces, marked),
    }


def parse_pieces(source: str) -> list[Piece]:
    return [match.groupdict() for match in _PIECE.finditer(source.replace("<uuid>", _UUID))]


def _leading_literals(pieces: list[Piece]) -> list[str]:
    """Every literal that the form may begin with."""
    fixed = itertools.takewhile(lambda piece: not piece["alphabet"], pieces)
    choices = [(piece["literal"] or "",) if piece["choice"] is None else piece["choice"].split("|") for piece in fixed]
    return ["".join(parts) for parts in itertools.product(*choices)]


def _following_alphabet(pieces: list[Piece], marked: int | None) -> tuple[bytes, int, bytes]:
    """The alphabet after the anchor, its minimum count, and the character after exactly that many."""
    first = (
        next((n for n, piece in enumerate(pieces) if piece["alphabet"]), len(pieces)) if marked is None else marked + 1
    )
    if first >= len(pieces) or not pieces[first]["alphabet"]:
        return b"", 0, b""
    piece = pieces[first]
    then = pieces[first + 1]["literal"] if first + 1 < len(pieces) and not (piece["most"] or piece["more"]) else None
    return ALPHABETS[piece["alphabet"] or ""].encode(), int(piece["least"] or 0), (then or "")[:1].encode()


def _total_width(pieces: list[Piece]) -> int:
    return sum(
        int(piece["most"] or piece["least"] or 0)
        if piece["alphabet"]
        else len(piece["literal"] or piece["choice"] or "")
        for piece in pieces
    )


def _piece_pattern(piece: Piece) -> str:
    if piece["alphabet"]:
        most = str(_MOST) if piece["more"] else piece["most"] or piece["least"]
        return f"{_class_of(piece)}{{{piece['least']},{most}}}"
    if piece["choice"] is not None:
        return "(?:" + "|".join(map(re.escape, piece["choice"].split("|"))) + ")"
    return re.escape(piece["anchor"] or piece["literal"] or "")


def _class_of(piece: Piece) -> str:
    """The alphabet as a character class with ranges."""
    alphabet = ALPHABETS[piece["alphabet"] or ""]
    ranges = "".join(f"{run[0]}-{run[-1]}" for run in (_LOWER, _UPPER, _DIGITS) if run in alphabet)
    rest = [sign for sign in alphabet if not any(sign in run for run in (_LOWER, _UPPER, _DIGITS) if run in alphabet)]
    return f"[{ranges}{re.escape(''.join(rest))}]"


def _bound_pattern(pattern: str, last: Piece) -> str:
    """A form of fixed length ends with its alphabet: a longer run is something else."""
    if last["alphabet"] and not last["more"]:
        pattern += f"(?!{_class_of(last)})"
    return pattern


# The names of secrets.


def list_stems(rule: Mapping[str, Any], words: Mapping[str, list[str]]) -> list[str]:
    stems = list(rule.get("stems", ()))
    if "misspelt" in rule:
        stems += _misspell(rule["misspelt"])
    if "qualified" in rule:
        stems += [word + rule["qualified"] for word in sorted(set(words["secret_qualifier"]))]
    return stems


def _misspell(word: str) -> list[str]:
    """The word with one letter missing or two swapped, as people mistype it."""
    short = {word[:at] + word[at + 1 :] for at in range(1, len(word) - 1)}
    swapped = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(1, len(word) - 1)}
    return sorted((short | swapped) - {word})


def stem_casings(stems: Iterable[str]) -> list[str]:
    """Every spelling of the stems to search for: the search is case-sensitive."""
    spelt: dict[str, None] = {}
    for stem in stems:
        casings = (stem, stem.upper(), stem.capitalize(), stem.title()) if stem.islower() else (stem,)
        spelt |= dict.fromkeys(casings)
    if "password" in spelt:
        spelt |= dict.fromkeys(("passWord", "PassWord", "passWd", "PassWd"))
    return [*spelt]


def name_guard(rule: Mapping[str, Any], stem: str, guards: Mapping[str, int], short_names: Iterable[str]) -> int:
    """The condition native/guards.h checks for a name, never stricter than `assignment.find_value`."""
    judge, part, width = rule["judge"], rule.get("part", ""), rule.get("stem_width", 0)
    guard: int = guards["value"] | width << 8
    guard |= guards["random"] if judge in ("token", "strong") else 0
    guard |= guards["spoken"] if rule.get("spoken", True) else 0
    guard |= guards["code"] if judge in ("token", "strong", "password") else 0
    if judge == "password" and stem.lower() not in short_names:
        guard |= guards["plain"]
    if part in ("", "tail"):
        return guard
    if part == "key":
        return guard | guards["token" if stem[-width:][:1] in "tT" else "key"]
    return guard | guards["word"] | (guards["pass"] if stem.lower() in ("pass", "pwd") else 0)


# The anchors of all rules.

Anchor = tuple[bytes, int, bytes, int, bool, bytes, int]
"""As `anchors.Anchor`: the text, its finder's number, the bytes that must follow and how many, whether nothing may
precede it, the next byte, its guard."""
After = tuple[bytes, int, bytes]


def list_anchors(rules: Mapping[str, Any]) -> Iterator[Anchor]:
    guards, place_guards = rules["limits"]["guards"], rules["limits"]["place_guards"]
    after, after_name = _list_after(rules["after"]), _list_after(rules["after_name"])
    # In the order of `scanner.Scanner`.
    numbers = itertools.count(len(rules["limits"]["marks"]))
    for rule in rules["tokens"]:
        number = next(numbers)
        for anchor in rule["anchors"]:
            yield _anchor(anchor, number, rule["follow"], 0, rule["alone"])
    for rule in (*rules["place"], *rules["block"]):
        number, guard = next(numbers), place_guards[rule.get("guard", "none")]
        for anchor in rule["anchors"]:
            yield _anchor(anchor, number, after.get(anchor), guard)
    for rule in rules["name"]:
        number = next(numbers)
        for stem in stem_casings(rule["stems"]):
            yield _anchor(
                stem, number, after_name.get(stem), name_guard(rule, stem, guards, rules["words"]["short_name"])
            )
    for number, mark, guard, alone in _list_marks(rules):
        yield _anchor(mark, number, after.get(mark), guard, alone)


def _anchor(text: str, number: int, after: After | None, guard: int, alone: bool = False) -> Anchor:
    follow, count, then = after or (b"", 0, b"")
    return text.encode(), number, follow, count, alone, then, guard


def _list_after(rows: Iterable[Mapping[str, Any]]) -> dict[str, After]:
    return {
        anchor: (_members(row), row.get("count", 1), row.get("then", "").encode())
        for row in rows
        for anchor in expand_anchors(row["anchors"])
    }


def _members(row: Mapping[str, str]) -> bytes:
    return (ALPHABETS.get(row.get("alphabet", ""), "") + row.get("signs", "")).encode("latin-1")


def _list_marks(rules: Mapping[str, Any]) -> Iterator[tuple[int, str, int, bool]]:
    """For each mark of another spelling: its number, text, guard, and whether nothing may precede it."""
    words, numbers, far = rules["words"], rules["limits"]["marks"], rules["limits"]["guards"]["far"]
    apart = {
        "escapes": words["escape_mark"],
        "decodes": [*words["dump_mark"], *_escaped_anchors(rules), "\\u0000"],
        "percents": _percent_marks(words["percent_sign"][0]),
        "colours": words["colour_mark"],
    }
    for name, marks in apart.items():
        yield from ((numbers[name], mark, far | numbers[name] << 8, False) for mark in marks)
    encoded = [*_base64_marks(words["encoded_stem"]), *(stem.encode().hex() for stem in words["hexadecimal_stem"])]
    yield from ((numbers["encoded"], mark, 0, False) for mark in encoded)
    yield from ((numbers["encoded"], mark, 0, True) for mark in words["compressed_mark"])


def _escaped_anchors(rules: Mapping[str, Any]) -> list[str]:
    """Anchors in other scripts as JSON writes them."""
    named = (stem for rule in rules["name"] for stem in stem_casings(rule["stems"]))
    placed = (anchor for rule in rules["place"] for anchor in rule["anchors"])
    spelt = {json.dumps(text)[1:-1] for text in (*named, *placed) if not text.isascii()}
    return sorted(spelt | {mark.upper().replace("\\U", "\\u") for mark in spelt})


def _percent_marks(signs: str) -> list[str]:
    codes = [code for code in range(0x20, 0x7F) if chr(code).isalnum() or chr(code) in signs]
    return [*dict.fromkeys(mark for code in codes for mark in (f"%{code:02x}", f"%{code:02X}"))]


def _base64_marks(stems: Iterable[str]) -> list[str]:
    """How these words look in base64, at each of three alignments."""
    marks = set()
    for stem, shift in itertools.product(stems, range(3)):
        encoded = base64.b64encode(b"\0" * shift + stem.encode()).decode()
        # The first and last characters also depend on neighbouring bytes and are omitted.
        first, last = (0, 2, 3)[shift], (len(stem) + shift) * 8 // 6
        # Shorter marks occur in base64 by chance.
        if last - first >= 5:
            marks.add(encoded[first:last])
    return sorted(marks)


def pack_anchor(anchor: Anchor, entry: struct.Struct, texts: bytearray, classes: dict[bytes, int]) -> bytes:
    """One entry of the native search; extends `texts` and `classes`."""
    text, number, follow, count, alone, then, guard = anchor
    kind = classes.setdefault(class_table(follow), len(classes)) if count else 0
    packed = entry.pack(len(texts), number, 0, len(text), 0, count, kind, alone | (then[0] << 8 if then else 0), guard)
    texts += text
    return packed


def pack_anchors(rules: Mapping[str, Any]) -> dict[str, Any]:
    left = rules["words"]["left_of_token"][0].encode("latin-1")
    entry, texts = struct.Struct(rules["limits"]["entry"]), bytearray()
    # The library expects classes 0 to 2 in this order.
    classes = {class_table(members): n for n, members in enumerate((b"", left, ALPHABETS["w"].encode()))}
    entries = b"".join(pack_anchor(anchor, entry, texts, classes) for anchor in list_anchors(rules))
    packed = {"texts": bytes(texts), "entries": entries, "classes": b"".join(classes)}
    lists = {"guard_words": pack_guard_words(_guard_words(rules["words"])), "no_guard_words": pack_guard_words({})}
    return {key: _as_text(value) for key, value in packed.items()} | {
        key: [*map(_as_text, value)] for key, value in lists.items()
    }


def _as_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _guard_words(words: Mapping[str, list[str]]) -> dict[str, Iterable[str]]:
    return {
        **words,
        "tail": {word.rstrip("0123456789") for word in words["tail"]},
        "said": {word.lower() for word in words["said"]},
        "glued_token": (*words["glued_key"], *words["glued_token"]),
    }


_GUARD_LISTS = {
    "tail": True, "said": True, "glued_key": False, "glued_token": False, "plain_qualifier": True, "cookie_name": False,
    "no_password": True, "public_prefix": True, "secret_prefix": False,
}  # fmt: skip
"""The lists in the order of native/search.h, and whether each is long enough to index by length."""


def pack_guard_words(words: Mapping[str, Iterable[str]]) -> list[bytes]:
    return [(_indexed if is_long else _listed)(words.get(name, ())) for name, is_long in _GUARD_LISTS.items()]


def _listed(words: Iterable[str]) -> bytes:
    return b"".join(bytes([len(word)]) + word.encode() for word in words)


def _indexed(words: Iterable[str]) -> bytes:
    """The offsets of each length, then the words, short ones first."""
    by_length = [sorted({word for word in words if len(word) == length}) for length in range(32)]
    sizes = [sum(map(len, same)) for same in by_length]
    begins = itertools.accumulate(sizes, initial=2 * (len(sizes) + 1))
    return struct.pack(f"={len(sizes) + 1}H", *begins) + "".join(itertools.chain(*by_length)).encode()


def class_table(members: bytes) -> bytes:
    return bytes(code in members for code in range(256))


def write_rules(out: Path, folder: Path = SOURCES) -> None:
    out.write_text(json.dumps(compile_rules(folder), ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


if __name__ == "__main__":
    write_rules(Path(sys.argv[1]))
