"""The incremental index is what a full one would be, whatever happened to the files and to the run."""

import itertools
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.analysis.search import inspect, static_model
from holdfast.analysis.search.answer import Question
from holdfast.analysis.search.index import build, claim, update
from holdfast.analysis.search.index.checkout import list_checkout
from holdfast.analysis.search.index.file_entry import KnownFile, read_entry
from holdfast.analysis.search.index.places import index_dir_of
from holdfast.analysis.search.searcher import Searcher
from holdfast.analysis.search.settings import IndexSettings
from tests.analysis.search.tree import Tree, content
from tests.kit import git, wait_until

KILLS = int(os.environ.get("HOLDFAST_KILLS", "12"))
SERIES = int(os.environ.get("HOLDFAST_SERIES", "25"))
NAMES = ("a.py", "b.py", "pkg/c.py", "pkg/d.md", "e.txt", "pkg/deep/f.js")
BODIES = (
    "def one():\n    return 1\n",
    "def one():\n    return 1\n\n\ndef two():\n    return 2\n",
    "class Engine:\n    def start(self):\n        return 1\n",
    "# Title\n\nwords here\n\n## Below\n\nmore\n",
    "",
    "x = 1\n" * 100,
    "binary\0content",
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "project", tmp_path / "state")


def fresh(tree: Tree) -> set:
    """The same files, indexed from nothing, beside."""
    other = Tree(tree.root, Path(tempfile.mkdtemp(dir=tree.state.parent)), repository=False)
    assert other.index().status == "completed"
    return other.content()


edit = st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(BODIES))
remove = st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just(""))
rename = st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES))
commit = st.tuples(st.just("commit"), st.just(""), st.just(""))
switch = st.tuples(st.just("switch"), st.sampled_from(("main", "other")), st.just(""))
folder = st.tuples(st.just("folder"), st.sampled_from(("pkg/deep", "empty", "empty/inner")), st.just(""))
ignore = st.tuples(st.just("ignore"), st.sampled_from(("a.py", "pkg/", "*.md", "")), st.just(""))
force = st.tuples(st.just("force"), st.sampled_from(NAMES), st.just(""))
inside = st.tuples(st.just("write"), st.sampled_from(("empty/inner/g.py", "empty/h.py")), st.sampled_from(BODIES))
run = st.tuples(st.just("run"), st.just(""), st.just(""))
settled = st.tuples(st.just("settled run"), st.just(""), st.just(""))


def apply(tree: Tree, step: tuple[str, str, str]) -> None:
    what, name, more = step
    path = tree.root / name
    if what == "write":
        tree.write({name: more})
    elif what == "remove":
        path.unlink(missing_ok=True)
    elif what == "rename" and path.exists() and name != more:
        (tree.root / more).parent.mkdir(parents=True, exist_ok=True)
        path.replace(tree.root / more)
    elif what == "commit":
        git(tree.root, "add", "-A")
        git(tree.root, "commit", "-q", "--allow-empty", "-m", "step")
    elif what == "switch":
        git(tree.root, "checkout", "-q", "-f", name)
    elif what == "folder":
        path.mkdir(parents=True, exist_ok=True)
    elif what == "ignore":
        tree.write({".gitignore": f"{name}\n"})
    elif what == "force" and path.exists():
        git(tree.root, "add", "-f", name)
    elif what in ("run", "settled run"):
        if what == "settled run":  # until the files are old enough to be trusted by their times
            time.sleep(0.06)
            tree.bring_up()
        assert tree.bring_up() in ("completed", "unchanged")


anything = st.one_of(edit, edit, inside, remove, rename, commit, switch, folder, ignore, force, run, settled)


@settings(max_examples=SERIES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(anything, min_size=3, max_size=14))
def test_incremental_is_full_for_any_series_of_changes(steps: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder) / "project", Path(folder) / "state")
        tree.write({"a.py": BODIES[0]})
        apply(tree, ("commit", "", ""))
        git(tree.root, "branch", "other")
        tree.index()
        for step in steps:
            apply(tree, step)
        tree.bring_up()
        assert tree.content() == fresh(tree)


