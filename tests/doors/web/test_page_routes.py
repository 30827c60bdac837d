"""Pictures of UAT runs: only images, never through a link, never a device."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast import __version__
from holdfast.doors.web.page_routes import RenderedPages
from holdfast.doors.web.shots import LARGEST_PICTURE, read_picture

PNG = b"\x89PNG\r\n\x1a\n" + b"rest"


def test_an_image_is_served_by_what_it_is_not_by_its_name(tmp_path: Path) -> None:
    for name, content, kind in (("a.png", PNG, "image/png"), ("b.txt", b"\xff\xd8\xff..", "image/jpeg")):
        (tmp_path / name).write_bytes(content)
        assert read_picture(tmp_path / name) == (kind, content)


def test_anything_else_is_not(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("token")
    (tmp_path / "page.png").write_text("<script>alert(1)</script>")
    (tmp_path / "real.png").write_bytes(PNG)
    (tmp_path / "link.png").symlink_to(tmp_path / "real.png")
    (tmp_path / "folder.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    with open(tmp_path / "huge.png", "wb") as file:
        file.write(PNG)
        file.truncate(LARGEST_PICTURE + 1)
    for name in ("secret", "page.png", "link.png", "folder.png", "pipe.png", "huge.png", "missing.png", "nul\0.png"):
        assert read_picture(tmp_path / name) is None, name


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        ("0.0.9", "the dashboard is {version}. Run: holdfast daemon restart"),
        (__version__, "KeyError in cost. See /state/logs/web.log"),
    ],
)
def test_a_page_that_fails_names_a_daemon_of_another_version(version: str, shown: str) -> None:
    client = SimpleNamespace(status=lambda: {"version": version})
    context = SimpleNamespace(client=client, paths=SimpleNamespace(logs="/state/logs"))
    maker = RenderedPages(context, None)
    failure = maker._describe_failure(SimpleNamespace(name="cost"), KeyError("a field"))
    assert failure.message.endswith(shown.format(version=__version__))
