"""Words of software work by what they are about, so that "amount" finds the rule on money. Stems, English and a little more."""

from holdfast.features.memory.terms import stem
from holdfast.features.memory.validity.tools import GROUP_OF

_GROUPS: dict[str, str] = {
    "money": ("money amount amounts price prices cent cents refund refunds payment pay fee fees invoice invoices total "
"totals currency decimal euro dollar discount discounts tax vat net gross cost balance charge billing "
"coupon preis betrag"),
    "tests": ("test tests testing pytest unittest vitest jest spec fixture fixtures mock mocks flaky assertion "
"coverage cassette cassettes e2e suite snapshot snapshots tdd prueba pruebas"),
    "docs": ("docs doc documentation readme page wiki handbook guide changelog tutorial docstring docstrings manual "
"article chapter spelling glossary"),
    "time": "date dates day time timestamp timestamps utc timezone zone calendar clock deadline due datum",
    "database": ("database db postgres mysql sqlite table tables column columns migration migrations schema index indexes "
"query queries sql view insert inserts row rows statement statements transaction orm pgbouncer "
"sqlalchemy relation relations join select record records lookup alembic backfill datenbank tabelle"),
    "orm": ("sqlalchemy orm lazy relation relations selectinload eager model models repository repositories "
"hibernate prisma query queries builder"),
    "auth": ("auth authentication login logout permission permissions role roles sso token tokens session sessions "
"password passwords oauth user-rights access group groups keycloak jwt"),
    "release": ("release releases push commit commits signed version versions tag tags deploy deploys deployment publish "
"hotfix rollout changelog ship pipeline bump"),
    "git": ("git commit commits push pushing pull branch branches merge merges rebase squash pr prs review approval "
"approvals signed main master develop"),
    "ui": ("ui page screen button banner header footer colour colours color colors css component components style "
"styling layout label labels font icon icons dialog form modal theme dark red green blue tooltip text "
"texts menu view width tailwind hex tokens navbar sidebar widget"),
    "texts": "text texts string strings translation translations i18n language wording label message banner title copy key",
    "storage": ("file files upload uploads download bucket s3 storage attachment attachments aws disk volume blob "
"presigned image images picture pictures"),
    "performance": ("slow faster speed performance latency p95 p50 p99 ms cache caching optimise optimize profile memory "
"bundle size budget kb gzipped throughput load transaction request requests seconds"),
    "bundle": "bundle chunk webpack vite icons moment lodash import imports size kb kilobyte minify entry",
    "network": "http retry retries request requests upstream gateway proxy websocket rest grpc rate limit callback webhook",
    "timeouts": "timeout timeouts times slow latency hang deadline",
    "jobs": "job jobs worker workers queue queues celery cron batch background scheduler task nightly async",
    "accessibility": "accessibility a11y axe label labels aria keyboard contrast screenreader interactive",
    "logging": "log logs logging logger trace tracing metrics monitoring alert alerts sentry print console structlog",
    "errors": "error errors exception exceptions problem+json status failure 404 409 500",
    "security": "secret secrets password passwords key keys vault encryption credentials token audit compliance gdpr privacy pii",
    "dependencies": ("dependency dependencies package packages library libraries npm pnpm yarn pip uv licence license upgrade "
"version install node"),
    "import": ("import importer imports export exporter csv xlsx parser parse supplier feed lieferant datei dateien "
"import-file file files encoding"),
    "infra": ("infra terraform docker compose kubernetes k8s container containers helm server servers cluster staging "
"production prod environment env port region runner runners ci"),
    "mobile": "mobile ios android app phone swift kotlin simulator emulator",
    "data": "data model models dataset training features pipeline etl warehouse analytics notebook plot",
    "deletion": "delete remove removed drop cleanup clean dead unused purge archive archived hard",
    "generated": "generated generate codegen openapi proto client clients schema sdk field fields",
}  # fmt: skip
CONCEPTS_OF: dict[str, set[str]] = {}
for _name, _words in _GROUPS.items():
    for _word in _words.split():
        CONCEPTS_OF.setdefault(stem(_word) if _word.isalpha() else _word, set()).add(_name)


def is_specific(concept: str, words: set[str]) -> bool:
    """Whether one of the words means this and nothing else."""
    return any(CONCEPTS_OF.get(word) == {concept} for word in words) or concept.startswith("tool:")


def concepts_of(words: set[str]) -> set[str]:
    found = {concept for word in words for concept in CONCEPTS_OF.get(word, ())}
    return found | {f"tool:{GROUP_OF[word]}" for word in words if word in GROUP_OF}
