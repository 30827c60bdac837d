"""What a release promises: every file of every pinned version by its hash, a list of its parts, signed checksums."""

import json
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
HASHED = ROOT / "packaging" / "constraints-hashed.txt"
sys.path.insert(0, str(ROOT / "tools"))

import release_papers  # noqa: E402


def pinned(file: Path) -> dict[str, str]:
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^\s\\]+)", file.read_text(), re.MULTILINE)
    return {release_papers.normal(name): version for name, version in found}


def test_the_hashed_list_pins_what_the_plain_one_pins() -> None:
    assert pinned(HASHED) == pinned(ROOT / "packaging" / "constraints.txt")


def test_whatever_a_pinned_package_needs_is_pinned_too() -> None:
    """pip refuses the whole list otherwise."""
    names = pinned(HASHED)
    missing = set()
    for part in metadata.distributions():
        if release_papers.normal(part.name) not in names:
            continue
        for wanted in map(Requirement, part.requires or ()):
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                missing |= {release_papers.normal(wanted.name)} - names.keys()
    assert missing == set()


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_hashed_list_installs_into_an_empty_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    pip = [tmp_path / "venv" / "bin" / "python", "-m", "pip", "install", "-q", "--require-hashes", "-r", HASHED]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_parts_of_a_release_are_listed_with_version_and_licence(tmp_path: Path) -> None:
    release_papers.write_papers(tmp_path, "1.2.3")
    listed = json.loads((tmp_path / "holdfast-agents-1.2.3.cdx.json").read_text())
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.6")
    parts = {one["name"]: one for one in listed["components"]}
    assert {"msgspec", "apsw", "rich", "typing_extensions"} <= parts.keys()
    assert "pytest" not in parts
    assert [name for name, one in parts.items() if one["licenses"][0]["license"]["name"] == "not stated"] == []
    notice = (tmp_path / "THIRD-PARTY-LICENCES.txt").read_text()
    assert [name for name, one in parts.items() if f"{name} {one['version']}: " not in notice] == []


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is not installed")
def test_checksums_are_signed_and_a_changed_one_does_not_verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, folder = tmp_path / "key", tmp_path / "dist"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    folder.mkdir()
    (folder / "a.whl").write_bytes(b"wheel")
    monkeypatch.setenv(release_papers.KEY_VARIABLE, str(key))
    release_papers.write_sums(folder)
    allowed = tmp_path / "allowed"
    allowed.write_text(f"us@example.org {key.with_suffix('.pub').read_text()}")
    verify = [
        "ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "us@example.org", "-n", release_papers.SIGNER,
        "-s", folder / "SHA256SUMS.sig",
    ]  # fmt: skip
    sums = (folder / "SHA256SUMS").read_bytes()
    assert subprocess.run(verify, input=sums, capture_output=True, check=False).returncode == 0
    assert subprocess.run(verify, input=sums + b"x", capture_output=True, check=False).returncode != 0
