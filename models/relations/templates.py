"""Pairs of statements made from patterns, so that no subject, tool or number decides whether the newer replaces the older."""

import random
from collections.abc import Iterator

Pair = tuple[str, str, int]
"""(older, newer, 1 where the newer makes the older void)"""

TOOLS = (
    ("background jobs", ("celery", "dramatiq", "faktory", "sidekiq")), ("the charts", ("plotly", "vega", "nivo")),
    ("our forms", ("formik", "final-form", "react-hook-form")), ("the asset pipeline", ("gulp", "brunch", "grunt")),
    ("device logs", ("segger rtt", "itm", "semihosting")), ("translations", ("crowdin", "lokalise", "phrase")),
    ("feature flags", ("flipt", "unleash", "growthbook")), ("the load tests", ("k6", "locust", "gatling")),
    ("pixel checks", ("percy", "chromatic", "argos")), ("image builds", ("kaniko", "buildah", "img")),
    ("the physics", ("bullet", "jolt", "physx")), ("sound", ("wwise", "fmod", "soloud")),
    ("the data catalog", ("amundsen", "datahub", "openmetadata")), ("orchestration", ("prefect", "luigi", "kedro")),
    ("contract tests", ("pact", "specmatic", "dredd")), ("invoices", ("wkhtmltopdf", "weasyprint", "typst")),
    ("maps", ("leaflet", "openlayers", "cesium")), ("crash reports", ("backtrace", "raygun", "bugsnag")),
    ("the message bus", ("emqx", "mosquitto", "hivemq")), ("config files", ("jsonnet", "cue", "dhall")),
    ("offline storage", ("realm", "watermelon", "pouchdb")), ("sign in", ("auth0", "ory", "zitadel")),
)  # fmt: skip
NUMBERS = (
    ("the retry delay", "{n} s", (2, 5, 10, 30)), ("the queue length", "{n}", (50, 200, 1000)),
    ("max upload", "{n} mb", (5, 20, 64)), ("the frame rate", "{n} fps", (30, 60, 90)),
    ("the spawn rate", "{n} per minute", (4, 8, 12)), ("the lock timeout", "{n} ms", (100, 250, 800)),
    ("log retention", "{n} days", (7, 14, 30)), ("the sample rate", "{n} khz", (16, 44, 48)),
    ("the worker count", "{n}", (2, 4, 8)), ("the page size", "{n}", (20, 25, 100)),
    ("the admin port", "{n}", (8081, 9001, 7443)), ("the min version", "{n}", (12, 14, 15)),
    ("the error budget", "{n} %", (1, 2, 5)), ("the token lifetime", "{n} hours", (1, 8, 24)),
)  # fmt: skip
PLACES = (
    ("the migrations", ("db/migrate", "migrations/", "sql/changes")), ("the icons", ("assets/icons", "ui/svg", "static/img")),
    ("the runbooks", ("docs/ops", "wiki/runbooks", "ops/books")), ("the pin map", ("hw/pins.h", "board/pins.toml", "docs/pins.md")),
    ("the prompts", ("prompts/", "llm/templates", "config/prompts.yaml")), ("quest scripts", ("data/quests", "scripts/quests", "content/q")),
)  # fmt: skip
PEOPLE = (
    ("the rollout", ("Ines", "Marek", "Odile")), ("schema changes", ("Farid", "Greta", "Ho")), ("the vendor calls", ("Ulla", "Pete", "Sana")),
    ("the art budget", ("Rosa", "Dirk", "Amir")), ("firmware signing", ("Lars", "Yui", "Bela")), ("the etl", ("Nora", "Ivo", "Chen")),
)  # fmt: skip
OLD = ("{s} is {a}", "we use {a} for {s}", "{s}: {a}", "{a} does {s}", "{s} runs on {a}", "{s} goes through {a}")
NEW = (
    "{s} is {b}", "{b} for {s}", "{s}: {b}", "{b} does {s} these days", "{s} went over to {b}", "we threw {a} out, {s} is {b}",
    "{a} is history, {s} is {b}", "{s} is {b}, don't look at {a}", "since the {e} {s} is {b}", "{s} is {b}, {a} {bad}",
    "with the {e} {s} became {b}", "no {a} for {s}, {b} handles it", "{b} has {s} since the {e}", "{a} {bad}, so {s} is {b} nowadays",
    "{b} took {s} over", "we're on {b} with {s}", "{s} comes from {b}", "{s} lives in {b}, {a} is stale", "{a} was cut, {s} is {b}",
    "we ended up with {b} for {s}", "{s} runs on {b} after the {e}", "ok {s} is {b} then", "{b}, not {a}, for {s}",
)  # fmt: skip
BESIDE = (
    "{t} is {b}", "we use {b} for {t}", "{t}: {b}", "{b} does {t}", "{t} is {b}, {e} wanted it", "{s} has an owner in every team",
    "{s} gets reviewed by two people", "{b} may be used for {s} in the {x}", "{s} of the {x} is {b}", "for the {x}, {s} stays on {b}",
    "{s} was {b} in 2021", "a friend uses {b} for {s}", "{b} would be nice for {s} one day", "{a} needs 2 gb of memory",
    "{a} took ten minutes yesterday", "never restart {a} at night", "{t} is {b} since the {e}", "{t} went over to {b}",
    "{s} in the {x} may be {b}", "{a} is pinned", "{s} is documented in the handbook", "{b} is for {t} only",
    "{a} must not be used for {t}", "{t} moved to {b}", "{b} replaced what we had for {t}",
)  # fmt: skip
NEW_NUMBER = (
    "{s} is {b}", "{s}: {b}", "{s} {b}", "{b} for {s}", "{s} went to {b}", "{s} is {b}, {a} {bad}", "since the {e} {s} is {b}",
    "we run {s} at {b}", "{s} was cut to {b}", "{s} has to be {b}", "{b} is {s} these days", "{s} may be up to {b}", "{s} got bumped to {b}",
    "make that {b} for {s}", "{s} {b}, {e} needs it", "{s} can be {b}",
)  # fmt: skip
BESIDE_NUMBER = (
    "{t} is {b}", "{t}: {b}", "{t} went to {b}", "since the {e} {t} is {b}", "{s} for the {x} is {b}", "in the {x} {s} is {b}",
    "{s} was {b} in 2021", "{s} showed {b} yesterday on the {x}, please check", "{s} is configurable", "{s} is read at start",
    "{t} must be below {b}", "{t} may be up to {b}", "{s} must never be zero",
)  # fmt: skip
EVENTS = ("migration", "relaunch", "audit", "reorg", "merger", "new contract", "rewrite", "incident", "port", "upgrade")
BAD = (
    "was too slow",
    "kept dying",
    "got too expensive",
    "clashed with the proxy",
    "never worked",
    "had no support",
    "was too little",
    "broke twice",
)
PARTS = (
    "kiosk",
    "beta channel",
    "old tablets",
    "demo",
    "test rig",
    "eu tenant",
    "night build",
    "simulator",
    "partner api",
)
OTHER_LANGUAGES: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]], ...] = (
    (("{s} läuft mit {a}", "für {s} nehmen wir {a}", "{s}: {a}"),
     ("{s} läuft mittlerweile mit {b}", "für {s} nehmen wir {b}", "{s} macht jetzt {b}", "{a} ist weg, {s} läuft mit {b}", "seit dem Umbau läuft {s} mit {b}"),
     ("{t} läuft mit {b}", "für {t} nehmen wir {b}", "{s} wird von zwei Leuten geprüft", "im Testsystem läuft {s} mit {b}"),
     (("der Import", ("Talend", "Pentaho", "Kettle")), ("die Suche", ("Solr", "Vespa", "Sphinx")), ("der Druck", ("CUPS", "JasperReports")))),
    (("{s} passe par {a}", "on utilise {a} pour {s}", "{s} : {a}"),
     ("{s} passe par {b}", "on utilise {b} pour {s}", "{s}, c'est {b} maintenant", "{a} est parti, {s} passe par {b}", "depuis la refonte {s} tourne avec {b}"),
     ("{t} passe par {b}", "on utilise {b} pour {t}", "{s} est relu par deux personnes", "en test {s} passe par {b}"),
     (("l'import", ("Talend", "Pentaho", "Kettle")), ("la recherche", ("Solr", "Vespa", "Sphinx")), ("l'impression", ("CUPS", "JasperReports")))),
    (("{s} usa {a}", "usamos {a} para {s}", "{s}: {a}"),
     ("{s} usa {b}", "para {s} tenemos {b}", "{s} va con {b}", "{a} ya es historia, {s} usa {b}", "desde la migración {s} usa {b}"),
     ("{t} usa {b}", "usamos {b} para {t}", "{s} lo revisan dos personas", "en pruebas {s} usa {b}"),
     (("la importación", ("Talend", "Pentaho", "Kettle")), ("la búsqueda", ("Solr", "Vespa", "Sphinx")), ("la impresión", ("CUPS", "Jasper")))),
    (("{s} usa {a}", "a gente usa {a} para {s}", "{s}: {a}"),
     ("{s} agora usa {b}", "para {s} é {b}", "{s} foi para {b}", "{a} saiu, {s} usa {b}", "depois da migração {s} usa {b}"),
     ("{t} usa {b}", "a gente usa {b} para {t}", "{s} é revisada por duas pessoas", "no teste {s} usa {b}"),
     (("a importação", ("Talend", "Pentaho", "Kettle")), ("a busca", ("Solr", "Vespa", "Sphinx")), ("a impressão", ("CUPS", "Jasper")))),
    (("{s} на {a}", "для {s} берём {a}", "{s}: {a}"),
     ("{s} на {b}", "{s} теперь на {b}", "для {s} теперь {b}", "{a} больше нет, {s} на {b}", "после переезда {s} на {b}"),
     ("{t} на {b}", "для {t} берём {b}", "{s} проверяют двое", "на тесте {s} на {b}"),
     (("импорт", ("Talend", "Pentaho", "Kettle")), ("поиск", ("Solr", "Vespa", "Sphinx")), ("печать", ("CUPS", "Jasper")))),
    (("{s}用 {a}", "{s}是 {a}"), ("{s}现在用 {b}", "{s}换成 {b} 了", "{s}用 {b}", "{s}已经是 {b}", "{a} 不用了，{s}用 {b}"),
     ("{t}用 {b}", "{t}现在用 {b}", "{s}要两个人审核", "测试环境的{s}用 {b}"),
     (("导入", ("Talend", "Pentaho", "Kettle")), ("搜索", ("Solr", "Vespa", "Sphinx")), ("打印", ("CUPS", "Jasper")))),
    (("{s}は{a}です", "{s}には{a}を使います"), ("{s}は{b}です", "{s}は{b}になりました", "{s}は今{b}です", "{a}はやめて、{s}は{b}です"),
     ("{t}は{b}です", "{t}は{b}になりました", "{s}は二人で確認します", "テスト環境の{s}は{b}です"),
     (("取り込み", ("Talend", "Pentaho", "Kettle")), ("検索", ("Solr", "Vespa", "Sphinx")), ("印刷", ("CUPS", "Jasper")))),
)  # fmt: skip


