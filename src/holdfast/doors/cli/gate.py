"""`holdfast gate …`: what is required here, its state, and every way to resolve it."""

import re
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.text import Text

from holdfast import client
from holdfast.agents import AGENTS
from holdfast.core.errors import CommandRefused
from holdfast.core.git_context import locate
from holdfast.doors.cli import answered, gate_hooks, render
from holdfast.doors.cli.gate_hooks import moved_hooks, offer_git_hooks
from holdfast.doors.cli.options import Json
from holdfast.settings.trust import is_file_trusted, trust_file

if TYPE_CHECKING:
    from holdfast.settings import SettingsCache

app = typer.Typer(help="Requirements that agents must meet, checked against what was recorded.", no_args_is_help=True)
app.add_typer(gate_hooks.app, name="hooks")

Names = Annotated[list[str], typer.Argument(help="Requirements by name.")]
Session = Annotated[str, typer.Option("--session", help="Another session than this shell's: its id or its beginning.")]
Everyone = Annotated[bool, typer.Option("--branch", help="For every session on this branch.")]
Ttl = Annotated[str, typer.Option("--ttl", help="How long it counts, e.g. 30m, 2h.")]
Code = Annotated[
    str,
    typer.Option(
        "--code",
        help="The code that the dashboard shows; needed where Holdfast cannot see whether a person or an agent asks.",
    ),
]
Metadata = Annotated[str, typer.Option("--metadata", help="""JSON kept with it, e.g. '{"ticket": "#12"}'.""")]

# A number with an optional unit, by default seconds.
_DURATION = re.compile(r"^(\d+(?:\.\d+)?)\s*(s|sec|m|min|h|d|w)?$")
_UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_duration(text: str) -> int:
    """`90`, `30m`, `2h`, `7d`."""
    if not text:
        return 0
    match = _DURATION.match(text.strip().lower())
    if not match:
        raise CommandRefused(f"{text!r} is not a duration", fix="Write 90, 30m, 2h or 7d.")
    return int(float(match[1]) * _UNITS[match[2] or "s"])


def _caller_context(**more: Any) -> dict[str, Any]:
    around = locate(str(Path.cwd()))
    # Agents set the session in the environment of their commands; the daemon judges by itself who asks.
    by = "agent" if client.current_session() else "person"
    return {"branch": around.get("branch", ""), "repo": around.get("repo", ""), "by": by, **more}


@app.command()
def status(session: Session = "", json: Json = False) -> None:
    """Show what is required here, what is satisfied, and what resolves the rest."""
    answer = client.ask_view("gates.status", **_caller_context(session=session))
    answer["enforcement"] = agent_enforcement(answer["agent"])
    render.finish_as_json(json, answer)
    render.out.print(_status_headline(answer))
    for one in answer["requirements"]:
        render.out.print(_requirement_line(one))
    if not answer["requirements"]:
        render.out.print("No requirement is set here, so nothing is ever refused. Begin with: holdfast gate init")
    for notice in (*answer["attention"], *answer["notices"], *moved_hooks()):
        render.warn(render.clean_line(notice, 400))
    others = [one for one in answer["sessions"] if one["id"] != answer["session"]]
    if others:
        render.hint("also alive here: " + ", ".join(f"{o['alias']} ({o['agent']})" for o in others))


def agent_enforcement(agent: str) -> dict[str, str]:
    """What a refusal does in that agent: prevent (it does not happen), retry (the agent continues with the reason),
    observe."""
    entry = AGENTS.get(agent)
    at = {"tool": "tool.started", "stop": "turn.ended"}
    return {moment: entry.enforces.get(kind, "observe") if entry else "observe" for moment, kind in at.items()}


REFUSED_CALLS = {"prevent": "refused calls do not run", "retry": "refused calls run, and the agent gets the reason"}
REFUSED_STOPS = {"prevent": "a refused stop does not happen", "retry": "a refused stop makes it continue"}


def _enforcement_text(held: dict[str, str]) -> str:
    calls = REFUSED_CALLS.get(held["tool"], "calls are only watched")
    return f"{calls}, {REFUSED_STOPS.get(held['stop'], 'stops are only watched')}"


def _status_headline(answer: dict[str, Any]) -> Text:
    where = f"branch {answer['branch']}" if answer["branch"] else answer["project"]
    line = Text(render.clean_line(where), style="bold")
    if answer["session"]:
        held = answer["enforcement"]
        line.append(f"  session {render.clean_line(answer['session'][:8])}", style="cyan")
        line.append(f"  {answer['agent'] or 'agent unknown'}: {_enforcement_text(held)}", style="dim")
    if answer["paused"]:
        line.append("  PAUSED (holdfast gate resume)", style="bold yellow")
    return line


