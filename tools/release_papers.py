"""What goes with a release: its parts (CycloneDX), their licences, and signed checksums."""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

SIGNER = "holdfast-release"
KEY_VARIABLE = "HOLDFAST_RELEASE_KEY"
"""An SSH private key; without one the sums are not signed."""


def write_papers(folder: Path, version: str) -> None:
    parts = sorted(runtime_parts("holdfast-agents"), key=lambda one: normal(one.name))
    (folder / f"holdfast-agents-{version}.cdx.json").write_text(json.dumps(bill_of_materials(parts, version), indent=1))
    (folder / "THIRD-PARTY-LICENCES.txt").write_text("\n".join(licence_notice(one) for one in parts))


def runtime_parts(name: str) -> Iterator[metadata.Distribution]:
    """Everything that a plain installation brings, without extras."""
    seen, waiting = {normal(name)}, [name]
    while waiting:
        for text in metadata.distribution(waiting.pop()).requires or ():
            wanted = Requirement(text)
            if normal(wanted.name) not in seen and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
                seen.add(normal(wanted.name))
                waiting.append(wanted.name)
                yield metadata.distribution(wanted.name)


def bill_of_materials(parts: list[metadata.Distribution], version: str) -> dict:
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": {"type": "application", "name": "holdfast-agents", "version": version}},
        "components": [
            {
                "type": "library", "name": one.name, "version": one.version,
                "purl": f"pkg:pypi/{normal(one.name)}@{one.version}",
                "licenses": [{"license": {"name": licence_of(one)}}],
            }
            for one in parts
        ],
    }  # fmt: skip


def licence_of(part: metadata.Distribution) -> str:
    named = part.metadata.get("License-Expression") or ""
    classified = [
        one.rpartition(" :: ")[2] for one in part.metadata.get_all("Classifier", []) if one.startswith("License")
    ]
    # Old packages put the whole text into the field.
    written = (part.metadata.get("License") or "").strip().partition("\n")[0][:80]
    return named or " AND ".join(classified) or written or "not stated"


def licence_notice(part: metadata.Distribution) -> str:
    texts = [
        file.read_text()
        for file in part.files or ()
        if re.search(r"(?i)\b(licen[cs]e|copying|notice)[^/]*$", str(file))
    ]
    rule = "=" * 100
    return "\n".join([rule, f"{part.name} {part.version}: {licence_of(part)}", rule, *texts])


def write_sums(folder: Path) -> None:
    files = sorted(file for file in folder.iterdir() if file.is_file())
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files))
    if key := os.environ.get(KEY_VARIABLE):
        # An older signature would be asked about.
        (folder / "SHA256SUMS.sig").unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", SIGNER, str(sums)], check=True)
    else:
        print(f"  SHA256SUMS is not signed: {KEY_VARIABLE} names no SSH key")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
