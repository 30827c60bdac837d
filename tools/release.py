"""`make release`: every wheel, the source archive and the other packages in dist/, each one checked.

The version follows the tag: on a commit tagged vX.Y.Z everything is X.Y.Z, elsewhere it is the next one's `.devN` with
N commits since the last tag. Everything is built from what is committed, in a folder of its own. One host builds for
all platforms: the compiler of the native hook is zig. With --no-install the clean installation is left out.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from release_checks import check_installation, check_wheel
from release_papers import write_papers, write_sums

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PURE = "none"
TAG = re.compile(r"^v(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)$")
VERSION_LINE = re.compile(r'^__version__ = "[^"]+"$', re.MULTILINE)


def main() -> None:
    version = version_of_commit(ROOT)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with tempfile.TemporaryDirectory(prefix="holdfast-release-") as folder:
        source = export_commit(Path(folder), version)
        wheels = [build_wheel(source, target) for target in (*native_targets(source), PURE)]
        _hatchling(source, "sdist", {})
        for wheel, target in wheels:
            print(f"  {wheel.name}: {check_wheel(wheel, target, version)}", flush=True)
        package_plugin(source, version)
        package_templates(source, version)
    write_papers(DIST, version)
    write_sums(DIST)
    if "--no-install" not in sys.argv:
        for wheel, target in wheels:
            if target in (PURE, host_target()):
                print(f"  {wheel.name}: {check_installation(wheel, version)}", flush=True)
    print(f"holdfast-agents {version}: {len(list(DIST.iterdir()))} files in {DIST.name}/")


def version_of_commit(root: Path) -> str:
    said = _git(root, "describe", "--tags", "--match", "v[0-9]*", "--long")
    written = re.search(r'^__version__ = "([^"]+)"', (root / "src/holdfast/__init__.py").read_text(), re.MULTILINE)
    if written is None:
        sys.exit("src/holdfast/__init__.py names no version")
    tag, since, _ = said.rsplit("-", 2) if said else ("", _git(root, "rev-list", "--count", "HEAD"), "")
    found = TAG.match(tag)
    if found and since == "0":
        return found[1]
    return f"{_next(found[1]) if found else written[1]}.dev{since}"


def _next(version: str) -> str:
    major, minor, patch = re.match(r"(\d+)\.(\d+)\.(\d+)", version).groups()  # type: ignore[union-attr]
    return f"{major}.{minor}.{int(patch) + 1}"


def export_commit(folder: Path, version: str) -> Path:
    """What is committed, with the version written in: no untracked file gets into a package."""
    archive = folder / "source.tar"
    subprocess.run(["git", "archive", "-o", archive, "HEAD"], cwd=ROOT, check=True)
    source = folder / "source"
    source.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", source], check=True)
    file = source / "src/holdfast/__init__.py"
    file.write_text(VERSION_LINE.sub(f'__version__ = "{version}"', file.read_text()))
    return source


def native_targets(source: Path) -> list[str]:
    return list(_builder(source)["TARGETS"])


def host_target() -> str:
    return str(_builder(ROOT)["host_target"]())


def _builder(source: Path) -> dict:
    import runpy

    return runpy.run_path(str(source / "native/build.py"))


def build_wheel(source: Path, target: str) -> tuple[Path, str]:
    before = set(DIST.glob("*.whl"))
    _hatchling(source, "wheel", {"HOLDFAST_TARGET": target})
    made = set(DIST.glob("*.whl")) - before
    if len(made) != 1:
        sys.exit(f"the wheel for {target} was not built (or has the name of another)")
    return made.pop(), target


def _hatchling(source: Path, what: str, env: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", what, "-d", str(DIST)], cwd=source, env={**os.environ, **env},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"building the {what} failed:\n{done.stdout}{done.stderr}")


def package_plugin(source: Path, version: str) -> None:
    """The Claude Code plugin with its marketplace, as one archive."""
    with zipfile.ZipFile(DIST / f"holdfast-claude-plugin-{version}.zip", "w", zipfile.ZIP_DEFLATED) as out:
        for base in ("plugin", ".claude-plugin"):
            for file in sorted((source / base).rglob("*")):
                if file.is_file():
                    text = file.read_text()
                    out.writestr(
                        str(file.relative_to(source)), re.sub(r'"version": "[^"]+"', f'"version": "{version}"', text)
                    )


def package_templates(source: Path, version: str) -> None:
    """The Homebrew formula, the container file and those of a team server, with version and checksum filled in."""
    archive = next(DIST.glob("*.tar.gz"))
    base = os.environ.get("HOLDFAST_RELEASE_URL") or "https://example.invalid/holdfast"
    if "HOLDFAST_RELEASE_URL" not in os.environ:
        print("  HOLDFAST_RELEASE_URL is not set: the formula names no real download address")
    sha = hashlib.sha256(archive.read_bytes()).hexdigest()
    packaging = source / "packaging"
    for file in sorted(found for found in packaging.rglob("*") if found.is_file()):
        text = file.read_text().replace("@VERSION@", version).replace("@SHA256@", sha).replace("@BASE@", base)
        name = "-".join(file.relative_to(packaging).parts)
        (DIST / name.removesuffix(".in")).write_text(text)


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    main()
