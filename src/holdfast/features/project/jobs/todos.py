"""TODO and FIXME that this branch adds: its difference to where it left the main branch, uncommitted work included."""

import re
from collections.abc import Iterator
from pathlib import Path

from holdfast.core import git
from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.kinds.project_events import GitFacts, ProjectFacts, TodoFacts
from holdfast.features.project.jobs.git_status import GitQuestions, git_folders, text_of
from holdfast.features.project.jobs.refresh import load_project, report_changes

MARKS = re.compile(r"\b(?:TODO|FIXME)\b")
MAX_PATHS, MAX_PLACES, MAX_NEW_FILE_BYTES = 500, 30, 512 * 1024
MAIN_NAMES = ("main", "master", "trunk")


def scan_todos(call: JobCall) -> list[Event]:
    root = str(call.job.payload["project"])
    doc = load_project(call.reader, root)
    folders = git_folders(root) if Path(root).is_dir() else None
    if folders is None or not doc.git.head:
        return []
    ask = GitQuestions(root, call.run)
    places = [*find_in_difference(ask, doc.git, *folders), *find_in_new_files(root, doc.git)]
    todos = TodoFacts(count=len(places), places=places[:MAX_PLACES])
    return report_changes(doc, ProjectFacts(todos=todos), call.now)


def find_in_difference(ask: GitQuestions, known: GitFacts, own: Path, common: Path) -> Iterator[str]:
    base = _base(ask, known, common)
    names = set(git.parse_names(ask(git.diff("--name-only", "-z", base, "HEAD", "--")).out))
    names |= {file.path for file in known.files if file.code != "??"}
    if not names:
        return
    words = ("--unified=0", "-G", r"TODO|FIXME", base, "--", *sorted(names)[:MAX_PATHS])
    yield from added_marks(ask(git.diff(*words, filters=ask.filters(own, common))).out.decode("utf-8", "replace"))


def _base(ask: GitQuestions, known: GitFacts, common: Path) -> str:
    """Where this branch began; on the main branch itself what was pushed, else the last commit."""
    mains = _main_branches(common)
    if known.branch in MAIN_NAMES or known.branch in mains:
        return "@{upstream}" if known.upstream else "HEAD"
    for main in mains:
        ran = ask(git.merge_base(main, "HEAD"))
        if ran.code == 0:
            return ran.out.decode("ascii", "replace").strip()
    return "HEAD"


def _main_branches(common: Path) -> list[str]:
    pointer = text_of(common / "refs/remotes/origin/HEAD").decode("utf-8", "replace")
    theirs = pointer.partition("refs/remotes/")[2].strip()
    return [name for name in (theirs, *(f"refs/heads/{n}" for n in MAIN_NAMES)) if name]


def added_marks(difference: str) -> Iterator[str]:
    """`path:line` of each added line that has a mark."""
    path, line = "", 0
    for text in difference.split("\n"):
        if text.startswith("+++ "):
            path = text[6:] if text.startswith("+++ b/") else ""
        elif found := re.match(r"@@ -\S+ \+(\d+)", text):
            line = int(found[1])
        elif text.startswith("+"):
            if path and MARKS.search(text):
                yield f"{path}:{line}"
            line += 1


def find_in_new_files(root: str, known: GitFacts) -> Iterator[str]:
    for path in known.untracked_sources:
        file = Path(root) / path
        try:
            if file.is_symlink() or file.stat().st_size > MAX_NEW_FILE_BYTES:
                continue
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        yield from (f"{path}:{n}" for n, text in enumerate(lines, 1) if MARKS.search(text))
