"""How long indexing and searching take, on django's source package: ratios to `ctags -R` and `git status` of the same run."""

import os
import random
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast import client
from holdfast.features.reindex.settings import Settings
from holdfast.search import embedder, inspect
from holdfast.search.index import update
from holdfast.search.index.build import Result, Task
from holdfast.search.index.database import IndexDir, index_dir_of
from tests.bench.figures import fact, figure, heading, p50
from tests.bench.search import CACHE, all_functions, passages
from tests.kit import World, git

WORKER = [sys.executable, "-m", "holdfast.search.worker"]
QUESTIONS = (
    "escape html in a string", "save the session cookie with the response", "apply migrations in order", "parse_accept_lang_header",
    "where are signals sent after saving a model", "LazyObject", "render a template to a response", "validate an email address",
    "django/utils/html.py", "how are database connections closed at the end of a request",
)  # fmt: skip


def main() -> None:
    heading("reindex: django's source package")
    with tempfile.TemporaryDirectory() as folder:
        try:
            root = unpacked(Path(folder))
        except (LookupError, OSError) as error:
            fact("left out", str(error)[:60])
            return
        _building(root, Path(folder))
        _asking(root, Path(folder))
        _embedding(root)


def unpacked(folder: Path) -> Path:
    kept = CACHE / "django-source.tar.gz"
    if not kept.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        how = ("--no-deps", "--no-binary", ":all:", "-q", "-d", str(folder / "dl"))
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", *how, "Django"], capture_output=True, check=False
        )
        found = next((folder / "dl").glob("*.tar.gz"), None) if (folder / "dl").exists() else None
        if found is None:
            raise LookupError(done.stderr.decode()[-200:])
        shutil.move(found, kept)
    with tarfile.open(kept) as archive:
        archive.extractall(folder / "django", filter="data")
    root = next((folder / "django").iterdir())
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "source")
    return root


def _building(root: Path, folder: Path) -> None:
    place = index_dir_of(folder / "state", str(root))
    ctags = _took(
        lambda: subprocess.run(["ctags", "-R", "-f", "/dev/null", str(root)], capture_output=True, check=False)
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    whole, told = _run(root, place)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    figure("full index", whole, 25, unit="s", note=f"{told.counts.files} files, {told.chunks} chunks")
    fact("… CPU", f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f} s")
    if shutil.which("ctags"):
        fact("… to `ctags -R` (which has names only)", f"{whole / ctags:.1f} ×")
    summary = inspect.summary(place) or {}
    figure("index size to indexed source text", summary["bytes"] / summary["source_bytes"], 2)
    fact("indexed source text", f"{summary['source_bytes'] / 1e6:.1f} MB")
    _changing(root, place)
    _nothing(root, place)
    _cold(root, place)


def _cold(root: Path, place: IndexDir) -> None:
    """A process that does nothing else: its start, loading the index and the model, one question."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from holdfast.search.results import Question\n"
        "from holdfast.search.index.database import IndexDir\n"
        "from holdfast.search.searcher import Searcher\n"
        "from holdfast.search.settings import IndexSettings\n"
        "found = Searcher(IndexDir(Path(sys.argv[1]))).ask(Question(text='escape html in a string'), IndexSettings())\n"
        "assert found.hits and not found.note, found\n"
    )
    argv = [sys.executable, "-c", script, str(place.folder)]
    times = [_took(lambda: subprocess.run(argv, check=True)) for _ in range(5)]
    figure("one question by a process that was just started", p50(times) * 1000, 400, unit="ms")


def _changing(root: Path, place: IndexDir) -> None:
    times = []
    for number in range(5):
        (root / "django" / "bench.py").write_text(f"def brand_new_{number}():\n    return {number}\n")
        times.append(_run(root, place)[0])
    figure("one changed file, from start of the process to searchable", p50(times), 0.5, unit="s")
    (root / "django" / "bench.py").unlink()


def _nothing(root: Path, place: IndexDir) -> None:
    """What the job does first, in the daemon: no program is run for it."""
    settings = Settings().index()
    time.sleep(0.1)
    _run(root, place)
    argv = ["git", "status", "--porcelain"]
    plain = [_took(lambda: subprocess.run(argv, cwd=root, capture_output=True, check=False)) for _ in range(9)]
    time.sleep(0.1)
    _run(root, place)
    assert update.is_unchanged(place, str(root), settings), "nothing changed, and it is known"
    ours = [_took(lambda: update.is_unchanged(place, str(root), settings)) for _ in range(9)]
    figure("nothing changed, to one `git status`", p50(ours) / p50(plain), 2, note=f"{p50(ours) * 1000:.0f} ms")


def _run(root: Path, place: IndexDir) -> tuple[float, Result]:
    task = Task(root=str(root), folder=str(place.folder), run="bench", settings=Settings().index())
    began = time.perf_counter()
    done = subprocess.run(WORKER, input=msgspec.json.encode(task), capture_output=True, check=True)
    took = time.perf_counter() - began
    result = msgspec.json.decode(done.stdout, type=Result)
    assert result.status == "completed", result
    return took, result


def _asking(root: Path, folder: Path) -> None:
    """Through the daemon, as the command line asks."""
    world = World(folder / "world")
    os.environ.update({name: world.env[name] for name in ("HOLDFAST_STATE", "HOLDFAST_CONFIG", "HOME")})
    os.environ["HOLDFAST_PROJECT"] = str(root)
    try:
        world.start()
        subprocess.run(["cp", "-r", str(folder / "state" / "indexes"), str(world.paths.state)], check=True)
        first = _took(lambda: client.view("reindex.search", query="escape html"))
        figure("first question to a daemon that never searched", first * 1000, 400, unit="ms")
        asked = [*QUESTIONS * 4]
        random.Random(3).shuffle(asked)
        times = [_took(lambda q=q: client.view("reindex.search", query=q)) for q in asked]  # type: ignore[misc]
        chunks = client.view("reindex.search", query="x")["chunks"]
        figure("a question, p50, through the daemon", p50(times) * 1000, 25, unit="ms", note=f"{chunks} chunks")
    finally:
        world.close()


def _embedding(root: Path) -> None:
    """Functions as they are, in one process."""
    texts = [(str(p.relative_to(root)), p.read_text("utf-8", "replace")) for p in sorted(root.rglob("django/**/*.py"))]
    given = passages(all_functions(texts))
    model = embedder.load()
    model.documents(given[:100])
    took = _took(lambda: model.documents(given))
    figure("chunks embedded per second and core", len(given) / took, 2000, unit="/s", more_is_better=True)


def _took(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
