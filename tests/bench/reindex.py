"""How long indexing and searching take, on django's source package: ratios to `ctags -R` and `git status` of the same run."""

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast import client
from holdfast.analysis.search import inspect, static_model
from holdfast.analysis.search.index import freshness
from holdfast.analysis.search.index.build import Result, Task
from holdfast.analysis.search.index.places import IndexDir, index_dir_of
from holdfast.features.reindex.settings import Settings
from tests.bench.figures import fact, figure, heading, p50
from tests.bench.search import CACHE, all_functions, passages
from tests.kit import World, git

WORKER = [sys.executable, "-m", "holdfast.analysis.search.worker"]
QUESTIONS = (
    "escape html in a string", "save the session cookie with the response", "apply migrations in order", "parse_accept_lang_header",
    "where are signals sent after saving a model", "LazyObject", "render a template to a response", "validate an email address",
    "django/utils/html.py", "how are database connections closed at the end of a request",
)  # fmt: skip


def main() -> None:
    heading("reindex: django's source package")
    with tempfile.TemporaryDirectory() as folder:
        root = unpack_or_say(Path(folder))
        if root is None:
            return
        _building(root, Path(folder))
        _memory(Path(folder))
        _asking(root, Path(folder))
        _embedding(root)


def unpack_or_say(folder: Path) -> Path | None:
    """Django's sources as a repository; without them it says why the bench is left out."""
    try:
        return unpacked(folder)
    except (LookupError, OSError) as error:
        fact("left out", str(error)[:60])
        return None


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
    (folder / "django").mkdir()
    subprocess.run(["tar", "-xf", kept, "-C", folder / "django"], check=True)
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
    before = _children_cpu()
    whole, told = _run(root, place)
    cpu = _children_cpu() - before
    figure("full index", whole, 25, unit="s", note=f"{told.counts.files} files, {told.chunks} chunks")
    fact("… CPU", f"{cpu:.1f} s")
    if shutil.which("ctags"):
        fact("… to `ctags -R` (which has names only)", f"{whole / ctags:.1f} ×")
    summary = inspect.index_summary(place) or {}
    figure("index size to indexed source text", summary["bytes"] / summary["source_bytes"], 2)
    fact("indexed source text", f"{summary['source_bytes'] / 1e6:.1f} MB")
    _changing(root, place)
    _nothing(root, place)
    _cold(root, place)
    _switching(root, place, cpu)


SWITCHED = 2_000


def _switching(root: Path, place: IndexDir, full_cpu: float) -> None:
    """By CPU: another branch with 2,000 other files, the first one again, and a folder under another name."""
    git(root, "checkout", "-qb", "other")
    for path in sorted(root.rglob("*.py"))[:SWITCHED]:
        path.write_text(
            path.read_text("utf-8", "replace") + "\n\ndef added_on_the_other_branch():\n    return 1\n", "utf-8"
        )
    git(root, "commit", "-qam", "other")
    steps: dict[str, Callable[[], object]] = {
        "a branch with 2,000 other files": lambda: None,
        "… and back": lambda: git(root, "checkout", "-q", "-"),
        "… and there again": lambda: git(root, "checkout", "-q", "-"),
        "a renamed folder with all of it": lambda: (root / "django").rename(root / "renamed"),
    }
    for name, step in steps.items():
        step()
        before = _children_cpu()
        told = _run(root, place)[1]
        ratio = (_children_cpu() - before) / full_cpu
        figure(name, ratio, 0.35, note=f"of a full index; {told.counts.embedded} chunks embedded")


LINES, LINES_OF_A_FILE = 1_500_000, 500


def _memory(folder: Path) -> None:
    """The worker's most memory over a checkout of 1.5 million lines, as the kernel counts it."""
    root = folder / "large"
    body = "".join(
        f"def step_{n}(value):\n    total = value + {n}\n    return total\n\n\n" for n in range(LINES_OF_A_FILE // 5)
    )
    for number in range(LINES // LINES_OF_A_FILE):
        path = root / f"part{number // 100}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body.replace("step_", f"step_{number}_"), "utf-8")
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], stdin=sys.stdin, stdout=subprocess.DEVNULL, check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    place = index_dir_of(folder / "state", str(root))
    task = msgspec.json.encode(Task(root=str(root), folder=str(place.folder), run="bench", settings=Settings().index()))
    done = subprocess.run([sys.executable, "-c", script, *WORKER], input=task, capture_output=True, check=True)
    figure("memory of the worker over 1.5 million lines", int(done.stdout) / 1024, 200, unit="MB")


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cold(root: Path, place: IndexDir) -> None:
    """A process that does nothing else: its start, loading the index and the model, one question."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from holdfast.analysis.search.answer import Question\n"
        "from holdfast.analysis.search.index.places import IndexDir\n"
        "from holdfast.analysis.search.searcher import Searcher\n"
        "from holdfast.analysis.search.settings import IndexSettings\n"
        "found = Searcher(IndexDir(Path(sys.argv[1]))).answer(Question(text='escape html in a string'), IndexSettings())\n"
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
    assert freshness.is_unchanged(place, str(root), settings), "nothing changed, and it is known"
    ours = [_took(lambda: freshness.is_unchanged(place, str(root), settings)) for _ in range(9)]
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
        first = _took(lambda: client.ask_view("reindex.search", query="escape html"))
        figure("first question to a daemon that never searched", first * 1000, 400, unit="ms")
        asked = [*QUESTIONS * 4]
        random.Random(3).shuffle(asked)
        times = [_took(lambda q=q: client.ask_view("reindex.search", query=q)) for q in asked]  # type: ignore[misc]
        chunks = client.ask_view("reindex.search", query="x")["chunks"]
        figure("a question, p50, through the daemon", p50(times) * 1000, 25, unit="ms", note=f"{chunks} chunks")
    finally:
        world.close()


def _embedding(root: Path) -> None:
    """Functions as they are, in one process."""
    texts = [(str(p.relative_to(root)), p.read_text("utf-8", "replace")) for p in sorted(root.rglob("django/**/*.py"))]
    given = passages(all_functions(texts))
    model = static_model.load_model()
    model.documents(given[:100])
    took = _took(lambda: model.documents(given))
    figure("chunks embedded per second and core", len(given) / took, 2000, unit="/s", more_is_better=True)


def _took(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