PROPERTIES: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("previews", (("are 200 px wide", "are 320 px wide", "may be 400 px wide"), ("are jpeg", "are webp", "are avif"), ("are made by the worker", "are made on upload"))),
    ("nightly builds", (("start at 1 am", "start at 3 am"), ("are signed", "are not signed"), ("go to the qa bucket", "land in the nightly channel"))),
    ("the crawler", (("waits 2 s", "waits 5 s between pages"), ("is owned by Jana", "is looked after by Rob"), ("runs in eu-west", "runs in the office"))),
    ("save games", (("are json", "are binary"), ("are kept for 30 days", "are kept for a year"), ("are named by date", "carry the player's name"))),
    ("sensor frames", (("are 32 bytes", "are 48 bytes long"), ("are little endian", "are big endian"), ("carry a crc", "have no checksum"))),
    ("orders", (("are partitioned by day", "are partitioned by month"), ("keep five years of history", "keep ten years of history"), ("are loaded at 2", "are streamed"))),
    ("tooltips", (("show after 500 ms", "show at once"), ("are written by the content team", "are generated"), ("are dark", "are light"))),
    ("api keys", (("last 90 days", "last a year"), ("are 32 characters", "are 64 characters long"), ("belong to a person", "belong to a service"))),
    ("the lobby", (("holds 8 players", "holds 12 players"), ("closes after 5 minutes", "stays open"), ("is written in go", "is a rust service"))),
    ("reports", (("go out on mondays", "go out on fridays"), ("are pdf", "are xlsx"), ("are reviewed by finance", "are reviewed by nobody"))),
)  # fmt: skip
UNIVERSAL = (
    ("pages", "page", "https", "http", ("scanner", "legacy", "status")), ("models", "model", "fp32", "bf16", ("vision", "speech", "toy")),
    ("services", "service", "go", "python", ("mail", "report", "billing")), ("tables", "table", "utf8", "latin1", ("import", "archive", "legal")),
    ("builds", "build", "reproducible", "timestamped", ("debug", "nightly", "demo")), ("texts", "text", "english", "german", ("legal", "press", "kiosk")),
    ("boards", "board", "lead free", "leaded", ("prototype", "repair", "lab")), ("levels", "level", "hand made", "generated", ("bonus", "tutorial", "test")),
    ("jobs", "job", "idempotent", "one-shot", ("seed", "cleanup", "export")), ("screens", "screen", "dark", "light", ("login", "print", "help")),
)  # fmt: skip
NARROWER = (
    "the {m} {one} is {b}",
    "{m} {many} are {b}",
    "{m} {many} can be {b}",
    "the {m} {one} stays {b}",
    "{b} for the {m} {many}",
    "the {m} {many} run {b}",
)
WIDER = (
    "{many} are {b}",
    "all {many} are {b} now",
    "{many}: {b}",
    "{many} may be {b}, {a} was too strict",
    "we make {many} {b}",
    "{many} are {b} from now on",
)


