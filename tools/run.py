"""`make run`: installs only what Holdfast itself needs, says how far it is, then plays a short session (tools/play.py).

Where the environment of `make test` is there already, that one is used. Works with the standard library only.
"""

import os
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
FULL, SMALL = ROOT / ".venv", ROOT / ".cache" / "run-venv"
NEEDED = (3, 11)


def main() -> None:
    if sys.version_info < NEEDED:
        sys.exit(
            f"Holdfast needs Python 3.11 or newer, this is {sys.version.split()[0]}; set PYTHON=/path/to/python3.11"
        )
    chosen = FULL if (FULL / ".ready").exists() else SMALL
    if chosen == SMALL and not _is_fresh():
        install()
    command = [str(chosen / "bin/python"), str(ROOT / "tools/play.py")]
    os.execv(command[0], command)  # noqa: S606 - our own program


def _is_fresh() -> bool:
    ready = SMALL / ".ready"
    wanted = (ROOT / "pyproject.toml", ROOT / "packaging" / "constraints.txt")
    return ready.exists() and all(ready.stat().st_mtime >= file.stat().st_mtime for file in wanted)


def install() -> None:
    print("Installing what Holdfast needs into .cache/run-venv (about 200 MB on disk, once).", flush=True)
    try:
        venv.create(SMALL, with_pip=True, clear=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"python3 -m venv does not work here ({error}); on Debian: apt-get install python3-venv")
    pip = [str(SMALL / "bin/python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    pip += ["-c", str(ROOT / "packaging" / "constraints.txt")]
    # No compiler is fetched for a first look: the hook is the Python one.
    _follow([*pip, "hatchling", "editables"], {})
    _follow([*pip, "--no-build-isolation", "-e", str(ROOT)], {"HOLDFAST_TARGET": "none"})
    (SMALL / ".ready").touch()


def _follow(
    command: "list[str]", env: "dict[str, str]"
) -> None:  # quoted: an old Python must get as far as its message
    """Runs pip with one line that says what it does and for how long; the whole text only when it fails."""
    began, said = time.monotonic(), []
    process = subprocess.Popen(
        command, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    for line in process.stdout or ():
        said.append(line)
        words = line.split()
        if words and words[0] in ("Collecting", "Downloading", "Installing", "Building"):
            shown = (
                f"  {time.monotonic() - began:4.0f} s  {words[0].lower()} {words[-1] if len(words) < 4 else words[1]}"
            )
            print(
                f"\r{shown[:76]:<76}" if sys.stdout.isatty() else shown[:76],
                end="" if sys.stdout.isatty() else "\n",
                flush=True,
            )
    if sys.stdout.isatty():
        print()
    if process.wait():
        failed = "The installation failed; it needs the package index once. When there is a network: make run"
        sys.exit("".join(said[-20:]) + failed)


if __name__ == "__main__":
    main()
