"""What every store promises about the full-text index of the log: found, filtered, caught up once, erased."""

import sqlite3
from pathlib import Path

import msgspec
import pytest

from holdfast.core.erase import Quotation, build_eraser
from holdfast.core.event import Event
from holdfast.core.history import MARK, HistoryMark, next_page, split_phrases
from holdfast.core.ports import HistoryQuery, Reader, Store
from holdfast.stores.erase import EraseSql, rewrite_copy
from tests.factories import NOON, an_event


def erase(store: Store, text: str) -> None:
    wanted = Quotation(text)
    store.rewrite(wanted.probes, build_eraser([wanted]))


def append(store: Store, *given: Event) -> None:
    with store.transaction() as head:
        store.append([msgspec.structs.replace(e, seq=head + n) for n, e in enumerate(given, 1)])


def index_all(store: Store, reader: Reader, limit: int = 2) -> None:
    while page := next_page(reader, limit):
        with store.transaction(durable=False):
            assert store.index_history(page.entries, str(page.before), str(page.after))


def find(reader: Reader, text: str = "", **filters: object) -> list[int]:
    return reader.history(HistoryQuery(phrases=split_phrases(text, 32), **filters))  # type: ignore[arg-type]


def a_prompt(text: str, **given: object) -> Event:
    return an_event(kind="prompt.submitted", tool="", data={"prompt": text}, **given)


def a_command(command: str, **data: object) -> Event:
    kind = "tool.finished" if data.get("ok", True) else "tool.failed"
    return an_event(kind=kind, data={"command": command, "ok": True, **data})


def test_words_are_found_newest_first(store: Store, reader: Reader):
    append(store, a_prompt("Fix the login page"), a_command("npm test"), a_prompt("the LOGIN again"))
    index_all(store, reader)
    assert find(reader, "login") == [3, 1]
    assert find(reader, "login page") == [1]
    assert find(reader, "nowhere") == []


def test_what_was_imported_late_is_in_its_place_by_time(store: Store, reader: Reader):
    append(
        store,
        a_prompt("the login of today", at=NOON),
        a_prompt("an old login", at=NOON - 9_000),
        a_prompt("a later old login", at=NOON - 5_000),
        a_prompt("login as well", at=NOON),
    )
    index_all(store, reader)
    assert find(reader, "login") == [4, 1, 3, 2]
    assert find(reader, "login", limit=2) == [4, 1]
    assert find(reader, "login", before=1) == [3, 2]
    assert find(reader, "login", before=1, since=NOON - 5_000) == [3]


def test_names_paths_and_phrases_are_words_in_a_row(store: Store, reader: Reader):
    append(store, a_command("pytest tests/app/test_url.py -k parse_url"), a_command("url parse test"))
    index_all(store, reader)
    assert find(reader, "parse_url") == [1]
    assert find(reader, "tests/app/test_url.py") == [1]
    assert find(reader, '"url parse"') == [2]


def test_outputs_errors_inputs_and_commits_are_searched(store: Store, reader: Reader):
    append(
        store,
        a_command("make", output="undefined reference to `main`"),
        a_command("make", ok=False, error="ZeroDivisionError: division by zero"),
        an_event(data={"input": {"todos": [{"content": "ring the bell"}]}, "ok": True}),
        an_event(kind="git.acted", data={"verb": "commit", "commits": ["4f2a91c"]}),
    )
    index_all(store, reader)
    assert find(reader, "undefined reference") == [1]
    assert find(reader, "zerodivisionerror") == [2]
    assert find(reader, "bell") == [3]
    assert find(reader, "4f2a91c") == [4]


def test_filters(store: Store, reader: Reader):
    append(
        store,
        a_prompt("one word", session="s-1", project="/a", agent="codex", at=NOON),
        a_prompt("one word", session="s-2", project="/b", agent="gemini", at=NOON + 10),
        an_event(
            data={"command": "word", "ok": False, "paths": ["/b/src/app.py"]},
            kind="tool.failed",
            project="/b",
            at=NOON + 20,
        ),
    )
    index_all(store, reader)
    assert find(reader, "word", session="s-2") == [2]
    assert find(reader, "word", project="/b") == [3, 2]
    assert find(reader, "word", agent="codex") == [1]
    assert find(reader, "word", tool="Bash") == [3]
    assert find(reader, "word", failed=True) == [3]
    assert find(reader, "word", since=NOON + 10) == [3, 2]
    assert find(reader, "word", kinds=("prompt.submitted",)) == [2, 1]
    assert find(reader, "word", file="src/app.py") == [3]
    assert find(reader, "", file="app.py", failed=True) == [3]
    assert find(reader, "word", before=3, limit=1) == [2]
    assert find(reader, "word", project="/never") == []
    assert find(reader, "word", kinds=("never.seen",)) == []


