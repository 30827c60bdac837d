"""Statements made from patterns: the same subjects as rules, as tasks, as faults and as questions, so that the subject decides nothing."""

import random
from typing import Any

import data

THINGS = """parser|scheduler|gateway|importer|exporter|worker|cache|queue|router|renderer|mailer|indexer|crawler|tokenizer|encoder|billing job|search service|auth service|pricing engine|event bus|image service|report builder|sync agent|webhook handler|session store|rate limiter|feature store|audit log|user table|orders table|staging cluster|build server|device driver|asset pipeline|physics engine|level editor|training script|dataset loader|firmware|simulator|mobile app|admin panel|landing page|settings page|onboarding flow|payment form|invoice pdf|status page|dashboard|translation file|config loader|plugin host|test harness|release script""".split(
    "|"
)
PLURALS = """migrations|fixtures|handlers|commits|branches|releases|secrets|tokens|timestamps|amounts|prices|identifiers|queries|endpoints|components|modules|logs|metrics|alerts|backups|images|containers|charts|dashboards|drivers|sensors|models|datasets|notebooks|plots|shaders|assets|textures|levels|invoices|exports|imports|translations|labels|icons|snapshots|mocks|snippets|schemas|events|messages|jobs|workers|packages|dependencies|plugins|screenshots|reports""".split(
    "|"
)
PLACES = """src/core|lib/shared|the domain package|docs/handbook.md|infra/live|packages/ui|tests/data|the wiki|vault|the registry|the monorepo|a separate schema|the worker|the pipeline|tools/|config/base.yaml|the release branch|the review|the gateway|the client library|one place|s3|utc|english|plain sql|the sandbox|a feature flag|the container""".split(
    "|"
)
TOOLS = """bazel|ruff|mypy|eslint|biome|vite|esbuild|pytest|vitest|playwright|gradle|maven|poetry|uv|pnpm|yarn|terraform|pulumi|helm|argo|kafka|nats|redis|postgres|mysql|sqlite|clickhouse|duckdb|fastapi|flask|django|rails|svelte|vue|react|tailwind|storybook|grpc|graphql|rest|mqtt|protobuf|avro|jenkins|github actions|gitlab ci|sentry|grafana|datadog|auth0|keycloak|stripe|adyen|unity|godot|pytorch|jax|numpy|polars|pandas""".split(
    "|"
)
PASSIVES = (
    "stored in|kept in|written in|read from|generated from|loaded from|tested in|reviewed in|deployed from|"
    "validated in|documented in|named after|tagged in|encrypted in"
).split("|")
REASONS = [
    ", otherwise the build breaks",
    ", the linter checks it",
    ", customers depend on it",
    ", that's from the audit",
    " because the vendor wants it",
    ", the bot rejects anything else",
    ", legal insists",
    "",
    "",
    "",
    ", nobody does it by hand",
    ", or the push is refused",
    " so that restores work",
]
PEOPLE = "Mira|Tobias|Aylin|Jonas|Chen|Olga|Pedro|Sofie|Hassan|Ruth".split("|")
AREAS = "search|billing|the sdk|infra|the mobile app|design|data|security|the docs|checkout".split("|")
VERBS = (
    "add|write|fix|rename|remove|refactor|move|update|document|test|implement|speed up|clean up|extract|"
    "convert|rewrite|review|simplify|split"
).split("|")
DETAILS = [
    "",
    " please",
    " and add a test",
    " in this branch",
    ", then run the tests",
    " for me",
    " before lunch",
    " like in the other file",
    ", keep it short",
    " and never return null",
    " so that it always works",
    " instead of the old one",
    ", it should always be visible",
    " and don't use a library for it",
    ", only this file",
    ", we need it for the demo",
]
FAULTS = [
    "always returns an empty list",
    "never finishes",
    "crashes on startup",
    "is slow since yesterday",
    "doesn't work on firefox",
    "throws a TypeError",
    "returns 500 for some users",
    "loses the last row",
    "shows the wrong total",
    "hangs after a minute",
    "fails every second time",
    "never closes the connection",
    "ignores the filter",
    "is broken again",
    "must be leaking memory",
    "always shows yesterday's data",
    "can't be opened anymore",
    "doesn't use the right locale",
    "sends everything twice",
]
FAULT_ENDS = [
    "",
    "",
    ", please check",
    ", can you look",
    ", fix it",
    ", no idea why",
    " since the last deploy",
    ", customers complain",
    "!!",
    " on my machine",
]
LEADS = [
    "",
    "",
    "",
    "btw ",
    "by the way, ",
    "remember that ",
    "note that ",
    "fyi ",
    "for the future: ",
    "keep in mind that ",
    "and ",
    "just so you know, ",
]


