"""Every hook test runs once with the native client and once with the Python one, each in a home of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.hook.world import HOOK_PY, ROOT, World


def load_builder():
    spec = importlib.util.spec_from_file_location("holdfast_native_build", ROOT / "native" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def native_client() -> Path:
    """Built from this source tree, since an installed one could be older; without a compiler, the installed one."""
    builder = load_builder()
    try:
        return builder.build_once(builder.host_target())
    except builder.CannotBuildError as error:
        beside = Path(sys.executable).with_name("holdfast-hook")
        if beside.exists():
            return beside
        pytest.skip(f"no native client: {error}")


@pytest.fixture
def shared_memory_as_it_was():
    """Where every other place fails, a client leaves its folder in the real /dev/shm, though no record."""
    folder = Path(f"/dev/shm/holdfast-spool-{os.geteuid()}")
    there = folder.exists()
    yield
    if not there:
        with contextlib.suppress(OSError):
            folder.rmdir()


@pytest.fixture(params=["native", "python"])
def world(request, tmp_path, shared_memory_as_it_was) -> World:
    if request.param == "python":
        return World("python", [sys.executable, "-I", "-S", str(HOOK_PY)], tmp_path)
    program = tmp_path / "bin" / "holdfast-hook"
    program.parent.mkdir()
    shutil.copy2(request.getfixturevalue("native_client"), program)
    return World("native", [str(program)], tmp_path)
