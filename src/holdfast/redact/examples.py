"""One text with a secret and one without for every rule, made when asked for: no file at rest holds a token."""

import base64
import binascii
import hashlib
import random
import re
from collections.abc import Callable

import msgspec

from holdfast.redact.rule import NameRule, PlaceRule, TokenRule
from holdfast.redact.shape import make_example, make_filler

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES = {
    "password": "<w10>7x",
    "mixed": "<w10>7x",
    "cased": "<w10>7xQ",
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
_WIF_VERSIONS = {"bitcoin-wif": 0x80, "testnet-wif": 0xEF, "litecoin-key": 0xB0}
_PIECE = re.compile(r"<uuid>|<\w\d+\+?>")


class Example(msgspec.Struct, frozen=True):
    """`text` with `secret` in it; without one it is ordinary text."""

    text: str
    secret: str = ""


def token_examples(rule: TokenRule) -> tuple[Example, Example]:
    """A token of the rule's form, and the same form filled with one repeated character."""
    seed = f"{rule.kind} {rule.shape}"
    make = _MAKERS.get(rule.check)
    token = make(rule, seed) if make else make_example(rule.shape, seed)
    return Example(f"use {token} here", token), Example(f"use {make_filler(rule.shape)} here")


def place_examples(rule: PlaceRule) -> tuple[Example, Example]:
    value = make_value(rule.judge, rule.kind)
    text = rule.positive.replace("{}", value)
    made = _PIECE.sub(lambda match: make_example(match[0], rule.kind), text)
    secret = value if "{}" in rule.positive else made.rpartition(",")[2]
    return Example(made, secret), Example(_PIECE.sub(lambda match: make_example(match[0], rule.kind), rule.negative))


def name_examples(rule: NameRule) -> tuple[Example, Example]:
    stem = rule.stems[0]
    name = (
        f"db_{stem}"
        if rule.part == "word" and stem.isascii()
        else f"api_{stem.lstrip('_')}"
        if rule.part == "key"
        else f"X{stem}"
        if rule.part == "tail"
        else stem
    )
    value = make_value(rule.judge, rule.kind + stem)
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


def _wallet_key(rule: TokenRule, seed: str) -> str:
    """A key whose checksum is right and that begins as the rule's form does."""
    chance = random.Random(seed)  # noqa: S311  (an example is no secret)
    starts = tuple(re.findall(r"[A-Za-z0-9]{2}", rule.shape.partition(")")[0])) if "(" in rule.shape[:1] else ()
    while True:
        raw = bytes([_WIF_VERSIONS[rule.kind], *chance.randbytes(32), *([1] if "<k50>" in rule.shape else [])])
        key = _encode_base58(raw + hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4])
        if not starts or key.startswith(starts):
            return key


def _stellar_seed(_rule: TokenRule, seed: str) -> str:
    raw = bytes([0x90, *random.Random(seed).randbytes(32)])  # noqa: S311  (an example is no secret)
    return base64.b32encode(raw + binascii.crc_hqx(raw, 0).to_bytes(2, "little")).decode()


_MAKERS: dict[str, Callable[[TokenRule, str], str]] = {"base58": _wallet_key, "stellar": _stellar_seed}


def _encode_base58(raw: bytes) -> str:
    number, text = int.from_bytes(raw, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return text