def _requirement_line(one: dict[str, Any]) -> Text:
    line = Text("  ✓ " if one["ok"] else "  ⬜ ", style="green" if one["ok"] else "yellow")
    line.append(f"{one['name']:<24} ", style="bold")
    line.append(f"{one['type'] + '/' + one['scope']:<20} ", style="dim")
    line.append(render.clean_line(one["why"], 120))
    if one["until"]:
        line.append(f", until {render.clock_time(one['until'])}", style="dim")
    if not one["ok"]:
        line.append(f"  → {render.clean_line(one['resolve'], 160)}", style="cyan")
    if one["triggered"]:
        line.append("  (in use)", style="dim")
    return line


@app.command("list")
def list_requirements(json: Json = False) -> None:
    """List the requirements of this project, and those that could be enabled."""
    answer = answered.view(json, "gates.list")
    table = render.plain_table("requirement", "type", "scope", "refuses", "resolved by")
    for one in answer["requirements"]:
        moments = "+".join(name for name, on in (("tool", one["at_tool"]), ("stop", one["at_stop"])) if on)
        table.add_row(one["name"], one["type"], one["scope"], moments, render.clean_line(one["resolve"], 80))
    render.out.print(table)
    for label, names in (("disabled", answer["disabled"]), ("built in, off", answer["built_in"])):
        if names:
            render.hint(f"{label}: {', '.join(names)}")


@app.command()
def satisfy(
    names: Names, session: Session = "", branch: Everyone = False, ttl: Ttl = "", metadata: Metadata = "",
    code: Code = "", json: Json = False,
) -> None:  # fmt: skip
    """Mark a requirement as done, on record. One that needs evidence cannot be marked."""
    _allow("gates.satisfy", "satisfied", json, names, session, branch, ttl, metadata, code)


@app.command()
def approve(
    names: Names, session: Session = "", branch: Everyone = False, ttl: Ttl = "", metadata: Metadata = "",
    code: Code = "", json: Json = False,
) -> None:  # fmt: skip
    """Allow something for a while (default: one hour). Only a person can do this."""
    _allow("gates.approve", "approved", json, names, session, branch, ttl, metadata, code)


@app.command()
def clear(
    names: Annotated[list[str] | None, typer.Argument(help="Requirements by name.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All of this session's.")] = False,
    session: Session = "",
    branch: Everyone = False,
    force: Annotated[bool, typer.Option("--force", help="Permanent ones too.")] = False,
    json: Json = False,
) -> None:
    """Reopen what was satisfied: for this session only, unless --branch is given."""
    args = _caller_context(names=names or [], all=every, session=session, everyone=branch, force=force)
    _show_change(client.run_command("gates.clear", **args), "cleared", json)


def _allow(
    command: str,
    what: str,
    json: bool,
    names: list[str],
    session: str,
    branch: bool,
    ttl: str,
    metadata: str,
    code: str,
) -> None:
    args = _caller_context(
        names=names,
        session=session,
        everyone=branch,
        ttl=parse_duration(ttl),
        metadata=_parse_metadata(metadata),
        code=code,
    )
    _show_change(client.run_command(command, **args), what, json)


def _show_change(answer: dict[str, Any], what: str, json: bool) -> None:
    render.finish_as_json(json, answer)
    names = [one if isinstance(one, str) else one["name"] for one in answer["requirements"]]
    whom = f"session {answer['session'][:8]}" if answer["session"] else "everyone"
    render.out.print(f"{what}: {', '.join(names)} ({whom}, branch {answer['branch'] or '-'})")


@app.command()
def pause(
    duration: Annotated[str, typer.Argument(help="e.g. 30m, 2h; nothing = until resumed.")] = "",
    everywhere: Annotated[bool, typer.Option("--everywhere", help="In all projects.")] = False,
    session_only: Annotated[bool, typer.Option("--session-only", help="Only for this shell's session.")] = False,
    why: Annotated[str, typer.Option("--why", help="Kept with it.")] = "",
    code: Code = "",
    json: Json = False,
) -> None:
    """Refuse nothing for a while. (HOLDFAST_PAUSE=1 in the agent's environment does the same.)"""
    args = _caller_context(
        seconds=parse_duration(duration), everywhere=everywhere, session_only=session_only, why=why, code=code
    )
    answer = answered.command(json, "gates.pause", **args)
    until = f"until {render.clock_time(answer['until'])}" if answer["until"] else "until: holdfast gate resume"
    render.out.print(f"gates are paused in {answer['where']}, {until}")


@app.command()
def resume(json: Json = False) -> None:
    """End a pause: the gates refuse again."""
    answered.command(json, "gates.resume", **_caller_context())
    render.out.print("gates are active again")


