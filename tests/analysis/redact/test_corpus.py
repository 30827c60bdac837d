"""What is found and what is hurt, by class, on the labelled corpus, on a list of our own and on ordinary code."""

import itertools
import json
import random
import re
import string
import sysconfig
from collections import defaultdict
from pathlib import Path

import pytest

from holdfast.analysis.redact import Redactor
from tests.analysis.redact import constructs, everyday_notations, named_values, ordinary_strings, sentences, tokens
from tests.analysis.redact.corpus import Record, body_of, records, strings_of
from tests.analysis.redact.examples import make_example

REDACTOR = Redactor()
LEAST = {"self-naming": 0.99, "named": 0.97, "context": 0.95, "prose": 0.70}
WORDS = "amber birch copper delta ember fjord garnet harbor iris".split()


def cleaned(record: Record) -> str:
    body, _ = REDACTOR.redact(body_of(record))
    return "\n".join(strings_of(json.loads(body)))


@pytest.fixture(scope="module")
def results() -> list[tuple[Record, str]]:
    return [(record, cleaned(record)) for record in records()]


def test_secrets_are_found(results: list[tuple[Record, str]]) -> None:
    sent: defaultdict[str, int] = defaultdict(int)
    found: defaultdict[str, int] = defaultdict(int)
    for record, text in results:
        if record.secret:
            sent[record.group] += 1
            found[record.group] += not any(form in text for form in (record.secret, *record.forms))
    for group, count in sent.items():
        print(f"{group}: {found[group]} of {count} = {100 * found[group] / count:.1f} %")
        assert found[group] >= LEAST[group] * count, group


def test_ordinary_strings_and_neighbours_stay(results: list[tuple[Record, str]]) -> None:
    ordinary = [(record, text) for record, text in results if not record.secret and not record.doubtful]
    hurt = [record.id for record, text in ordinary if any(kept not in text for kept in record.keep)]
    beside = [record.id for record, text in results if record.secret and any(kept not in text for kept in record.keep)]
    print(f"ordinary strings hurt: {len(hurt)} of {len(ordinary)}; neighbours lost: {len(beside)}")
    assert len(hurt) * 500 <= len(ordinary)
    assert len(beside) * 100 <= len(results)


# Two lists that somebody wrote who had not read the rules. At their first run: 243 of 246 and 136 of 137 by form, 224 of 251
# and 239 of 259 by name, 286 of 330 and 305 of 356 by context, 76 of 120 and 71 of 118 in prose, 8 of 578 and 3 of 553 hurt.
LEAST_OF_BLIND = {"self-naming": 0.99, "named": 0.97, "context": 0.95, "prose": 0.78}


def test_lists_of_people_who_had_not_read_the_rules() -> None:
    sent, found = defaultdict[str, int](int), defaultdict[str, int](int)
    hurt, ordinary = [], 0
    for record in records("secrets_blind"):
        if record.hard or record.doubtful:
            continue
        text = cleaned(record)
        if record.secret:
            sent[record.group] += 1
            found[record.group] += record.secret not in text
        else:
            ordinary += 1
            hurt += [record.text] if record.text not in text else []
    print({group: f"{found[group]} of {count}" for group, count in sent.items()}, f"hurt: {len(hurt)} of {ordinary}")
    assert [group for group, count in sent.items() if found[group] < LEAST_OF_BLIND[group] * count] == []
    assert len(hurt) * 500 <= ordinary, hurt


def test_the_list_of_our_own() -> None:
    chance = random.Random(11)
    missed = []
    for template in everyday_notations.SECRETS:
        values = make_values(chance)
        used = [value for name, value in values.items() if f"{{{name}}}" in template] or [
            everyday_notations.FIXED[template]
        ]
        text, _ = REDACTOR.redact_text(template.format(**values))
        missed += [template for value in used if value in text]
    hurt = [text for text in everyday_notations.ORDINARY if REDACTOR.redact_text(text)[1]]
    print(f"our own list: {len(missed)} of {len(everyday_notations.SECRETS)} missed, {len(hurt)} ordinary ones hurt")
    assert missed == []
    assert hurt == []


LISTS = (
    ("tokens", tokens.TOKENS, 19),
    ("named values", named_values.NAMED, 9),
    ("configurations", named_values.CONFIGURATIONS, 1),
    ("spellings", named_values.SPELLINGS, 0),
    ("constructs", constructs.CONSTRUCTS, 2),
    ("commands", constructs.COMMANDS, 0),
    ("sentences", sentences.SENTENCES, 7),
)
"""Each list, and how many of it may be missed."""


@pytest.mark.parametrize(("group", "templates", "most"), LISTS, ids=[one[0] for one in LISTS])
def test_secrets_of_the_lists_are_found(group: str, templates: tuple[str, ...], most: int) -> None:
    missed = [template for template in templates if not is_found(template)]
    assert len(missed) <= most, (group, missed)


def is_found(template: str) -> bool:
    text = make_text(template, "1")
    cleaned, _ = REDACTOR.redact_text(text.replace("«", "").replace("»", ""))
    return not any(secret in cleaned for secret in re.findall("«(.*?)»", text, re.DOTALL))


def make_text(template: str, seed: str) -> str:
    numbers = itertools.count()
    return re.sub(
        r"<uuid>|<\w\d+\+?>", lambda one: make_example(one[0], f"{seed} {template} {next(numbers)}"), template
    )


def make_values(chance: random.Random) -> dict[str, str]:
    letters = string.ascii_letters + string.digits
    return {
        "p": "".join(chance.choice(letters) for _ in range(11)) + chance.choice("7#!9"),
        "t": "".join(chance.choice(letters) for _ in range(36)),
        "h": "".join(chance.choice("0123456789abcdef") for _ in range(40)),
        "w": "-".join(chance.sample(WORDS, 3)) + f"-{chance.randint(100, 999)}",
    }


def test_ordinary_code_stays() -> None:
    words = marks = 0
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        content = file.read_text(encoding="utf-8", errors="ignore")
        words += len(content.split())
        marks += len(REDACTOR.redact_text(content)[1])
    print(f"{marks} redactions in {words} words of the standard library")
    assert marks * 100_000 <= words


def test_what_is_found_in_a_short_body_is_found_in_a_long_one() -> None:
    filler = "y = 2  # a line of a program\n" * 2500
    for template in itertools.chain.from_iterable(templates for _, templates, _ in LISTS):
        text = make_text(template, "1").replace("«", "").replace("»", "")
        short, long = ({"session_id": "s-1", "text": before + text} for before in ("y = 2\n", filler))
        if REDACTOR.redact_body(json.dumps(short).encode())[1]:
            assert REDACTOR.redact_body(json.dumps(long).encode())[1], text


def test_ordinary_strings_of_the_list_stay() -> None:
    texts = [make_text(template, str(seed)) for template in ordinary_strings.ORDINARY for seed in range(2)]
    hurt = [text for text in texts if REDACTOR.redact_text(text)[1]]
    assert hurt == []
