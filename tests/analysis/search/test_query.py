"""What is read from a question's text alone."""

import pytest

from holdfast.analysis.search.evidence import flatten_words, name_in_line, phrase_share
from holdfast.analysis.search.languages import role_of, role_of_chunk
from holdfast.analysis.search.lexical import edit_distance
from holdfast.analysis.search.query import names_in, parse_query
from holdfast.analysis.search.tokens import whole_tokens


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ("where is parse_status used", ["parse_status"]),
        ("Server::serve", ["Server::serve"]),
        ("the quick brown fox", []),
        ("why does `turn_wheel()` raise a ValueError?", ["turn_wheel", "ValueError"]),
        ("what does --no-audit do", ["--no-audit"]),
        ("route /api/users/:id", ["/api/users/:id"]),
        ("default of web.sessionTimeout", ["web.sessionTimeout"]),
        ("css class entry-swipe", ["entry-swipe"]),
        ("where are the built-in themes of it", []),
    ],
)
def test_what_counts_as_a_name(asked: str, names: list[str]) -> None:
    assert names_in(asked) == names


def test_what_a_question_is_about() -> None:
    assert parse_query("how do I build it from source").about_documents
    assert parse_query("docker compose file with a database").about_configuration
    assert parse_query("add a new notifier: where is the list of notifiers").is_task
    assert parse_query("unit tests for the parser").about_tests
    plain = parse_query("where are old articles removed")
    assert not (plain.about_documents or plain.about_configuration or plain.is_task or plain.about_tests)


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("src/app.py", "code"), ("tests/app.py", "test"), ("src/AppTest.java", "test"), ("src/contest.py", "code"),
        ("app_test.go", "test"), ("src/locales/de.json", "translation"), ("CHANGELOG.md", "changelog"),
        ("docs/guide.rst", "document"), ("config/app.yaml", "configuration"), ("src/latest.py", "code"),
        ("doc/README-ru.md", "translation"), ("README.zh-Hans.md", "translation"), ("docs/user-id.md", "document"),
        ("gui/vendor/jquery/jquery-3.7.1.js", "vendored"), ("src/vendors.py", "code"), ("web/app.css", "style"),
        ("lib/mocks/model.go", "test"), (".github/workflows/ci.yaml", "automation"),
    ],
)  # fmt: skip
def test_what_a_file_is_for(path: str, role: str) -> None:
    assert role_of(path) == role


def test_tests_that_stand_beside_what_they_test() -> None:
    assert role_of_chunk("src/diff.rs", "tests.counts_lines") == "test"
    assert role_of_chunk("src/diff.rs", "contest.latest") == "code"
    assert role_of_chunk("src/tests.py", "tests.counts_lines") == "code"


def test_whole_tokens_are_names_as_they_stand() -> None:
    text = 'opt("no-audit"); MAX_SIZE = get("web.timeout", parseHeader)\nlog-level: 3\nrun --dry-run plain word'
    assert whole_tokens(text) == {"no-audit", "max_size", "web.timeout", "parseheader", "log-level", "dry-run"}


def test_a_declaration_is_worth_more_than_a_use() -> None:
    declared, used = name_in_line("LIMIT", "const LIMIT = 3"), name_in_line("LIMIT", "if size > LIMIT {")
    assert declared > name_in_line("LIMIT", 'os.getenv("LIMIT")') > used > name_in_line("LIMIT", "limit(2)") > 0
    assert name_in_line("LIMIT", "LIMITS = 3") == 0
    registered = (
        "new InputOption('no-audit', null)",
        'flags.Bool("no-audit", false)',
        'parser.add_argument("--no-audit")',
    )
    reading = "if ($input->getOption('no-audit')) {", 'ctx.IsSet("no-audit")'
    assert min(name_in_line("--no-audit", line) for line in registered) > max(
        name_in_line("--no-audit", line) for line in reading
    )
    assert name_in_line("WEB_URL", "#### [`WEB_URL=<url>`](#WEB_URL)") > name_in_line("WEB_URL", "set WEB_URL first")
    created = '<createTable tableName="tc_users">', 'await knex.schema.createTable("tc_users", (table) => {'
    assert {name_in_line("tc_users", line) for line in created} == {declared}
    assert name_in_line("tc_users", '<addColumn tableName="tc_users">') < declared


def test_a_message_is_recognised_with_its_values_filled_in() -> None:
    rarity = dict.fromkeys("port 5055 disabled due to conflict".split(), 2.0)
    words = ["port", "5055", "disabled", "due", "to", "conflict"]
    assert phrase_share(words, flatten_words('LOG.warn("Port {} disabled due to conflict", port)'), rarity) > 0.4
    assert phrase_share(words, flatten_words("the conflict is due to a disabled port"), rarity) == 0


@pytest.mark.parametrize(
    ("one", "other", "count"), [("limitter", "limiter", 1), ("traker", "tracker", 1), ("same", "same", 0)]
)
def test_edits(one: str, other: str, count: int) -> None:
    assert edit_distance(one, other, 2) == count


def test_digests_are_no_words_and_versions_are() -> None:
    assert parse_query("hash mismatch 3fa0 != 0x77b1").telling_words == ("hash", "mismatch")
    assert parse_query("decode utf8 v2 header").telling_words == ("decode", "utf", "8", "v", "2", "header")
    assert parse_query("3fa0").telling_words == ("3", "fa", "0")
