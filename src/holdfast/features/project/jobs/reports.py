"""JUnit XML reports that the settings name: read when they are newer than what was read last."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.core.kinds.project_events import ReportRun
from holdfast.features.project.tasks.check_results import MAX_FAILURES

PREFIX = "junit "
MAX_REPORTS, MAX_BYTES = 50, 32 << 20


def read_reports(root: str, globs: Iterable[str], known: Mapping[str, int]) -> list[ReportRun]:
    """Each file that changed, as a test run of everything it covers."""
    return [run for file in _files(root, globs) if (run := _read(root, file, known))]


def _files(root: str, globs: Iterable[str]) -> Iterator[Path]:
    """Only below the project: a pattern with `..` or a leading slash finds nothing."""
    for glob in globs:
        if glob.startswith("/") or ".." in glob.split("/"):
            continue
        try:
            yield from sorted(Path(root).glob(glob))[:MAX_REPORTS]
        except (OSError, ValueError):
            continue


def _read(root: str, file: Path, known: Mapping[str, int]) -> ReportRun | None:
    name = f"{PREFIX}{file.relative_to(root)}"[:200]
    try:
        seen = file.stat()
    except OSError:
        return None
    stamp = seen.st_mtime_ns // 1_000_000
    if known.get(name) == stamp or seen.st_size > MAX_BYTES:
        return None
    return _run_of_report(name, file, stamp)


def _run_of_report(name: str, file: Path, written: int) -> ReportRun | None:
    from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

    try:
        found = JUnitXml.fromfile(str(file))
        suites = [found] if isinstance(found, TestSuite) else list(found)
    except Exception:  # any XML error: a report that cannot be read is none
        return None
    cases = [case for suite in suites for case in _cases(suite, TestCase)]
    failed = [c for c in cases if any(isinstance(r, Failure | Error) for r in c.result)]
    skipped = [c for c in cases if any(isinstance(r, Skipped) for r in c.result)]
    if not cases:
        return None
    names = [f"{c.classname}::{c.name}"[:300] if c.classname else str(c.name)[:300] for c in failed]
    return ReportRun(
        name=name,
        written=written,
        passed=len(cases) - len(failed) - len(skipped),
        failed=len(failed),
        skipped=len(skipped),
        failures=names[:MAX_FAILURES],
    )


def _cases(suite: Any, case: type) -> Iterator[Any]:
    for one in suite:
        if isinstance(one, case):
            yield one
        else:
            yield from _cases(one, case)
