"""`holdfast lease`: one holder at a time, in order."""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text

from holdfast import client
from holdfast.core.caller import LEASE_OWNERS_VARIABLE
from holdfast.core.errors import CommandRefused, HoldfastError
from holdfast.core.machine import pids_marked
from holdfast.core.times import time_ago
from holdfast.doors.cli import answered, render
from holdfast.doors.cli.options import Json
from holdfast.doors.lease_client import TTL_S, acquire_lease, leases_held_above, release_lease

lease_app = typer.Typer(help="Reserve a name while you work; others who want it wait in line.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Any name: git_repository, chezmoi_source, database …")]
Shared = Annotated[
    bool, typer.Option("--shared", help="Several can hold it at once, until someone requests it exclusively.")
]
Ttl = Annotated[float, typer.Option("--ttl", help="Seconds after which it counts as stuck.")]
Wait = Annotated[
    float | None, typer.Option("--wait", help="Seconds to wait at most; 0 = do not wait. Default: for ever.")
]
Why = Annotated[str, typer.Option("--why", help="Shown to those who wait.")]
EXIT_BUSY = 75
"""As in sysexits: try again later."""


@lease_app.command()
def acquire(
    name: Name, shared: Shared = False, ttl: Ttl = TTL_S, wait: Wait = None, why: Why = "",
    pid: Annotated[int, typer.Option("--pid", help="The owner; default: the agent's session, else your shell.")] = 0,
    json: Json = False,
) -> None:  # fmt: skip
    """Take a lease, waiting in line. It is free again when released, or when the owner's process is gone."""
    answer = acquire_lease(name, pid or os.getppid(), wait, exactly=bool(pid), shared=shared, ttl=ttl, why=why)
    is_granted = answer["answer"] == "granted"
    render.finish_as_json(json, answer, 0 if is_granted else EXIT_BUSY)
    if not is_granted:
        render.err.print(f"{name} is not free: {render.clean_line(answer['why'])}")
        raise typer.Exit(EXIT_BUSY)
    render.out.print(
        f"{name} is yours (process {answer['pid']}, token {answer['token']}). holdfast lease release {name}"
    )


@lease_app.command()
def release(
    name: Name,
    pid: Annotated[int, typer.Option("--pid", help="The owner, if it is not you.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Take it from the current holder.")] = False,
    json: Json = False,
) -> None:
    """Give a lease back."""
    answer = answered.command(
        json, "project.release", lease=name, pid=pid or os.getppid(), exactly=bool(pid), force=force
    )
    render.out.print(f"{name} is free." if answer["released"] else f"Nobody held {name}.")


@lease_app.command("list")
def list_leases(json: Json = False) -> None:
    """List holders and waiters."""
    answer = answered.view(json, "project.leases")
    if not answer["leases"]:
        render.out.print("Nothing is held.")
    for lease in answer["leases"]:
        for side, word in (("holders", "held by"), ("waiters", "awaited by")):
            for entry in lease[side]:
                render.out.print(_lease_line(lease["name"], word, entry, answer["now"]))


def _lease_line(name: str, word: str, entry: dict[str, Any], now: int) -> Text:
    since = time_ago(entry["at"], now)
    line = Text(f"{render.clean_line(name, 40):<24} {word} process {entry['pid']} ({entry['mode']}), since {since}")
    if entry["why"]:
        line.append(f", {render.clean_line(entry['why'], 60)}")
    if entry["lost"]:
        line.append(f"  {entry['lost']}", style="red")
    elif entry["late"] and word == "held by":
        line.append("  beyond its time", style="yellow")
    return line


@lease_app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context, name: Name, shared: Shared = False, ttl: Ttl = TTL_S, wait: Wait = None, why: Why = "",
) -> None:  # fmt: skip
    """Hold a lease while a command runs: holdfast lease run NAME -- COMMAND. Exits with the command's status."""
    # The first `--` separates our options from the command.
    words = [word for n, word in enumerate(context.args) if not (n == 0 and word == "--")]
    if not words:
        raise CommandRefused("there is no command to run", fix="holdfast lease run NAME -- COMMAND")
    answer = acquire_lease(
        name, os.getpid(), wait, exactly=True, runs=True, shared=shared, ttl=ttl, why=why or " ".join(words)[:100]
    )
    if answer["answer"] != "granted":
        render.err.print(f"{name} is not free: {render.clean_line(answer['why'])}")
        raise typer.Exit(EXIT_BUSY)
    # A command under several leases names all of them, so that cycles are found.
    within = " ".join([*leases_held_above(), answer["owner"]])
    env = {"HOLDFAST_LEASE": name, "HOLDFAST_LEASE_TOKEN": str(answer["token"]), LEASE_OWNERS_VARIABLE: within}
    with _guarded_command(answer["owner"]), _renewed_lease(name, answer["owner"], ttl):
        raise typer.Exit(_run_command(words, env))


GRACE_S = 5.0
"""How long a command may take to end after its wrapper was killed."""


@contextlib.contextmanager
def _guarded_command(owner: str) -> Iterator[None]:
    """Start a second process that ends the command if this one is killed: nobody works on without the lease's keeper."""
    read, write = os.pipe()
    # Forked before the command starts: it must exist whatever happens afterwards.
    guard = os.fork()
    if not guard:
        _run_guard(owner, read)
    os.close(read)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.write(write, b".")
        os.close(write)
        os.waitpid(guard, 0)


def _run_guard(owner: str, read: int) -> NoReturn:
    """Never returns into the program it was forked from."""
    try:
        os.setsid()  # Ctrl-C at the terminal is for the command.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        # Everything else, including the writing end: otherwise the pipe would not close with its owner.
        os.closerange(3, read)
        os.closerange(read + 1, nothing + 100)
        if not os.read(read, 1):
            _end_command(owner)
    finally:
        os._exit(0)


def _end_command(owner: str) -> None:
    deadline = time.monotonic() + GRACE_S
    number: int = signal.SIGTERM
    while left := pids_marked(LEASE_OWNERS_VARIABLE, owner):
        for pid in left if number else ():
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        late = time.monotonic() > deadline
        # 0 sends no signal and only waits until it is time for SIGKILL.
        number = signal.SIGKILL if late else 0
        time.sleep(0.05)


@contextlib.contextmanager
def _renewed_lease(name: str, owner: str, ttl: float) -> Iterator[None]:
    """Renew the lease during the block, and release it on every exit."""
    over = threading.Event()

    def beat() -> None:
        # Three times within its time, so that one failed renewal is harmless.
        while not over.wait(max(0.2, ttl / 3)):
            with contextlib.suppress(HoldfastError, OSError):
                client.run_command("project.keep", lease=name, owner=owner)

    threading.Thread(target=beat, daemon=True).start()
    try:
        yield
    finally:
        over.set()
        release_lease(name, owner)


def _run_command(words: list[str], env: dict[str, str]) -> int:
    try:
        child = subprocess.Popen(words, env={**os.environ, **env})
    except OSError as error:
        # An unreadable folder of PATH makes the kernel report "Permission denied" for a program that is nowhere.
        missing = "/" not in words[0] and shutil.which(words[0]) is None
        raise CommandRefused(f"{words[0]}: {os.strerror(errno.ENOENT) if missing else error.strerror}") from error
    # Forwarded: the lease is released only after the command has ended.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: child.send_signal(received))
    while True:
        try:
            code = child.wait()
            # As a shell reports a command that a signal ended.
            return code if code >= 0 else 128 - code
        except KeyboardInterrupt:  # The child got it too; how it takes it is its own affair.
            continue