@app.command()
def accept(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False, code: Code = "", json: Json = False
) -> None:  # fmt: skip
    """Accept settings that require less than what is in force. Shows the difference first. Only a person can do this."""
    differences = client.ask_view("gates.attention")["differences"]
    if not differences:
        render.out.print("Nothing waits to be accepted.")
        return
    render.out.print("The settings require less than what is in force:")
    for difference in differences:
        render.say(f"  {render.clean_line(difference, 400)}", "yellow")
    if not yes and not typer.confirm("Accept this?"):
        client.run_command("gates.keep", **_caller_context())
        render.out.print("Not accepted. The current requirements stay in force.")
        raise typer.Exit(1)
    answer = answered.command(json, "gates.accept", **_caller_context(code=code))
    render.out.print(f"accepted: {'; '.join(answer['accepted']) or 'nothing'}")


@app.command()
def codes(json: Json = False) -> None:
    """Show one-time codes that prove a person asked. Only in your own terminal."""
    answer = answered.view(json, "gates.codes")
    for one in answer["codes"]:
        render.out.print(f"{one['code']}  {render.clean_line(one['act'], 120)}  ({render.clean_line(one['why'], 120)})")
    if not answer["codes"]:
        render.out.print("Nothing waits for a code.")


@app.command()
def prune(json: Json = False) -> None:
    """Remove the state of branches that git no longer knows."""
    answer = answered.command(json, "gates.prune", **_caller_context())
    render.out.print(f"pruned: {', '.join(answer['pruned'])}" if answer["pruned"] else "nothing to prune")


@app.command()
def explain(seq: Annotated[int, typer.Argument(help="The number of an event.")], json: Json = False) -> None:
    """Explain why a call was refused or allowed."""
    answer = answered.view(json, "gates.explain", **_caller_context(seq=seq))
    what = answer["what"] if isinstance(answer["what"], str) else ", ".join(answer["what"])
    render.out.print(
        f"{answer['seq']}  {render.short_time(answer['at'])}  {answer['kind']}  {answer['tool']}  {render.clean_line(what, 100)}"
    )
    render.say(f"answer then: {answer['verdict']}", "bold")
    for reason in (*answer["reasons"], *answer["notices"]):
        for line in reason.splitlines():
            render.say(f"  {render.clean_line(line, 300)}")
    render.hint("by today's rules, knowing what was known then:")
    for one in answer["requirements"]:
        render.out.print(_requirement_line({**one, "until": 0, "triggered": one["about"]}))


@app.command()
def replay(
    since: Annotated[str, typer.Option("--since", help="So far back, e.g. 30d; nothing = everything.")] = "30d",
    settings: Annotated[Path | None, typer.Option("--settings", help="Other rules than this project's.")] = None,
    everywhere: Annotated[bool, typer.Option("--everywhere", help="All projects, by these rules.")] = False,
    json: Json = False,
) -> None:
    """Show what a rule set would have refused in recorded sessions."""
    rules = _read_rules(settings) if settings else None
    answer = answered.view(
        json, "gates.replay", **_caller_context(seconds=parse_duration(since), settings=rules, everywhere=everywhere)
    )
    calls, stops = (f"{answer[f'refused_{what}']} of {answer[what]} {what}" for what in ("calls", "stops"))
    render.out.print(f"{calls} and {stops} would have been refused by {', '.join(answer['rules']) or 'no rule'}.")
    for case in answer["cases"][:40]:
        line = Text(f"{case['seq']:>8}  ", style="cyan")
        line.append(f"{render.clean_line(case['tool'] or case['kind'], 12):<12} {render.clean_line(case['what'], 70)}")
        line.append(f"  {', '.join(case['requirements'])}", style="yellow")
        render.out.print(line)
    if answer["cases"]:
        render.hint(f"open one: holdfast gate explain {answer['cases'][0]['seq']}")


def _read_rules(file: Path) -> dict[str, Any]:
    """Another rule set, read as strictly as the project's own."""
    from holdfast.app import open_settings

    resolved = open_settings().settings.section_of(file, "gates")
    for notice in resolved.notices:
        render.err.print(Text(f"! {notice}", style="yellow"))
    value: dict[str, Any] = resolved.trees["gates"].plain()
    return value


@app.command()
def verify(json: Json = False) -> None:
    """Check the settings for mistakes and for skills that are not installed. Exits 1 if there are any."""
    answer = client.ask_view("gates.verify", **_caller_context())
    code = 0 if answer["good"] else 1
    render.finish_as_json(json, answer, code)
    render.out.print(f"{answer['requirements']} requirements, {len(answer['problems'])} problems")
    for problem in answer["problems"]:
        render.warn(render.clean_line(problem, 400))
    raise typer.Exit(code)


