"""One text with a secret and one without for every rule, made when a test runs: no file at rest holds a token."""

import base64
import binascii
import hashlib
import random
import re
import string
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from holdfast.analysis.redact.rule_compiler import ALPHABETS, Piece, parse_pieces, read_sources, resolve

Rule = Mapping[str, Any]


@cache
def rules() -> dict[str, Any]:
    """The rules of the TOML files with everything expanded."""
    return resolve(read_sources())


def make_example(source: str, seed: str) -> str:
    """A value of this form, the same for the same seed. It always has a digit and a letter of each case it may have."""
    chance = random.Random(seed)
    return "".join(_sample_piece(piece, chance) for piece in parse_pieces(source))


def make_filler(source: str) -> str:
    """The same form with one repeated character in place of the random ones: a placeholder, not a token."""
    return "".join(_fill_piece(piece) for piece in parse_pieces(source))


def _sample_piece(piece: Piece, chance: random.Random) -> str:
    if piece["alphabet"]:
        least = int(piece["least"] or 0)
        return _mixed_text(ALPHABETS[piece["alphabet"]], least + (4 if piece["more"] and least < 8 else 0), chance)
    if piece["choice"] is not None:
        return chance.choice(piece["choice"].split("|"))
    return piece["anchor"] or piece["literal"] or ""


def _mixed_text(alphabet: str, length: int, chance: random.Random) -> str:
    every = (string.digits, string.ascii_lowercase, string.ascii_uppercase)
    groups = [group for group in every if set(group) & set(alphabet)]
    text = [chance.choice(alphabet) for _ in range(length)]
    for at, group in zip(range(1, length, 3), groups * 2, strict=False):
        text[at] = chance.choice([c for c in group if c in alphabet])
    if length > 1 and not text[-1].isalnum():
        text[-1] = next(c for c in alphabet if c.isalnum())
    return "".join(text)


def _fill_piece(piece: Piece) -> str:
    if piece["alphabet"]:
        alphabet = ALPHABETS[piece["alphabet"]]
        return next((c for c in "xX0" if c in alphabet), alphabet[0]) * int(piece["least"] or 0)
    return (piece["choice"].split("|")[0] if piece["choice"] is not None else piece["anchor"]) or piece["literal"] or ""


_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
# By judge: the shape of a value that it accepts.
_VALUES = {
    "password": "<w10>7x",
    "mixed": "<w10>7x",
    "cased": "<w10>7xQ",
    "wild": "q7X<d1>kL<d2>mP<d1>zR8",
    "spoken": "q7X<d1>kL<d2>mP<d1>zR8",
    "given": "q7X<d1>kL<d2>mP<d1>zR8",
    "phrase": "<w10>7x",
    "token": "<w36>",
    "strong": "<w36>",
    "any": "<w44>",
    "certain": "<w44>",
    "pin": "<d8>",
    "code": "<l5>-<l5>",
}
_SEED_WORDS = (
    "acid",
    "bench",
    "cargo",
    "dune",
    "echo",
    "fabric",
    "gadget",
    "hockey",
    "icon",
    "jungle",
    "ketchup",
    "lemon",
)
# The version byte of a private key in each network.
_WIF_VERSIONS = {"bitcoin-wif": 0x80, "testnet-wif": 0xEF, "litecoin-key": 0xB0}
_PIECE = re.compile(r"<uuid>|<\w\d+\+?>")


class Example(msgspec.Struct, frozen=True):
    """`text` with `secret` in it; without one it is ordinary text."""

    text: str
    secret: str = ""


def token_examples(rule: Rule) -> tuple[Example, Example]:
    """A token of the rule's form, and the same form filled with one repeated character."""
    seed = f"{rule['kind']} {rule['shape']}"
    make = _MAKERS.get(rule.get("check", ""))
    token = make(rule, seed) if make else make_example(rule["shape"], seed)
    return Example(f"use {token} here", token), Example(f"use {make_filler(rule['shape'])} here")


def place_examples(rule: Rule) -> tuple[Example, Example]:
    value = make_value(rule["judge"], rule["kind"]) if "{}" in rule["finds"] else ""
    text = rule["finds"].replace("{}", value)
    made = _PIECE.sub(lambda match: make_example(match[0], rule["kind"]), text)
    secret = value or made.rpartition(",")[2]
    return Example(made, secret), Example(
        _PIECE.sub(lambda match: make_example(match[0], rule["kind"]), rule["leaves"])
    )


def name_examples(rule: Rule) -> tuple[Example, Example]:
    stem = rule["stems"][0]
    part = rule.get("part")
    name = (
        f"db_{stem}"
        if part == "word" and stem.isascii()
        else f"api_{stem.lstrip('_')}"
        if part == "key"
        else f"X{stem}"
        if part == "tail"
        else stem
    )
    value = make_value(rule["judge"], rule["kind"] + stem)
    return Example(f"{name}: {value}", value), Example(f"{name}: ${{VALUE}}")


def make_value(judge: str, seed: str) -> str:
    """A value of the sort that this judge accepts."""
    if judge == "seed":
        return " ".join(_SEED_WORDS)
    shape = {
        "dotnet-machine-key": "<H64>",
        "ntlm-hash": "<h32>:<h32>",
        "totp-secret": "<232>",
        "scanner-login": "<h40>",
    }.get(seed)
    return make_example(shape or _VALUES[judge], seed)


def _wallet_key(rule: Rule, seed: str) -> str:
    """A key whose checksum is right and that begins as the rule's form does."""
    chance = random.Random(seed)
    starts = tuple(re.findall(r"[A-Za-z0-9]{2}", rule["shape"].partition(")")[0])) if "(" in rule["shape"][:1] else ()
    # The first letters follow from the random bytes, so keys are made until one begins as the rule asks.
    while True:
        raw = bytes([_WIF_VERSIONS[rule["kind"]], *chance.randbytes(32), *([1] if "<k50>" in rule["shape"] else [])])
        key = _encode_base58(raw + hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4])
        if not starts or key.startswith(starts):
            return key


def _stellar_seed(_rule: Rule, seed: str) -> str:
    raw = bytes([0x90, *random.Random(seed).randbytes(32)])
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode()


_MAKERS: dict[str, Callable[[Rule, str], str]] = {"base58": _wallet_key, "stellar": _stellar_seed}


def _encode_base58(raw: bytes) -> str:
    number, text = int.from_bytes(raw, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text
