"""`holdfast doctor`: lists what is wrong, each with the command that fixes it."""

from typing import Annotated

import msgspec
import typer
from rich.text import Text

from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json
from holdfast.doors.cli.up import show_agents, up
from holdfast.setup.doctor.checks import run_checks
from holdfast.setup.doctor.finding import Finding
from holdfast.setup.doctor.readiness import Readiness, look_at_agents


def register(app: typer.Typer) -> None:
    app.command()(up)
    app.command()(doctor)


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Repair what is safe to repair.")] = False,
    self_test: Annotated[bool, typer.Option("--self-test", help="Run each agent's installed hook line once.")] = False,
    json: Json = False,
) -> None:
    """Check for every known problem. Exits 1 if something needs you."""
    all_findings = run_checks()
    repaired = [_repair_finding(finding) for finding in all_findings if fix and finding.safely]
    left = [f for f in all_findings if not (fix and f.safely)]
    agents = look_at_agents(self_test=self_test)
    code = 1 if left else 0
    findings = [{"problem": f.problem, "fix": f.fix} for f in left]
    agent_rows = [{**msgspec.to_builtins(one), "ready": one.ready} for one in agents]
    render.finish_as_json(json, {"findings": findings, "mended": repaired, "agents": agent_rows}, code)
    _show_findings(left, repaired, agents)
    raise typer.Exit(code)


def _show_findings(left: list[Finding], repaired: list[str], agents: list[Readiness]) -> None:
    show_agents(agents)
    for line in repaired:
        render.say(f"repaired  {line}", "green")
    # A step shown with its agent is not repeated here.
    shown = {step.text for one in agents for step in one.steps if not step.done}
    for finding in (one for one in left if one.problem not in shown):
        render.out.print(Text(f"!  {finding.problem}", style="yellow") + Text(f"   → {finding.fix}", style="cyan"))
    if not left:
        render.out.print("No problems found." if agents else "No problems found. No coding agent was found either.")


def _repair_finding(finding: Finding) -> str:
    if finding.safely:
        finding.safely()
    return finding.problem