def _made_properties(chance: random.Random, each: int) -> Iterator[Pair]:
    """Another value of the same property replaces; another property of the same thing does not."""
    for subject, properties in PROPERTIES:
        for number in range(2 * each):
            one = chance.randrange(len(properties))
            replaced = number % 2 == 0
            other = one if replaced else chance.choice([n for n in range(len(properties)) if n != one])
            older = chance.choice(properties[one])
            newer = chance.choice([value for value in properties[other] if value != older])
            reason = chance.choice(("", "", f", the {chance.choice(EVENTS)} needs it", " now" if replaced else ""))
            yield f"{subject} {older}", f"{subject} {newer}{reason}", int(replaced)


def _made_exceptions(chance: random.Random, each: int) -> Iterator[Pair]:
    """A rule for all, then one for a part: both hold; then one for all: only that."""
    for many, one, a, b, parts in UNIVERSAL:
        for number in range(each):
            replaced = number % 2 == 0
            given = {"many": many, "one": one, "a": a, "b": b, "m": chance.choice(parts)}
            old = chance.choice(("all {many} are {a}", "every {one} is {a}", "{many} are {a}", "{many} have to be {a}"))
            new = chance.choice(WIDER if replaced else NARROWER)
            yield old.format(**given), new.format(**given), int(replaced)


