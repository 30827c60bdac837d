"""The daemon's log: rotated by size, nothing of a line lost, no secret in it."""

import json
from pathlib import Path

import pytest

from holdfast.daemon.ingest.log import KEEP, Log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "daemon.log")


def lines(path: Path) -> list[int]:
    return [json.loads(line)["n"] for line in path.read_text().splitlines()]


def test_it_is_rotated_at_its_size_and_the_oldest_goes(log: Log, tmp_path: Path) -> None:
    log("one", n=0)
    log.max_bytes = (tmp_path / "daemon.log").stat().st_size * 2 + 10
    for n in range(1, 12):
        log("one", n=n)
    files = [tmp_path / "daemon.log", *(tmp_path / f"daemon.log.{n}" for n in range(1, KEEP + 1))]
    assert [lines(path) for path in files] == [[10, 11], [8, 9], [6, 7], [4, 5]]
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_a_secret_in_an_error_is_not_written(log: Log, tmp_path: Path) -> None:
    log.error("job.failed", ValueError("password=hunter2-Correct9Horse"))
    text = (tmp_path / "daemon.log").read_text()
    assert "hunter2" not in text and "ValueError" in text


def test_a_line_that_cannot_be_encoded_is_written_anyway(log: Log, tmp_path: Path) -> None:
    log("odd", n=1, text="\ud800")
    assert "odd" in (tmp_path / "daemon.log").read_text()


def test_after_a_rewrite_lines_go_to_the_new_file(log: Log, tmp_path: Path) -> None:
    log("one", n=1)

    def replace_file(path: Path) -> bool:
        (tmp_path / "new").write_text('{"n": 7}\n')
        (tmp_path / "new").replace(path)
        return True

    assert log.rewrite(replace_file) == 1
    log("two", n=2)
    assert lines(tmp_path / "daemon.log") == [7, 2]