@app.command()
def init(
    preset: Annotated[
        str, typer.Option("--preset", help="fitting, strict, relaxed or minimal; asked for if not given.")
    ] = "",
    with_: Annotated[list[str] | None, typer.Option("--with", help="This requirement too (see: gate list).")] = None,
    layer: Annotated[str, typer.Option("--layer", help="user, project or local")] = "project",
    json: Json = False,
) -> None:
    """Write initial requirements into a settings file: fitted to this project, or a preset. Existing content stays."""
    from holdfast.app import open_settings

    presets = client.ask_view("gates.presets")
    chosen = _choose_requirements(presets, preset, with_ or [])
    useless = _without_skills(chosen, presets["missing"], with_ or [])
    chosen = {name: rule for name, rule in chosen.items() if name not in useless}
    file, added = _write_requirements(open_settings(), layer, chosen)
    path = str(file)
    render.finish_as_json(json, {"path": path, "added": added, "kept": sorted(set(chosen) - set(added))})
    render.out.print(f"{path}: {', '.join(added) or 'nothing new'}")
    for name, skills in useless.items():
        render.hint(f"left out: {name} (no skill named {' or '.join(skills)} was found; --with {name} adds it)")
    _say_what_follows()
    offer_git_hooks()


def _without_skills(chosen: dict[str, Any], missing: dict[str, list[str]], wanted: list[str]) -> dict[str, list[str]]:
    """Chosen requirements whose skill was not found, except those asked for by name."""
    return {name: skills for name, skills in missing.items() if name in chosen and name not in wanted}


def _write_requirements(cache: "SettingsCache", layer: str, chosen: dict[str, Any]) -> tuple[Path, list[str]]:
    """The file, and the names that were not in force before."""
    from holdfast.settings.edit import set_value

    project = "" if layer == "user" else client.current_project()
    here = cache.settings.load(project)["gates"].requirements
    added = [name for name in chosen if name not in here]
    file = cache.settings.file(layer, project)
    trusts = layer != "user" and bool(added) and _is_ones_own(file)
    for name in added:
        set_value(cache.settings, layer, f"requirements.{name}", chosen[name], project=project)
    if trusts:
        trust_file(file)
    return file, added


def _is_ones_own(file: Path) -> bool:
    """Whether the file may be trusted: it holds only what the person lets us write."""
    if not client.ask_daemon("caller")["person"]:
        return False
    try:
        return is_file_trusted(file, file.read_bytes())
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _say_what_follows() -> None:
    """Report whether everything works, and what it would have refused in last week's sessions."""
    for problem in client.ask_view("gates.verify", **_caller_context())["problems"]:
        render.warn(render.clean_line(problem, 400))
    answer = client.ask_view("gates.replay", **_caller_context(seconds=parse_duration("7d")))
    if answer["calls"] or answer["stops"]:
        calls, stops = (f"{answer[f'refused_{what}']} of {answer[what]} {what}" for what in ("calls", "stops"))
        render.out.print(
            f"In the last 7 days it would have refused {calls} and {stops}: holdfast gate replay --since 7d"
        )
    render.hint("See: holdfast gate status · try it on the past: holdfast gate replay")


def _asked_preset(presets: dict[str, Any]) -> str:
    """Ask a person, or read the answer from a pipe; a script without input is not blocked."""
    for name, rules in presets.items():
        render.out.print(f"  {name:<8} {', '.join(rules) or 'nothing: no tests or branches to protect were found'}")
    if sys.stdin.isatty():
        return str(typer.prompt("Which preset", default="fitting"))
    # An agent's shell may leave a pipe open that nobody writes to.
    ready, _, _ = select.select([sys.stdin], [], [], 0.2)
    return (sys.stdin.readline().strip() if ready else "") or "fitting"


def _choose_requirements(presets: dict[str, Any], preset: str, more: list[str]) -> dict[str, Any]:
    if not preset and not more:
        preset = _asked_preset(presets["presets"])
    if preset and preset not in presets["presets"]:
        raise CommandRefused(f"there is no preset {preset!r}", fix=f"There are: {', '.join(presets['presets'])}.")
    if unknown := [name for name in more if name not in presets["built_in"]]:
        raise CommandRefused(
            f"there is no built-in {unknown[0]!r}", fix=f"There are: {', '.join(presets['built_in'])}."
        )
    return {**(presets["presets"][preset] if preset else {}), **{name: {"enabled": True} for name in more}}


def _parse_metadata(text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        return msgspec.json.decode(text, type=dict)
    except msgspec.DecodeError as error:
        raise CommandRefused(f"--metadata is not a JSON object: {error}") from None