def generated(seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    rows = [data._row(maker(rng), f"g{n}", "made") for n, maker in enumerate(m for m in MAKERS for _ in range(45))]
    own = data.read_markup(data.FOLDER / "positive.txt", "p")
    tasks = [
        r
        for r in data.read_markup(data.FOLDER / "negative.txt", "n")
        if r["tag"]
        in ("neg-oneoff", "neg-bug", "neg-question", "neg-chat", "neg-momentary", "neg-status", "neg-complaint")
    ]
    plain = [
        r
        for r in own
        if r["tag"] in ("pos-plain", "pos-gotcha", "pos-fact", "pos-pref", "pos-decision", "pos-trade")
        and "context" not in r
        and len(r["expect"]) == 1
    ]
    rows += [_mixed(rng, n, rng.choice(tasks), rng.choice(plain)) for n in range(500)]
    rows += [_listed(rng, n, rng.sample(plain, rng.randint(3, 8))) for n in range(110)]
    rows += [_two_negatives(rng, n, rng.choice(tasks), rng.choice(tasks)) for n in range(250)]
    return rows


def _mixed(rng: random.Random, n: int, task: dict[str, Any], lasting: dict[str, Any]) -> dict[str, Any]:
    first, second = _sentence(task["prompt"]), lasting["prompt"]
    prompt = (
        f"{first} {_cased(rng, second)}" if rng.random() < 0.7 else f"{_sentence(_cased(rng, second))} {task['prompt']}"
    )
    return {
        **lasting,
        "id": f"x{n}",
        "prompt": prompt,
        "expect": [{**lasting["expect"][0], "quote": lasting["expect"][0]["quote"]}],
        "tag": "made-mixed",
    }


def _listed(rng: random.Random, n: int, several: list[dict[str, Any]]) -> dict[str, Any]:
    glue = rng.choice(("\n- ", ". ", "\n"))
    prompt = (
        rng.choice(("", "some rules: ", "for the record: ", "about this project."))
        + (glue if glue != ". " else " ")
        + glue.join(r["prompt"] for r in several)
    )
    return {
        **several[0],
        "id": f"z{n}",
        "prompt": prompt.strip(),
        "expect": [r["expect"][0] for r in several],
        "tag": "made-list",
    }


def _two_negatives(rng: random.Random, n: int, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {
        **one,
        "id": f"y{n}",
        "prompt": f"{_sentence(one['prompt'])} {_cased(rng, other['prompt'])}",
        "tag": "made-neg",
    }


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!", "。", "？")) else f"{text}."


def _cased(rng: random.Random, text: str) -> str:
    return text[:1].upper() + text[1:] if rng.random() < 0.5 else text


def _pick(rng: random.Random, values: list[str]) -> str:
    return rng.choice(values)


def rule_passive(r: random.Random) -> str:
    return f"{_pick(r, LEADS)}[[rule|{_pick(r, PLURALS)} are {r.choice(['', 'always ', 'only ', 'never '])}{_pick(r, PASSIVES)} {_pick(r, PLACES)}{_pick(r, REASONS)}]]"


def rule_modal(r: random.Random) -> str:
    modal = r.choice(
        [
            "must be signed",
            "have to be reviewed by two people",
            "may not be edited by hand",
            "need an owner",
            "must never contain personal data",
            "aren't allowed in the core",
            "go through review",
            "have to pass the checks first",
            "need a ticket",
            "may only be changed by the bot",
            "stay below 300 lines",
            "must not depend on the clock",
        ]
    )
    return f"{_pick(r, LEADS)}[[rule|{r.choice(['', 'all ', 'new ', 'our '])}{_pick(r, PLURALS)} {modal}{_pick(r, REASONS)}]]"


def rule_no(r: random.Random) -> str:
    return f"{_pick(r, LEADS)}[[rule|{r.choice(['no ' + _pick(r, TOOLS) + ' in ' + _pick(r, PLACES), 'only ' + _pick(r, TOOLS) + ' for ' + _pick(r, PLURALS), 'nobody edits ' + _pick(r, PLURALS) + ' by hand', 'we never use ' + _pick(r, TOOLS) + ' for ' + _pick(r, PLURALS), 'never put ' + _pick(r, PLURALS) + ' in ' + _pick(r, PLACES), 'every ' + _pick(r, THINGS) + ' needs an owner'])}{_pick(r, REASONS)}]]"


def decision(r: random.Random) -> str:
    a, b = r.sample(TOOLS, 2)
    return f"{r.choice(['', '', 'ok, ', 'talked to the others, ', 'final: '])}[[decision|{r.choice([f'we use {a} for {_pick(r, PLURALS)}', f'we are moving from {a} to {b}', f'{a} replaces {b}', f'{a} instead of {b} for new code', f'we decided on {a}', f'{b} goes, {a} comes', f'we stay with {a}, {b} is off the table', f'no {a}, {b} stays', f'the {_pick(r, THINGS)} is going to be rewritten with {a}', f'we dropped {b} for {a}', f'{a} it is, {b} was too slow for us', f'support for {a} ends with the next major version'])}]]"


def fact(r: random.Random) -> str:
    a, p = _pick(r, THINGS), _pick(r, PEOPLE)
    return f"{_pick(r, LEADS)}[[fact|{r.choice([f'the {a} runs on {_pick(r, TOOLS)}', f'{p} owns {_pick(r, AREAS)}', f'the {a} lives in {_pick(r, PLACES)}', f'the {a} is started every night at {r.randint(0, 6)}', f'the {a} is maintained by another team', f'the config of the {a} comes from {_pick(r, PLACES)}', f'what we call {_pick(r, AREAS)} is the {a} in the code', f'{_pick(r, PLURALS)} are kept for {r.randint(7, 90)} days', f'there are two kinds of {_pick(r, PLURALS)}, public and internal', f'questions about {_pick(r, AREAS)} go to {p}', f'the {a} listens on port {r.randint(3000, 9000)}', f'the {a} only sees {_pick(r, PLURALS)} of its own region'])}]]"


def gotcha(r: random.Random) -> str:
    a, t = _pick(r, THINGS), _pick(r, TOOLS)
    return f"{r.choice(['', '', 'careful, ', 'watch out: ', 'keep in mind that '])}[[gotcha|{r.choice([f'the {a} caches its config, restart it after a change', f'{t} silently drops fields it does not know, so check the count', f'running the {a} twice duplicates the {_pick(r, PLURALS)}', f'{t} needs a clean build after an upgrade or it uses the old one', f'if the {a} is empty {t} hangs instead of failing', f'the {a} looks healthy even when its queue is dead', f'on windows {t} gets the paths wrong, use the container', f'without the env file {t} talks to the real server', f'the first run of the {a} after a deploy takes minutes because of the cold cache'])}]]"


def preference(r: random.Random) -> str:
    return f"{r.choice(['', '', 'please ', 'from now on '])}[[preference|{r.choice(['show me the plan before you write code', 'keep your answers short', 'answer in ' + r.choice(['german', 'english', 'italian']), 'no summaries at the end', 'ask before you ' + r.choice(['install', 'delete', 'rename', 'commit', 'push']) + ' anything', 'only run the tests of what you changed', 'write comments only where the code is odd', 'tell me when you are not sure', 'one change per commit', 'always name the files you touched', 'never touch files I did not mention', 'explain ' + _pick(r, TOOLS) + ' things to me, I am new to it', 'use plain words with me'])}]]"


def task(r: random.Random) -> str:
    return f"{r.choice(['', '', '', 'please ', 'can you ', 'ok now ', 'and then ', 'I want you to '])}{_pick(r, VERBS)} the {_pick(r, THINGS)}{_pick(r, DETAILS)}"


def spec(r: random.Random) -> str:
    a = _pick(r, THINGS)
    return r.choice(
        [
            f"the {a} should always show the newest entry first",
            f"I want the {a} to never block the page",
            f"the {a} needs a --json flag",
            f"we need a test for the {a}",
            f"I'd like a button in the {a} that exports everything",
            f"make sure the {a} stops after three attempts",
            f"use {_pick(r, TOOLS)} instead of {_pick(r, TOOLS)} in this file",
            f"the {a} must return 404 when nothing is found, add that",
            f"let's use a map in the {a}",
            f"don't use {_pick(r, TOOLS)} for this one",
            f"the {a} has three steps: load, check, save. build the first",
            f"every row of the {a} should have a checkbox",
            f"let's try {_pick(r, TOOLS)} in the {a} and see how it goes",
        ]
    )


def fault(r: random.Random) -> str:
    return f"{r.choice(['', '', 'hm, ', 'bug: ', 'I noticed that '])}the {_pick(r, THINGS)} {_pick(r, FAULTS)}{_pick(r, FAULT_ENDS)}"


def question(r: random.Random) -> str:
    a, p = _pick(r, THINGS), _pick(r, PLURALS)
    return r.choice(
        [
            f"why are {p} never {r.choice(['closed', 'deleted', 'signed'])}",
            f"should {p} always be {_pick(r, PASSIVES)} {_pick(r, PLACES)}?",
            f"do we use {_pick(r, TOOLS)} or {_pick(r, TOOLS)} for {p}",
            f"where does the {a} get its config from",
            f"is it true that {p} must be reviewed",
            f"who owns {_pick(r, AREAS)} these days",
            f"what happens when the {a} is down",
            f"did we decide on {_pick(r, TOOLS)}?",
            f"are {p} allowed in {_pick(r, PLACES)}",
        ]
    )


def hypothetical(r: random.Random) -> str:
    a, b = r.sample(TOOLS, 2)
    return r.choice(
        [
            f"maybe we should use {a} instead of {b} some day",
            f"we could move the {_pick(r, THINGS)} to {a}, not sure",
            f"if we ever switch to {a} the {_pick(r, THINGS)} has to go",
            f"I'm thinking about {a} for {_pick(r, PLURALS)}, opinions?",
            f"suppose we never used {a}, what breaks",
            f"it would be nice if {_pick(r, PLURALS)} were always {_pick(r, PASSIVES)} {_pick(r, PLACES)}",
        ]
    )


def past(r: random.Random) -> str:
    a, b = r.sample(TOOLS, 2)
    return r.choice(
        [
            f"two years ago we used {a} for {_pick(r, PLURALS)}",
            f"the old {_pick(r, THINGS)} was always written in {a}, that's gone",
            f"we tried {a} once and went back to what we had",
            f"yesterday I ran the {_pick(r, THINGS)} with {b} and it was slow",
            f"originally {_pick(r, PLURALS)} were {_pick(r, PASSIVES)} {_pick(r, PLACES)}, nobody remembers why",
        ]
    )


def reported(r: random.Random) -> str:
    t = _pick(r, TOOLS)
    inner = r.choice(
        [
            f"never use {t} for {_pick(r, PLURALS)}",
            f"{_pick(r, PLURALS)} must always be signed",
            f"we decided to drop {t}",
            f"please don't touch the {_pick(r, THINGS)}",
        ]
    )
    return r.choice(
        [
            f'the customer writes: "{inner}" what do I answer',
            f'the docs of {t} say "{inner}". do we do that?',
            f"somebody on reddit says {inner}. true?",
            f"the {t} people always say {inner}, what do you think",
            f'Anna asked in the review: "{inner}?" reply to her',
            f'the ticket says "{inner}", close it',
            f"at my last company the rule was: {inner}. how is it here?",
        ]
    )


def momentary(r: random.Random) -> str:
    return r.choice(
        [
            f"don't touch the {_pick(r, THINGS)} right now, I'm working on it",
            f"use the other {_pick(r, THINGS)} for now",
            f"no {_pick(r, TOOLS)} today please, the server is down",
            "wait, not yet",
            f"leave the {_pick(r, THINGS)} for tomorrow",
            f"the {_pick(r, THINGS)} is being restored at the moment, use local",
            f"for the next hour only the {_pick(r, THINGS)}",
            f"I meant the {_pick(r, THINGS)}, not the {_pick(r, THINGS)}",
            f"skip the {_pick(r, THINGS)} this time",
            f"stop, that's the wrong {_pick(r, THINGS)}",
        ]
    )


OPENINGS = [
    "We decided to use {}", "we've agreed to use {}", "we agreed on {}", "we decided to go with {}", "the decision is {}",
    "we decided against {}", "wir haben uns für {} entschieden", "hemos decidido usar {}", "on a décidé d'utiliser {}",
    "decidimos usar {}", "мы решили использовать {}", "我们决定用 {}", "abbiamo deciso di usare {}",
]  # fmt: skip
ASIDES = [
    "",
    "",
    ".",
    ". The rest is up to you.",
    ". The ticket is #{n}.",
    ". Thanks.",
    ". Go on with the {thing}.",
    ". {n} files are left.",
]


def decided(r: random.Random) -> str:
    """Said outright, alone or beside a sentence that lasts no longer than the task."""
    what = r.choice(OPENINGS).format(_pick(r, TOOLS))
    about = r.choice(["", "", f" for the {_pick(r, THINGS)}", f" for {_pick(r, PLURALS)}"]) if what.isascii() else ""
    aside = _pick(r, ASIDES).format(n=r.randint(2, 900), thing=_pick(r, THINGS))
    return f"[[decision|{what}{about}]]{aside}"


MAKERS = [
    decided,
    decided,
    rule_passive,
    rule_passive,
    rule_modal,
    rule_modal,
    rule_no,
    rule_no,
    decision,
    decision,
    fact,
    fact,
    gotcha,
    gotcha,
    preference,
    task,
    task,
    task,
    spec,
    spec,
    fault,
    fault,
    question,
    hypothetical,
    past,
    reported,
    momentary,
]