def generated(seed: int = 5, each: int = 14) -> Iterator[Pair]:
    chance = random.Random(seed)
    for kinds, new, beside in ((TOOLS, NEW, BESIDE), (PLACES, NEW, BESIDE), (PEOPLE, NEW, BESIDE)):
        yield from _made(chance, kinds, OLD, new, beside, each)
    numbers = tuple((subject, tuple(form.format(n=n) for n in values)) for subject, form, values in NUMBERS)
    yield from _made(chance, numbers, ("{s} is {a}", "{s}: {a}", "{s} must be {a}"), NEW_NUMBER, BESIDE_NUMBER, each)
    yield from _made_properties(chance, each)
    yield from _made_exceptions(chance, each)
    for old, new, beside, subjects in OTHER_LANGUAGES:
        yield from _made(chance, subjects, old, new, beside, each)


def _made(
    chance: random.Random,
    subjects: tuple[tuple[str, tuple[str, ...]], ...],
    old: tuple[str, ...],
    new: tuple[str, ...],
    beside: tuple[str, ...],
    each: int,
) -> Iterator[Pair]:
    for subject, values in subjects:
        for number in range(each):
            a, b = chance.sample(values, 2)
            other, others = chance.choice([one for one in subjects if one[0] != subject])
            replaced = number % 2 == 0
            form = chance.choice(new if replaced else beside)
            filler = b if replaced or "{t}" not in form or chance.random() < 0.3 else chance.choice(others)
            given = {
                "s": subject,
                "t": other,
                "a": a,
                "e": chance.choice(EVENTS),
                "x": chance.choice(PARTS),
                "bad": chance.choice(BAD),
            }
            yield chance.choice(old).format(**given, b=b), form.format(**given, b=filler), int(replaced)
