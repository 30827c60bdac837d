"""Sources to learn from, by package name: `python training/fetch.py FOLDER [group …]`.

Python packages come through `pip download`, JavaScript through `npm pack`, Go and Rust through `apt-get download` (Debian
packs their sources), Ruby and PHP likewise, Java, C and C++ through `apt-get source`.
What does not say a permissive licence in its own metadata is left
out and named in FOLDER/manifest.jsonl. Nothing of a package is run: archives are only read.
"""

import concurrent.futures
import fnmatch
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
SUFFIXES = {
    "python": (".py",),
    "go": (".go",),
    "rust": (".rs",),
    "javascript": (".js", ".ts", ".tsx", ".jsx", ".mjs", ".cjs", ".mts"),
    "java": (".java",),
    "c": (".c", ".h"),
    "cpp": (".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".h"),
    "ruby": (".rb",),
    "php": (".php",),
}
LARGEST_FILE = 400_000
BATCH = 60
MOST_BYTES = 60_000_000
"""Of one package: a giant must not drown the rest."""

TESTED = ("django", "sqlalchemy", "pydantic", "werkzeug", "httpx", "gin-gonic", "tokio", "vitest", "gson", "jsoup", "beets", "composer",
          "miniflux", "traccar", "uptime-kuma", "jekyll", "nlog", "tmux")  # fmt: skip
"""Measured on (tests/bench/search.py), so never learnt from: not as a package, not as a vendored folder."""
OWN_PROJECT_THOUGH_ITS_NAME = ("pytest-django", "marshmallow-sqlalchemy", "cookiecutter-django")

PERMISSIVE = re.compile(
    r"^(mit|mit-0|expat|bsd|bsd-[0-9a-z-]*|0bsd|apache|apache-2(\.0)?|apache 2(\.0)?|isc|iscl|psf(-2\.0)?|python-2\.0|zlib|"
    r"unlicense|cc0(-1\.0)?|boost|bsl-1\.0|hpnd|the mit license|public-domain|blueoak-1\.0\.0|zpl(-?2\.1)?|ncsa|wtfpl|postgresql)$"
)
WORDS = re.compile(
    r"\b(mit license|expat license|bsd license|bsd 3|bsd-3|bsd-2|new bsd|apache software license|apache license|"
    r"isc license|python software foundation|zope public license|zlib)",
    re.IGNORECASE,
)
RESTRICTIVE = re.compile(
    r"\b(a?l?gpl|gnu |mpl|mozilla|eupl|cddl|epl|eclipse|commons clause|busl|sspl|proprietary)", re.IGNORECASE
)


def named(group: str) -> list[str]:
    text = (HERE / "packages.txt").read_text()
    found = re.search(rf"^\[{group}\]\n(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    return list(dict.fromkeys(found[1].split())) if found else []


def tested(name: str) -> bool:
    low = name.lower()
    return low not in OWN_PROJECT_THOUGH_ITS_NAME and any(t in low for t in TESTED)


def permissive(words: Iterable[str]) -> bool:
    """Every alternative named must be permissive, or one of an `OR` must."""
    told = [w.strip() for w in words if w and w.strip()]
    return bool(told) and all(_one_is(w) for w in told)


def _one_is(told: str) -> bool:
    either = [t.strip(" ()") for t in re.split(r"\bor\b|/", told, flags=re.IGNORECASE)]
    return any(
        all(PERMISSIVE.match(p.strip(" ()").lower()) for p in re.split(r"\band\b|,|;", t)) for t in either
    ) or bool(WORDS.search(told[:400]) and not RESTRICTIVE.search(told[:400]))


# ── one package of each kind: (licence words, files) ─────────────────────────────────────────────────────────────────

Source = tuple[list[str], Iterator[tuple[str, bytes]]]


def python(name: str, folder: Path) -> Source:
    how = ["--no-deps", "--no-cache-dir", "-q", "-d", str(folder)]
    done = _quiet(sys.executable, "-m", "pip", "download", "--only-binary", ":all:", *how, name)
    if done:
        raise LookupError("no wheel")
    archive = zipfile.ZipFile(next(folder.glob("*.whl")))
    metadata = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
    head = archive.read(metadata).decode("utf-8", "replace").split("\n\n")[0]
    return _python_licence(head), _zipped(archive, "python")


def _python_licence(head: str) -> list[str]:
    def values(field: str) -> list[str]:
        return re.findall(rf"^{field}: (.+)$", head, re.MULTILINE)

    classified = [v.rsplit(" :: ", 1)[-1] for v in values("Classifier") if v.startswith("License ::")]
    classified = [c for c in classified if c != "OSI Approved"]
    return values("License-Expression") or classified or values("License")


def javascript(name: str, folder: Path) -> Source:
    if _quiet("npm", "pack", name, "--silent", "--ignore-scripts", cwd=folder):
        raise LookupError("not on npm")
    archive = tarfile.open(next(folder.glob("*.tgz")))  # noqa: SIM115 - read lazily by the caller
    package = json.loads(archive.extractfile("package/package.json").read())  # type: ignore[union-attr]
    licence = package.get("license") or ""
    return [licence if isinstance(licence, str) else licence.get("type", "")], _tarred(archive, "javascript")


def go(name: str, folder: Path) -> Source:
    return _debian(name, folder, "go")


def rust(name: str, folder: Path) -> Source:
    return _debian(name, folder, "rust")


def _debian(name: str, folder: Path, group: str) -> Source:
    archive = next((folder.parent / "debs").glob(f"{name}_*.deb"), None)
    if archive is None:
        raise LookupError("not in Debian")
    unpacked = folder / "unpacked"
    if _quiet("dpkg-deb", "-x", str(archive), str(unpacked)):
        raise LookupError("unreadable")
    copyright_file = next(unpacked.glob("usr/share/doc/*/copyright"), None)
    licences = _debian_licences(copyright_file.read_text(errors="replace")) if copyright_file else []
    return licences, _unpacked(unpacked, group)


def _debian_licences(text: str) -> list[str]:
    stanzas = [s for s in text.split("\n\n") if not re.search(r"^Files: *\n? *debian/", s, re.MULTILINE)]
    return [
        v.strip() for s in stanzas if s.startswith("Files") for v in re.findall(r"^License: *(.+)$", s, re.MULTILINE)
    ]


def ruby(name: str, folder: Path) -> Source:
    return _debian(name, folder, "ruby")


def php(name: str, folder: Path) -> Source:
    return _debian(name, folder, "php")


def java(name: str, folder: Path) -> Source:
    return _debian_source(name, folder, "java")


def c(name: str, folder: Path) -> Source:
    return _debian_source(name, folder, "c")


def cpp(name: str, folder: Path) -> Source:
    return _debian_source(name, folder, "cpp")


def _debian_source(name: str, folder: Path, group: str) -> Source:
    if _quiet("apt-get", "source", "--download-only", name, *_source_lists(), cwd=folder):
        raise LookupError("not in Debian")
    description = next(folder.glob("*.dsc"))
    unpacked = folder / "unpacked"
    if _quiet("dpkg-source", "--no-check", "-x", str(description), str(unpacked), cwd=folder):
        raise LookupError("unreadable")
    text = (unpacked / "debian" / "copyright").read_text(errors="replace")
    return _debian_licences(text), _unpacked(unpacked, group)


def _source_lists() -> list[str]:
    """Set up once by `prepare_source_lists`: source lists of our own, the system's are left alone."""
    place = Path(tempfile.gettempdir()) / "holdfast-model-apt"
    return ["-o", f"Dir::Etc::SourceList={place}/sources.list", "-o", "Dir::Etc::SourceParts=/dev/null",
            "-o", f"Dir::State::Lists={place}/lists", "-o", f"Dir::Cache={place}/cache"]  # fmt: skip


def prepare_source_lists() -> None:
    place = Path(tempfile.gettempdir()) / "holdfast-model-apt"
    (place / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (place / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    listed = "\n".join(p.read_text() for p in Path("/etc/apt").rglob("debian.sources"))
    address = re.search(r"^URIs: *(\S+)", listed, re.MULTILINE)
    suite = re.search(r"^Suites: *(\S+)", listed, re.MULTILINE)
    if not (address and suite):
        raise LookupError("needs a Debian with its usual source lists")
    (place / "sources.list").write_text(f"deb-src {address[1]} {suite[1]} main\n")
    _quiet("apt-get", "update", *_source_lists())


# ── reading archives ─────────────────────────────────────────────────────────────────────────────────────────────────


def _zipped(archive: zipfile.ZipFile, group: str) -> Iterator[tuple[str, bytes]]:
    for item in archive.infolist():
        if _wanted(item.filename, item.file_size, group):
            yield item.filename, archive.read(item)


def _tarred(archive: tarfile.TarFile, group: str) -> Iterator[tuple[str, bytes]]:
    for item in archive:
        if item.isfile() and _wanted(item.name, item.size, group):
            yield item.name, archive.extractfile(item).read()  # type: ignore[union-attr]


def _unpacked(folder: Path, group: str) -> Iterator[tuple[str, bytes]]:
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_file() and not path.is_symlink() and _wanted(name, path.stat().st_size, group):
            yield name, path.read_bytes()


def _wanted(name: str, size: int, group: str) -> bool:
    low = name.lower()
    return (
        low.endswith(SUFFIXES[group])
        and 0 < size <= LARGEST_FILE
        and not low.endswith((".min.js", ".pb.go", "_pb2.py"))
        and not any(t in low for t in TESTED)
        and not re.search(r"(^|/)(_?vendor(ed)?|third_party|externals?|node_modules)/", low)
    )


def _quiet(*argv: str, cwd: Path | None = None) -> int:
    return subprocess.run(argv, cwd=cwd, capture_output=True, check=False, timeout=900).returncode


# ── all of them ──────────────────────────────────────────────────────────────────────────────────────────────────────

KINDS = {
    "python": python, "go": go, "rust": rust, "javascript": javascript, "java": java, "c": c, "cpp": cpp, "ruby": ruby, "php": php,
}  # fmt: skip
FROM_SOURCE_PACKAGES = ("java", "c", "cpp")
FROM_BINARY_PACKAGES = ("go", "rust", "ruby", "php")


def expanded(group: str) -> list[str]:
    """Names with a `*` stand for all that Debian has."""
    names = named(group)
    if not any("*" in n for n in names):
        return names
    listed = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True).stdout.split()
    return sorted({p for p in listed if any(fnmatch.fnmatch(p, n) for n in names)})


def take(group: str, name: str, out: Path, near: str) -> dict:
    told: dict = {"group": group, "package": name}
    if tested(name):
        return {**told, "left_out": "measured on"}
    with tempfile.TemporaryDirectory(dir=near) as temporary:
        try:
            licences, files = KINDS[group](name, Path(temporary))
        except Exception as error:
            return {**told, "left_out": str(error)[:200] or type(error).__name__}
        told["licence"] = licences[:8]
        if not permissive(licences):
            return {**told, "left_out": "licence"}
        return {**told, **_written(out / group / f"{name.replace('/', '+')}.tar.gz", files)}


def _written(path: Path, files: Iterable[tuple[str, bytes]]) -> dict:
    path.parent.mkdir(parents=True, exist_ok=True)
    count = total = 0
    partial = path.with_suffix(".partial")
    with tarfile.open(partial, "w:gz", compresslevel=4) as archive:
        for name, content in files:
            if total > MOST_BYTES:
                break
            item = tarfile.TarInfo(name)
            item.size = len(content)
            archive.addfile(item, io.BytesIO(content))
            count, total = count + 1, total + len(content)
    if count:
        partial.replace(path)
    else:
        partial.unlink()
    return {"files": count, "bytes": total}


def main() -> None:
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    manifest = out / "manifest.jsonl"
    known = (
        {(m["group"], m["package"]) for m in map(json.loads, manifest.read_text().splitlines())}
        if manifest.exists()
        else set()
    )
    for group in sys.argv[2:] or KINDS:
        if group in FROM_SOURCE_PACKAGES:
            prepare_source_lists()
        names = [n for n in expanded(group) if (group, n) not in known]
        with manifest.open("a") as log:
            for at in range(0, len(names), BATCH):
                for told in taken(group, names[at : at + BATCH], out):
                    log.write(json.dumps(told) + "\n")
                log.flush()
        print(group, len(names), "packages looked at")


def taken(group: str, names: list[str], out: Path) -> list[dict]:
    with tempfile.TemporaryDirectory() as near, concurrent.futures.ThreadPoolExecutor(3) as pool:
        if group in FROM_BINARY_PACKAGES:  # One call for many: most of its time is reading the lists.
            (Path(near) / "debs").mkdir()
            _quiet("apt-get", "download", *names, cwd=Path(near) / "debs")
        return list(pool.map(lambda name: take(group, name, out, near), names))


if __name__ == "__main__":
    if not shutil.which("npm") or not shutil.which("apt-get"):
        sys.exit("training/fetch.py needs npm and apt-get")
    main()
