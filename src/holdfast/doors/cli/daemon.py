"""`holdfast daemon …`: the process that writes the log."""

import time
from typing import Annotated

import typer

from holdfast import client
from holdfast.core.times import format_bytes, time_ago
from holdfast.daemon import units
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json

app = typer.Typer(help="Start, stop and look at the daemon.", no_args_is_help=True)


@app.command()
def start() -> None:
    """Start the daemon if it isn't running. Hooks do this by themselves."""
    was = client.running_pid()
    pid = client.start_daemon()
    render.out.print(f"The daemon {'was running already' if was else 'is running'} (pid {pid}).")


@app.command()
def stop() -> None:
    """Stop the daemon. Hooks start it again when they need it."""
    pid = client.stop_daemon("holdfast daemon stop")
    render.out.print(f"Stopped (pid {pid})." if pid else "No daemon was running.")


@app.command()
def restart() -> None:
    """Stop the daemon and start it again."""
    client.stop_daemon("holdfast daemon restart")
    render.out.print(f"The daemon is running (pid {client.start_daemon()}).")


@app.command()
def run() -> None:
    """Run the daemon in the foreground, with its log on the terminal."""
    from holdfast.daemon.run import run_daemon as serve

    raise typer.Exit(serve(client.state_paths(), foreground=True))


@app.command()
def status(json: Json = False) -> None:
    """Show whether the daemon runs, since when, and its state."""
    pid = client.running_pid()
    answer = client.ask_daemon("status") if pid else {}
    render.finish_as_json(json, {"running": bool(pid), **answer})
    if not pid:
        render.out.print("The daemon is not running. Hooks start it automatically; or run: holdfast daemon start")
    else:
        memory = format_bytes(answer["memory_bytes"])
        render.out.print(
            f"Running: pid {pid}, started {time_ago(answer['started'])}, {memory}, {render.counted(answer['counts']['events'], 'event')}."
        )


@app.command()
def logs(
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f")] = False,
) -> None:
    """Show the end of the daemon's log."""
    path = client.state_paths().log_file
    if not path.exists():
        render.out.print(f"No log yet at {path}.")
        return
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file.readlines()[-lines:]:
            render.print_text(line)
        while follow:
            line = file.readline()
            render.print_text(line) if line else time.sleep(0.2)


@app.command()
def unit(
    kind: Annotated[str, typer.Argument(help="systemd or launchd")] = "systemd",
    write: Annotated[bool, typer.Option("--write", help="Put it in its place instead of printing it.")] = False,
) -> None:
    """Print a service file, to start the daemon at log-in."""
    text, path, next_step = units.service_file(kind, client.state_paths())
    if write:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        render.out.print(f"Written to {path}. Now: {next_step}")
    else:
        print(text, end="")
