"""Path globs, and that none of them is slow."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.globs import glob_matches


@pytest.mark.parametrize(
    ("glob", "path", "yes"),
    [
        ("src/**", "/p/src/a/b.py", True),
        ("src/**", "/p/srcs/b.py", False),
        ("*.py", "/p/deep/down/a.py", True),
        ("./*.py", "/p/a.py", True),
        ("./*.py", "/p/deep/a.py", False),
        ("src/*.py", "/p/src/x/a.py", False),
        ("src/**/*.py", "/p/src/a.py", True),
        ("**/test_*.py", "/p/tests/test_a.py", True),
        ("docs/**/x.md", "/p/docs/a/b/x.md", True),
        ("**", "/p/anything", True),
        ("**", "/elsewhere/file", False),
        ("src/**", "/elsewhere/src/a.py", False),
        ("**/.claude/plans/**", "/home/ada/.claude/plans/p.md", True),
        ("/etc/*", "/etc/passwd", True),
        ("/etc/*", "/p/etc/passwd", False),
        ("Makefile", "/p/Makefile", True),
    ],
)
def test_globs_mean_what_people_mean(glob: str, path: str, yes: bool) -> None:
    assert glob_matches(glob, path, "/p") is yes


def test_no_glob_is_slow() -> None:
    began = time.perf_counter()
    glob_matches("**/" * 20 + "*a" * 60 + "b", "/p/" + "a/" * 200 + "a" * 3000, "/p")
    glob_matches("*a" * 100 + "b", "/p/" + "a" * 4000, "/p")
    assert time.perf_counter() - began < 2


@given(st.text(max_size=30, alphabet="ab*/?[]!.{}\\"), st.text(max_size=30, alphabet="ab/."))
def test_any_text_is_a_glob_and_gives_an_answer(glob: str, path: str) -> None:
    if glob:
        assert glob_matches(glob, f"/p/{path}", "/p") in (True, False)
