"""What must be true of a package before it is given to anybody. A check that fails ends the release with its reason."""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

LARGEST_WHEEL = 22_000_000
LARGEST_INSTALLATION = 150_000_000
HOOK = ".data/scripts/holdfast-hook"
NEEDED = (
    "holdfast/doors/cli/__init__.py", "holdfast/hook.py", "holdfast/py.typed", "holdfast/doors/web/templates/base.html",
    "holdfast/doors/web/static/core.js", "holdfast/setup/demo/day.yaml", "holdfast/analysis/search/model/words.txt",
)  # fmt: skip
SCRIPTS = ("holdfast", "holdfast-agents", "holdfast-daemon", "holdfast-outside")
MACHINES = {"x86_64-linux-musl": 62, "aarch64-linux-musl": 183}
CPU_TYPES = {"x86_64-macos": 0x01000007, "aarch64-macos": 0x0100000C}
PROGRAM_INTERPRETER = 3


def require(true: object, reason: str) -> None:
    if not true:
        sys.exit(f"release check failed: {reason}")


def check_wheel(wheel: Path, target: str, version: str) -> str:
    size = wheel.stat().st_size
    require(size <= LARGEST_WHEEL, f"{wheel.name} has {size} bytes, more than {LARGEST_WHEEL}")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        require(opened.testzip() is None, f"{wheel.name} is damaged")
        _check_contents(names)
        _check_metadata(opened, names, version)
        hook = _check_hook(opened, names, target)
        _check_written_version(opened, version)
    return f"{size / 1e6:.1f} MB, {len(names)} files, hook: {hook}"


def _check_contents(names: list[str]) -> None:
    for needed in NEEDED:
        require(needed in names, f"{needed} is not in it")
    strange = [n for n in names if not re.match(r"^(holdfast/|holdfast_agents-[^/]+\.(dist-info|data)/)", n)]
    require(not strange, f"it has files of others: {strange[:3]}")
    waste = [n for n in names if "__pycache__" in n or n.endswith((".pyc", ".orig", ".partial"))]
    require(not waste, f"it has files that belong nowhere: {waste[:3]}")


def _check_metadata(opened: zipfile.ZipFile, names: list[str], version: str) -> None:
    told = Parser().parsestr(opened.read(next(n for n in names if n.endswith(".dist-info/METADATA"))).decode())
    require(told["Name"] == "holdfast-agents", f"its name is {told['Name']}")
    require(told["Version"] == version, f"its version is {told['Version']}, not {version}")
    require(told["Requires-Python"] == ">=3.11", f"it says Python {told['Requires-Python']}")
    require(told["License-Expression"] == "Apache-2.0", "its license is not named")
    scripts = opened.read(next(n for n in names if n.endswith("entry_points.txt"))).decode()
    for script in SCRIPTS:
        require(re.search(rf"^{script} = ", scripts, re.MULTILINE), f"it has no command {script}")


def _check_written_version(opened: zipfile.ZipFile, version: str) -> None:
    text = opened.read("holdfast/__init__.py").decode()
    require(f'__version__ = "{version}"' in text, "the program tells another version than its package")


def _check_hook(opened: zipfile.ZipFile, names: list[str], target: str) -> str:
    found = [name for name in names if name.endswith(HOOK)]
    if target not in MACHINES and target not in CPU_TYPES:
        require(not found, "the pure wheel has a native hook")
        return "Python"
    require(found, f"the wheel for {target} has no hook")
    body = opened.read(found[0])
    mode = opened.getinfo(found[0]).external_attr >> 16
    require(mode & 0o111, "the hook cannot be executed")
    return _describe_elf(body, target) if target in MACHINES else _describe_macho(body, target)


def _describe_elf(body: bytes, target: str) -> str:
    require(body[:6] == b"\x7fELF\x02\x01", f"the hook for {target} is no 64-bit ELF file")
    (machine,) = struct.unpack_from("<H", body, 18)
    require(machine == MACHINES[target], f"the hook for {target} is for machine {machine}")
    (offset,) = struct.unpack_from("<Q", body, 32)
    size, count = struct.unpack_from("<HH", body, 54)
    kinds = [struct.unpack_from("<I", body, offset + n * size)[0] for n in range(count)]
    require(PROGRAM_INTERPRETER not in kinds, f"the hook for {target} is not static")
    return f"static ELF, {target.partition('-')[0]}, {len(body)} bytes"


def _describe_macho(body: bytes, target: str) -> str:
    magic, cpu = struct.unpack_from("<Ii", body)
    require(magic == 0xFEEDFACF, f"the hook for {target} is no 64-bit Mach-O file")
    require(cpu == CPU_TYPES[target], f"the hook for {target} is for CPU type {cpu:#x}")
    return f"Mach-O, {target.partition('-')[0]}, {len(body)} bytes"


def check_installation(wheel: Path, version: str) -> str:
    """As a person would: an empty environment, an empty HOME, a plain PATH, then the lines of the README.

    The size is that of the packages themselves, as uv installs them; pip by default compiles all of it beforehand,
    which adds about a quarter.
    """
    with tempfile.TemporaryDirectory(prefix="hf-") as folder:
        root = Path(folder)
        venv.create(root / "venv", with_pip=True)
        python = root / "venv/bin/python"
        before = _size(root / "venv")
        install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile", wheel]
        _run(install, root, dict(os.environ))
        size = _size(root / "venv") - before
        require(size <= LARGEST_INSTALLATION, f"installed it has {size} bytes, more than {LARGEST_INSTALLATION}")
        _try_first_minute(root, version)
    return f"installed {size / 1e6:.0f} MB, up, one event, doctor"


def _try_first_minute(root: Path, version: str) -> None:
    home = root / "home"
    (home / ".claude").mkdir(parents=True)
    env = {"HOME": str(home), "PATH": f"{root}/venv/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    for script in ("holdfast", "holdfast-agents"):
        said = _run([root / "venv/bin" / script, "--version"], home, env)
        require(said.split() == ["holdfast", version], f"{script} --version says {said!r}")
    try:
        _run(["holdfast", "up"], home, env)
        said = _run(["holdfast", "event", "list", "--json"], home, env)
        require(json.loads(said)["data"]["events"], "no event is on record after holdfast up")
    finally:
        _run(["holdfast", "daemon", "stop"], home, env)


def _run(command: list, cwd: Path, env: dict[str, str]) -> str:
    env = {**env, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=600
    )
    require(done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout


def _size(folder: Path) -> int:
    files = (Path(base) / name for base, _, names in os.walk(folder) for name in names)
    return sum(file.lstat().st_size for file in files)