def test_any_word_and_the_beginning_of_the_last(store: Store, reader: Reader):
    append(store, a_prompt("alpha beta"), a_prompt("gamma"))
    index_all(store, reader)
    assert find(reader, "alpha gamma", any_phrase=True) == [2, 1]
    assert find(reader, "alpha be", prefix=True) == [1]
    assert find(reader, "alpha be") == []


@pytest.mark.parametrize(
    "query",
    [
        'a AND (b OR "', "NEAR(x, 5)", "words: *", "-", "^", "' or 1=1 --", "a:*", "{paths} : x", "!!", "x & | y", "\x00", "\ud800x",
        "ключ 鍵 key", " ".join(f"w{n}" for n in range(10_000)), "x" * 200_000, "é", "\u0301", "😀", "a<->b", "\\", "%s %b",
    ],
)  # fmt: skip
def test_operators_are_plain_text_and_nothing_fails(store: Store, reader: Reader, query: str):
    append(store, a_prompt("a note"))
    index_all(store, reader)
    for any_phrase in (False, True):
        find(reader, query, any_phrase=any_phrase, prefix=True)
        find(reader, "note", file=query)


def test_other_scripts_and_accents(store: Store, reader: Reader):
    append(store, a_prompt("登录页面崩溃了"), a_prompt("Проверь вход"), a_prompt("déjà vu"), a_prompt("로그인 오류"))
    index_all(store, reader)
    assert find(reader, "页面") == [1]
    assert find(reader, "面页") == []
    assert find(reader, "ПРОВЕРЬ") == [2]
    assert find(reader, "deja") == [3]
    assert find(reader, "로그인") == [4]


def test_figures_and_repetitions_are_not_indexed(store: Store, reader: Reader):
    append(
        store,
        an_event(kind="model.answered", data={"answer": "msg_1", "model": "sonnet", "tokens": {"input": 3}}),
        an_event(kind="message.displayed", data={"message": "part"}),
        an_event(kind="session.started", data={"source": "startup"}),
    )
    index_all(store, reader)
    assert HistoryMark.parse(reader.meta(MARK)).seq == 3
    assert find(reader, "part") == find(reader, "sonnet") == []


def test_a_page_is_written_once_and_goes_on_where_it_ended(store: Store, reader: Reader):
    append(store, a_prompt("one"), a_prompt("two"), a_prompt("three"))
    page = next_page(reader, 2)
    assert page
    for written in (True, False):  # two daemons on one store made the same page
        with store.transaction():
            assert store.index_history(page.entries, str(page.before), str(page.after)) is written
    assert (find(reader, "two"), find(reader, "three")) == ([2], [])
    index_all(store, reader)
    assert find(reader, "three") == [3]
    assert next_page(reader, 2) is None


def test_what_is_forgotten_is_not_found_any_more(store: Store, reader: Reader):
    secret = "the codename is Zebrafinch marmalade"
    append(store, a_prompt(f"Hi, {secret}!"), a_prompt("the codename is another"))
    index_all(store, reader)
    stale = next_page(reader, 1)
    assert stale is None
    with store.transaction():
        erase(store, secret)
    store.vacuum_erased()
    assert find(reader, "zebrafinch") == find(reader, "marmalade") == []
    assert find(reader, "hi forgotten") == [1]
    assert find(reader, "codename") == [2]


def test_a_page_made_before_an_erasure_is_not_written_after_it(store: Store, reader: Reader):
    secret = "the codename is Zebrafinch marmalade"
    append(store, a_prompt(secret))
    page = next_page(reader, 5)
    assert page
    with store.transaction():
        erase(store, secret)
    with store.transaction():
        assert not store.index_history(page.entries, str(page.before), str(page.after))
    index_all(store, reader)
    assert (find(reader, "zebrafinch"), find(reader, "forgotten")) == ([], [1])


# ---- SQLite's file


def _index_terms(path: Path) -> set[str]:
    import apsw

    db = apsw.Connection(str(path))
    try:
        db.execute("create virtual table temp.terms using fts5vocab(main, history, 'row')")
        return {str(term) for (term,) in db.execute("select term from terms")}
    finally:
        db.close()


def test_forgotten_words_are_in_no_byte_of_the_file(store: Store, reader: Reader, tmp_path: Path):
    secret = "qzebrafinchq xmarmaladex"
    append(store, *(a_prompt(f"note {n}") for n in range(200)), a_prompt(f"Hi {secret}"))
    index_all(store, reader, limit=3)
    path, copy = store.path, tmp_path / "backup.db"
    with sqlite3.connect(path) as one, sqlite3.connect(copy) as other:
        one.backup(other)
    with store.transaction():
        erase(store, secret)
    store.vacuum_erased()
    rewrite_copy(copy, lambda db: EraseSql(db).rewrite(Quotation(secret).probes, build_eraser([Quotation(secret)])))
    for file in (path, copy):
        assert not {"qzebrafinchq", "xmarmaladex"} & _index_terms(file)
        content = b"".join(each.read_bytes() for each in file.parent.glob(file.name + "*"))
        assert b"zebrafinch" not in content and b"armaladex" not in content