def test_nothing_changed_is_known_and_anything_that_changed_is_seen(tree: Tree) -> None:
    """O0-g: without running a program; also a file in a folder that was empty, and one that is no longer ignored."""
    tree.write({"a.py": BODIES[0], ".gitignore": "hidden.py\n", "hidden.py": BODIES[0]})
    (tree.root / "empty").mkdir()
    git(tree.root, "add", "a.py")
    git(tree.root, "commit", "-qm", "one")
    changes = (
        lambda: tree.write({"empty/b.py": BODIES[1]}),
        lambda: tree.write({"a.py": BODIES[1]}),
        lambda: git(tree.root, "add", "-f", "hidden.py"),
        lambda: (tree.root / "a.py").unlink(),
        lambda: (tree.root / "empty" / "b.py").rename(tree.root / "c.py"),
        lambda: (tree.root / ".git" / "info" / "exclude").write_text("c.py\n"),
    )
    for change in changes:
        for _ in range(2):
            time.sleep(0.06)
            tree.bring_up()
        assert tree.bring_up() == "unchanged"
        change()
        assert tree.bring_up() == "completed"
        assert tree.content() == fresh(tree)


def test_a_change_that_keeps_size_and_time_is_seen(tree: Tree) -> None:
    """By size and time alone it could not be; a file touched a moment ago is not trusted, and the inode's time helps."""
    tree.write({"a.py": "def one():\n    return 1\n"})
    tree.index()
    before = (tree.root / "a.py").stat()
    tree.write({"a.py": "def two():\n    return 2\n"})
    os.utime(tree.root / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    tree.index()
    assert tree.found("two") == ["a.py:1"]


def test_a_file_with_new_times_and_old_content_is_not_cut_again(tree: Tree) -> None:
    tree.write({"a.py": BODIES[1]})
    tree.index()
    os.utime(tree.root / "a.py", (1, 1))
    told = tree.index().counts
    assert (told.added, told.changed, told.chunks, told.embedded) == (0, 0, 0, 0)


def test_only_chunks_that_changed_are_written_and_embedded(tree: Tree) -> None:
    tree.write({"a.py": "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(20))})
    tree.index()
    tree.write({"a.py": "# moved down\n\n\n" + (tree.root / "a.py").read_text().replace("return 7", "return 77")})
    told = tree.index().counts
    assert (told.changed, told.embedded) == (1, 2)
    assert tree.found("f7")[0] == "a.py:32"
    assert tree.content() == fresh(tree)


def test_words_are_counted_only_of_chunks_that_are_new(tree: Tree) -> None:
    tree.write({"a.py": "".join(f"def f{n}():\n    return {n}\n\n\n" * 8 for n in range(20))})
    [listed] = list_checkout(str(tree.root), IndexSettings()).files
    first = read_entry(str(tree.root), listed, IndexSettings())
    assert first and all(part.words for part in first.parts)
    known = KnownFile(b"other content", tuple(part.key for part in first.parts[1:]))
    again = read_entry(str(tree.root), listed, IndexSettings(), known)
    assert again and [part.key for part in again.parts] == [part.key for part in first.parts]
    assert [bool(part.words) for part in again.parts] == [True] + [False] * (len(first.parts) - 1)


def test_worktrees_share_what_is_the_same(tree: Tree, tmp_path: Path) -> None:
    tree.write({f"m{n}.py": f"def f{n}():\n    return {n}\n" for n in range(30)})
    git(tree.root, "add", "-A")
    git(tree.root, "commit", "-qm", "all")
    tree.index()
    git(tree.root, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "other")
    other = Tree(tmp_path / "other", tree.state, repository=False)
    other.write({"m3.py": "def changed():\n    return 0\n"})
    told = other.index()
    assert (told.counts.changed, told.counts.chunks, told.counts.embedded) == (1, 1, 1)
    assert other.content() == fresh(other)
    assert tree.found("changed", embedder="off") == []


def test_ignored_files_are_left_out_and_new_ones_are_not(tree: Tree) -> None:
    tree.write(
        {".gitignore": "secret/\n*.log.py\n", "secret/a.py": "x = 1\n", "b.log.py": "y = 1\n", "c.py": "z = 1\n"}
    )
    tree.index()
    assert {row[0] for row in tree.content() if len(row) > 2} == {"c.py"}


def test_what_has_a_secret_for_a_name_is_left_out(tree: Tree) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    tree.write({f"backup-{token}.txt": "one\n", f"{token}/two.txt": "two\n", "token-list.txt": "three\n"})
    (tree.root / token / "empty").mkdir()
    listing = list_checkout(str(tree.root), IndexSettings())
    assert token not in str(listing)
    assert "token-list.txt" in {one.path for one in listing.files}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_anywhere_the_next_run_makes_it_whole(tree: Tree) -> None:
    """kill -9 at random points, on a first index, on changes and on rebuilds; the old one answers all the time."""
    rng = random.Random(5)
    tree.write({f"p{n % 7}/m{n}.py": f"def f{n}():\n    return {n}\n\n\nclass C{n}:\n    x = {n}\n" for n in range(60)})
    took = _timed(tree)
    for number in range(KILLS):
        for _ in range(rng.randrange(8)):
            name = f"p{rng.randrange(7)}/m{rng.randrange(70)}.py"
            tree.write({name: f"def g{number}():\n    return '{rng.random()}'\n" * rng.randrange(1, 5)})
        _killed(tree, rng.random() * took * 1.2, rebuild=rng.random() < 0.4)
        # At once, or when the git it was just about to start has started: until then that one has the file open, too.
        wait_until(lambda: claim.claim_holder(tree.place.claim) is None, "the claim is free", 2.0)
        if tree.place.current():
            tree.ask("return a number")
    assert tree.index().status == "completed"
    assert tree.content() == fresh(tree)
    assert sorted(p.name for p in tree.place.folder.glob("*.db")) == [f"{tree.place.current()}.db"]


def _timed(tree: Tree) -> float:
    began = time.monotonic()
    tree.index()
    took = time.monotonic() - began
    shutil.rmtree(tree.place.folder)
    return took


def _killed(tree: Tree, after: float, rebuild: bool) -> None:
    child = os.fork()
    if not child:
        try:
            build.run_build(tree.task(rebuild=rebuild))
        finally:
            os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_live_run_keeps_its_claim_however_old_it_is(tree: Tree) -> None:
    """D3, C5: nothing but its owner's end frees it; a heartbeat that stopped decides nothing."""
    tree.write({"a.py": BODIES[0]})
    tree.index()
    with claim.hold_claim(tree.place.claim, "old") as mine:
        mine._holder = claim.Holder(pid=os.getpid(), start=0.0, run="old", at=0, beat=0)
        assert tree.index(patience_s=0.1).status == "claimed"
        holder = claim.claim_holder(tree.place.claim)
        assert holder is not None
        assert holder.pid == os.getpid()
    assert claim.claim_holder(tree.place.claim) is None
    assert tree.index().status == "completed"


def test_a_superseded_run_ends_and_keeps_what_it_did(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write({f"m{n}.py": f"def f{n}():\n    return {n}\n" for n in range(50)})
    tree.index(run="first")
    tree.place.cancel.write_text("second")
    tree.write({"new.py": "def brand_new():\n    return 1\n"})
    monkeypatch.setattr(build, "SHOW_EVERY_S", 0.0)
    assert tree.index(run="second").status == "superseded"
    assert tree.found("f7")[0] == "m7.py:1"
    assert tree.index(run="third").status == "completed"
    assert tree.content() == fresh(tree)


def test_a_rebuild_is_another_file_and_the_old_one_answers_until_it_is_done(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write({"a.py": BODIES[0]})
    tree.index()
    first = tree.place.current()
    seen = []
    real = build._bring_up

    def while_it_runs(*args: object) -> object:
        seen.append((tree.place.current(), tree.found("one")))
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(build, "_bring_up", while_it_runs)
    assert tree.index(rebuild=True).status == "completed"
    assert seen == [(first, ["a.py:1"])]
    assert tree.place.current() == first + 1


def test_two_names_of_one_checkout_have_one_index(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(tree.root)
    assert index_dir_of(tree.state, str(tmp_path / "alias")) == tree.place


def test_another_model_takes_over_only_when_it_is_ready(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old vectors answer meanwhile; a model that fails in the middle leaves them alone."""
    from holdfast.analysis.search import embedder as embedders
    from holdfast.analysis.search import static_model
    from holdfast.analysis.search.embedding_port import NoEmbedder

    tree.write({f"m{n}.py": f"def f{n}():\n    return {n}\n" for n in range(5)})
    tree.index()
    before = content(tree.place)

    class Other:
        id = "other"
        broken = True

        def documents(self, passages):  # type: ignore[no-untyped-def]
            if self.broken:
                raise NoEmbedder("the endpoint is down")
            return static_model.load_model().documents(passages)[:, :64]

        def query(self, text):  # type: ignore[no-untyped-def]
            return static_model.load_model().query(text)[:64]

    other = Other()
    monkeypatch.setattr(embedders, "choose_embedder", lambda _settings: other)
    told = tree.index()
    assert (told.status, told.note) == ("completed", "the endpoint is down")
    assert content(tree.place) == before
    assert "those of holdfast-code-" in tree.ask("f3").note
    other.broken = False
    assert tree.index().counts.embedded == 5
    assert tree.ask("f3").note == ""


def test_a_model_that_came_with_an_update_is_seen_though_no_file_changed(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:

    tree.write({"a.py": BODIES[0]})
    for _ in range(2):
        time.sleep(0.06)
        tree.bring_up()
    assert tree.bring_up() == "unchanged"
    monkeypatch.setattr(static_model.load_model(), "id", "holdfast-code-2")
    assert tree.bring_up() == "completed"
    assert inspect.index_summary(tree.place)["model"] == "holdfast-code-2"  # type: ignore[index]
    assert tree.bring_up() == "unchanged"


def test_several_hands_make_what_one_makes(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """From so many files on, other processes read and cut them."""
    tree.write(
        {f"p{n % 9}/m{n}.py": f"def f{n}():\n    return {n}\n\n\nclass C{n}:\n    x = {n}\n" for n in range(320)}
    )
    tree.index()
    monkeypatch.setattr(update, "MANY_FILES", 10_000)
    assert tree.content() == fresh(tree)


def test_questions_while_runs_change_everything(tree: Tree) -> None:
    """An answer is of one state of the index: no chunk goes away between being found and being shown."""
    searcher, over, failures = Searcher(tree.place), threading.Event(), []

    def ask() -> None:
        while not over.is_set():
            try:
                searcher.answer(Question(text="return the number of wheels"), IndexSettings())
            except Exception as error:
                failures.append(error)

    tree.write({f"m{n}.py": f"def wheels_{n}():\n    return {n}\n" for n in range(40)})
    tree.index()
    asking = threading.Thread(target=ask)
    asking.start()
    for number in range(12):
        tree.write({f"m{n}.py": f"def wheels_{n}_{number}():\n    return {n}{number}\n" for n in range(40)})
        tree.index(rebuild=number % 4 == 3)
    over.set()
    asking.join()
    assert failures == []


def test_no_file_of_an_index_can_be_read_by_others(tree: Tree) -> None:
    tree.write({"a.py": BODIES[0]}).index()
    files = [file for file in tree.state.rglob("*") if file.is_file()]
    assert files and [file for file in files if file.stat().st_mode & 0o077] == []


TWINS = {f"part{n}/gate.py": "def open_gate(gate):\n    gate.turn()\n    return gate.is_open\n" for n in range(8)}
OTHERS = {
    "app.py": "from part0 import gate\n\n\ndef run(parts):\n    for part in parts:\n        part.open_gate(part)\n",
    "tests/test_gate.py": "def test_open_gate():\n    assert open_gate(gate_of(1))\n",
    "docs.md": "# Gates\n\nA gate is opened by turning it.\n",
}
ASKED = (
    "open_gate",
    "how is a gate opened",
    "add a gate: where are they listed",
    "opne_gate",
    "gate.turn()",
    "gate.py",
)


def test_the_same_content_gives_the_same_answer_in_whichever_order_it_was_indexed(tree: Tree, tmp_path: Path) -> None:
    """At once; file by file from the last to the first; and with one that was changed and changed back."""
    files = OTHERS | TWINS
    tree.write(files).index()
    other = Tree(tmp_path / "other", tmp_path / "state2")
    for name in sorted(files, reverse=True):
        other.write({name: files[name]}).index()
    other.write({"part0/gate.py": "x = 1\n"}).index()
    other.write({"part0/gate.py": TWINS["part0/gate.py"]}).index()
    for text, embedder in itertools.product(ASKED, ("builtin", "off")):
        answers = [
            [(h.path, h.line, h.symbol, h.why) for h in one.ask(text, embedder=embedder).hits] for one in (tree, other)
        ]
        assert answers[0] == answers[1], (text, embedder)
        assert answers[0], text
