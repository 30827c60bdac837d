"""The house as it is: registrations, documents that name real things, nothing of this machine in a commit."""

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from holdfast.agents import AGENTS
from holdfast.core.agent import ACTIONS
from holdfast.core.kinds import ENGINE_KINDS, HOOK_KINDS
from holdfast.features import FEATURES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "holdfast"
ACROSS = {
    "attacks",
    "bench",
    "browser",
    "campaign",
    "corpus",
    "docs",
    "faults",
    "hook",
    "real",
    "sample_features",
    "stories",
}
"""Test folders that cover more than one package; `hook` is one module and two programs."""


def tracked(*patterns: str) -> list[Path]:
    names = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.splitlines() if (ROOT / name).is_file()]


def test_every_feature_is_registered_once_and_has_its_page() -> None:
    folders = {p.name for p in (SOURCE / "features").iterdir() if p.is_dir() and not p.name.startswith("_")}
    assert {f.name for f in FEATURES} == folders
    assert [name for name in sorted(folders) if not (ROOT / "docs" / "features" / f"{name}.md").exists()] == []


def test_features_do_not_import_one_another() -> None:
    for feature in FEATURES:
        for file in (SOURCE / "features" / feature.name).rglob("*.py"):
            for other in re.findall(r"holdfast\.features\.(\w+)", file.read_text()):
                assert other == feature.name, file


def test_kinds_of_events_are_declared_once() -> None:
    declared = [*HOOK_KINDS, *ENGINE_KINDS, *(kind for f in FEATURES for kind in f.kinds)]
    assert len(declared) == len(set(declared))


def test_features_name_their_own_kinds_and_jobs_after_themselves() -> None:
    for feature in FEATURES:
        for name in (*feature.kinds, *feature.jobs):
            assert re.match(r"^[a-z]+\.[a-z_]+$", name), name
        assert set(feature.schedule) <= set(feature.jobs)


def test_agents_use_known_words() -> None:
    for name, agent in AGENTS.items():
        assert name == agent.name
        assert {h.kind for h in agent.hooks} <= set(HOOK_KINDS)
        assert set(agent.tools.values()) <= set(ACTIONS)
        assert set(agent.enforces) <= set(HOOK_KINDS)


def test_paths_named_in_the_architecture_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:src|docs|tests|native|tools|training)/[\w./-]+)`", text)
    assert len(named) > 20
    assert [name for name in named if "NAME" not in name and not (ROOT / name).exists()] == []


def test_links_in_documents_lead_somewhere() -> None:
    for page in tracked("*.md"):
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_test_folders_mirror_the_source() -> None:
    folders = {p.relative_to(ROOT / "tests").parent for p in tracked("tests/*test_*.py")}
    homes = {Path(*("..", "holdfast_team", *f.parts[1:])) if f.parts[:1] == ("team",) else f for f in folders}
    strays = {str(f) for f in homes if f.parts and f.parts[0] not in ACROSS and not (SOURCE / f).is_dir()}
    assert strays == set()


def test_tools_benches_and_training_import_what_is_there() -> None:
    """They run seldom, and some need programs that are not here: a name that was renamed would show too late."""
    wanted = {
        (path.name, node.module, name.name)
        for path in tracked("tools/*.py", "training/*.py", "tests/bench/*.py", "tests/campaign/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {"holdfast", "holdfast_team"}
        for name in node.names
    }
    assert wanted
    assert {(file, module, name) for file, module, name in wanted if not _is_there(str(module), name)} == set()


def _is_there(module: str, name: str) -> bool:
    found = importlib.import_module(module)
    is_package = hasattr(found, "__path__")
    return hasattr(found, name) or (is_package and importlib.util.find_spec(f"{module}.{name}") is not None)


def test_pinned_packages_install_on_the_oldest_python_we_name() -> None:
    """Debian 12 has 3.11.2: a pin that wants 3.11.5 stops `make test` there at its first line."""
    oldest = f"{_oldest_python()}.0"
    names = [
        line.partition("==")[0]
        for line in (ROOT / "packaging" / "constraints.txt").read_text().splitlines()
        if "==" in line
    ]
    wanted = {name: _wanted_python(name) for name in names}
    assert len([python for python in wanted.values() if python]) > 50, "the pinned packages are installed here"
    assert [name for name, python in wanted.items() if not SpecifierSet(python).contains(oldest)] == []


def _oldest_python() -> str:
    named = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    assert named
    return named[1]


def _wanted_python(package: str) -> str:
    try:
        return str(metadata.metadata(package).json.get("requires_python", ""))
    except metadata.PackageNotFoundError:
        return ""


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "package-lock.json", "yarn.lock"])
def test_no_lock_file_with_addresses(name: str) -> None:
    assert tracked(f"*{name}") == []


def test_no_registry_host_and_no_path_of_a_machine() -> None:
    hosts = ("py" + "pi.org", "python" + "hosted", "registry." + "npmjs", "deb." + "debian.org", "/work" + "/main")
    found = [p.name for p in tracked() if p.suffix != ".png" and any(h in p.read_text(errors="ignore") for h in hosts)]
    assert found == []


@pytest.mark.parametrize("tool", ["docs.py", "generated_blocks.py"])
def test_what_is_generated_is_fresh(tool: str) -> None:
    """In a process of its own: other tests register event kinds in this one."""
    run = subprocess.run([sys.executable, ROOT / "tools" / tool, "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
