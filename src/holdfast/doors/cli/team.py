"""`holdfast team …`: this machine in a team, what it shares, and what the team shares with it."""

import socket
import time
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
import typer

from holdfast import client
from holdfast.core.errors import CommandRefused
from holdfast.core.machine import use_state_folder
from holdfast.core.times import time_ago
from holdfast.doors.cli import render
from holdfast.doors.cli.options import Json
from holdfast.doors.cli.team_acts import (
    ask_as_person,
    budget_app,
    handoff,
    lease_app,
    memory_app,
    rule_app,
    show_lines,
    show_list,
    team_connection,
)
from holdfast.paths import Paths
from holdfast_team.core import Upstream
from holdfast_team.identity import identify_project
from holdfast_team.membership import (
    COPIED,
    REVOKED,
    ForwarderStatus,
    Membership,
    TeamConnection,
    TeamFiles,
    TeamRefused,
    TeamUnreachable,
    check_server,
    check_url,
    need_membership,
    rotate_token,
)
from holdfast_team.protocol import (
    LEVELS,
    CodeIssued,
    Enrolled,
    EnrolRequest,
    Level,
    SharedEvent,
)
from holdfast_team.sent import SentLog, describe_level, list_words
from holdfast_team.sharing import level_named, share_event

app = typer.Typer(help="Share who works on what, leases, rules and cost with a team.", no_args_is_help=True)
app.command()(handoff)
app.add_typer(rule_app, name="rule")
app.add_typer(budget_app, name="budget")
app.add_typer(memory_app, name="memory")
app.add_typer(lease_app, name="lease")
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
SHOWN_EVENTS = 3


# ── joining and leaving ──────────────────────────────────────────────────────────────────────────────────────────────


@app.command()
def join(
    url: Annotated[str, typer.Argument(help="The team's server: https://HOST")],
    code: Annotated[str, typer.Option("--code", help="The one-time code that an admin gave you.")] = "",
    sign_on: Annotated[
        str, typer.Option("--sign-on", help="The team's name: sign on in the browser and get a code there.")
    ] = "",
    level: Annotated[str, typer.Option("--level", help=f"What you share: {', '.join(LEVELS)}.")] = "facts",
    history: Annotated[bool, typer.Option("--history", help="Also send existing events.")] = False,
    certificate: Annotated[str, typer.Option("--certificate", help="A PEM file with the server's own authority.")] = "",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Join this machine to a team. Shows what would leave it, and asks first."""
    paths, address = client.state_paths(), check_url(url)
    files = TeamFiles(paths)
    # A copied state folder joins again under an id of its own; a revoked machine, with a new code.
    state = files.status().state
    copied = state == COPIED
    if files.membership() and state not in (COPIED, REVOKED):
        raise CommandRefused("this machine is in a team already", fix="Leave it first: holdfast team leave")
    chosen = _parse_level(level)
    client.start_daemon()
    # Asked of the daemon before anything is shown or sent: an agent may not join a team.
    client.authorise("team", "joining a team")
    if not json:
        _show_what_leaves(paths, chosen)
    if not yes and not typer.confirm(f"Share this with {address}?"):
        raise typer.Abort
    # Nothing is sent to the server before this point.
    if copied:
        files.take_new_id()
    joined = _enrol_machine(paths, address, code or _sign_on(address, sign_on), chosen, history, certificate)
    client.run_command(
        "team.join", url=address, tenant=joined.tenant, person=joined.person, role=joined.role, level=joined.level
    )
    client.ask_daemon("team_forward")
    render.finish_as_json(
        json, {"tenant": joined.tenant, "person": joined.person, "role": joined.role, "level": chosen}
    )
    render.out.print(f"You are {joined.person} ({joined.role}) in {joined.tenant}. Next: holdfast team board")


def _sign_on(address: str, tenant: str) -> str:
    """The code that the person reads in the browser after signing on."""
    if not tenant:
        raise CommandRefused("no code was given", fix="Give --code CODE, or --sign-on TEAM to sign on in the browser.")
    print(f"Open this in a browser and sign on: {address}/sign-on/{quote(tenant, '')}?for=join")
    answer: str = typer.prompt("The code it shows", hide_input=True)
    return answer.strip()


def _parse_level(text: str) -> Level:
    chosen_level = level_named(text)
    if chosen_level is None:
        raise CommandRefused(f"there is no level {text[:40]!r}", fix=f"Levels: {', '.join(LEVELS)}.")
    return chosen_level


def _show_what_leaves(paths: Paths, level: Level) -> None:
    print(f"Level {level} shares {describe_level(level)}.")
    latest = _latest_shared(paths, level)
    example = "For example, of your latest events:" if latest else "None of your latest events would leave."
    print(f"Only sessions in git repositories with a remote address are shared. {example}")
    for event in latest:
        render.print_text(f"{msgspec.json.encode(event).decode()}\n")


def _latest_shared(paths: Paths, level: Level) -> list[SharedEvent]:
    from holdfast.core.ports import EventQuery
    from holdfast.stores.sqlite_reader import SqliteReader

    reader = SqliteReader(paths.database)
    try:
        recent = reader.events(EventQuery(newest=True, limit=300))
    finally:
        reader.close()
    events: list[SharedEvent] = []
    for event in sorted(recent, key=lambda one: -one.seq):
        identity = identify_project(event.project) if event.project else None
        shared = share_event(event, level, identity.shared.id, event.project) if identity and identity.shared else None
        events += [shared] if shared else []
        if len(events) >= SHOWN_EVENTS:
            break
    return events


def _enrol_machine(paths: Paths, url: str, code: str, level: Level, history: bool, certificate: str) -> Membership:
    use_state_folder(paths.state)
    files = TeamFiles(paths)
    before, machine = files.upstream(), files.machine_id()
    # Without --history the stream begins at the present end of the log; for a copied machine, where it stopped.
    head = 0 if history else int(client.ask_daemon("status")["counts"]["events"])
    head = min(before.cursor, head) if before else head
    request = EnrolRequest(code=code, machine=machine, label=socket.gethostname()[:100], cursor=head)
    connection = TeamConnection(url, certificate=certificate)
    check_server(connection)
    enrolled = connection.request("POST", "/v1/enrol", Enrolled, request)
    files.remove_all()
    # Before the membership: with that file the daemon starts the forwarder, which reads this one.
    files.save_upstream(Upstream(stream=enrolled.stream, cursor=enrolled.cursor, feed=enrolled.feed))
    joined = Membership(
        url=url, token=enrolled.token, tenant=enrolled.tenant, person=enrolled.person, role=enrolled.role, machine=machine,
        level=level, certificate=certificate, joined_at=time.time_ns() // 1_000_000,
    )  # fmt: skip
    files.save_membership(joined)
    return joined


@app.command()
def leave(yes: Yes = False) -> None:
    """Leave the team: nothing more is sent, and its rules no longer apply. What was sent stays there."""
    membership = need_membership(client.state_paths())
    client.authorise("team", "leaving a team")
    if not yes and not typer.confirm(f"Leave {membership.tenant}?"):
        raise typer.Abort
    try:
        if TeamFiles(client.state_paths()).status().state == COPIED:
            notice = "The machine that has the same token stays in it."
        else:
            team_connection().request("POST", "/v1/leave", dict[str, int])
            notice = "The server no longer knows this machine's token."
    except (TeamUnreachable, TeamRefused) as error:
        notice = f"The server could not be informed: {error.message}"
    # Left here even if the server could not be informed.
    client.run_command("team.leave")
    TeamFiles(client.state_paths()).remove_all()
    client.ask_daemon("team_forward")
    render.out.print(f"You left {membership.tenant}. {notice}")


@app.command()
def rotate() -> None:
    """Replace this machine's token now (done weekly by itself); the old one ends when the new one is used."""
    rotate_token(client.state_paths(), time.time_ns() // 1_000_000)
    render.out.print("The token was replaced.")


@app.command()
def level(
    name: Annotated[str, typer.Argument(help=f"{', '.join(LEVELS)}, or none.")],
    project: Annotated[str, typer.Option("--project", help="Only for this folder. Default: for all projects.")] = "",
) -> None:
    """Share more or less from now on; what was sent stays as it is."""
    client.authorise("team", "changing what is shared")
    files, folder = TeamFiles(client.state_paths()), ""
    # The forwarder may be replacing the token right now.
    with files.locked("membership.lock"):
        membership = need_membership(client.state_paths())
        if project:
            # The whole repository, from any folder or worktree of it.
            folder = identify_project(str(Path(project).resolve())).home or str(Path(project).resolve())
            chosen = name if name == "none" else _parse_level(name)
            changed = msgspec.structs.replace(membership, levels={**membership.levels, folder: chosen})
        else:
            changed = msgspec.structs.replace(membership, level=_parse_level(name))
        files.save_membership(changed)
    shares = "nothing" if name == "none" else describe_level(_parse_level(name))
    print(f"{folder or 'Every project'}: {name}, from now on it shares {shares}.")
    print(STAYS)


STAYS = (
    "What left before stays on the server: `holdfast team sent` shows it, `holdfast data erase` removes it there too."
)


# ── what goes and comes ──────────────────────────────────────────────────────────────────────────────────────────────


@app.command()
def status(json: Json = False) -> None:
    """Show whether this machine is in a team, what it shares, and the progress of forwarding."""
    files = TeamFiles(client.state_paths())
    membership, how = files.membership(), files.status()
    if membership is None:
        show_lines(
            {"joined": False}, json, ["This machine is in no team. Join one: holdfast team join URL --code CODE"]
        )
        return
    local = client.ask_view("team.status")
    payload = {
        "joined": True, "url": membership.url, "tenant": membership.tenant, "person": membership.person,
        "role": membership.role, "level": membership.level, "levels": membership.levels,
        "forwarding": msgspec.to_builtins(how), "rules": local.get("rules", {}), "leases": local["leases"],
        "projects": local["projects"],
    }  # fmt: skip
    lines = [
        f"{membership.person} ({membership.role}) in {membership.tenant}, {membership.url}",
        *([] if how.state == "viewing" else [f"Shares at level {membership.level}: {describe_level(membership.level)}"]),
        *(f"Shares of {folder}: {level}" for folder, level in sorted(membership.levels.items())),
        _forwarding_line(how),
        *([f"Skipped {how.skipped} events that the server would not take."] if how.skipped else []),
        *(f"Not shared: {folder}: {why}" for folder, why in how.not_shared.items()),
        *(_rule_line(name, rule) for name, rule in local.get("rules", {}).items()),
    ]  # fmt: skip
    show_lines(payload, json, lines)


def _forwarding_line(how: ForwarderStatus) -> str:
    if how.state == "viewing":
        return "Forwarding: nothing, a viewer looks and shares nothing"
    if how.state == COPIED:
        return f"Forwarding: stopped, {how.error}. Ask an admin for a code, and on one of the two: holdfast team join URL --code CODE"
    error = f" ({how.error})" if how.error else ""
    waiting = max(0, how.head - how.cursor)
    return f"Forwarding: {how.state or 'not started'}{error}, {how.sent} events sent, {waiting} not looked at yet"


def _rule_line(name: str, rule: dict[str, Any]) -> str:
    return f"Rule {name}, set by {rule['by']}: {msgspec.json.encode(rule['requirement']).decode()}"


@app.command()
def sent(
    count: Annotated[int, typer.Option("-n", help="How many of the latest events; 0 = all that are kept.")] = 20,
    json: Json = False,
) -> None:
    """Show what left this machine, word for word, newest last."""
    files = TeamFiles(client.state_paths())
    events = [event for batch in SentLog(files).batches() for event in batch.events]
    words = list_words(files)
    some, said = (events[-count:], words[-count:]) if count else (events, words)
    counts = {"kept": len(events), "words_kept": len(words)}
    render.finish_as_json(json, {"events": msgspec.to_builtins(some), "words": msgspec.to_builtins(said), **counts})
    left: list[Any] = [*some, *({"at": one.at, "path": one.path, "body": one.body} for one in said)]
    for one in left:
        render.print_text(f"{msgspec.json.encode(one).decode()}\n")
    render.err.print(
        f"{len(some)} of {len(events)} events, and {len(said)} of {len(words)} hand-overs, memories and leases,"
        " that left and are still on record."
    )


@app.command()
def board(
    open_: Annotated[bool, typer.Option("--open", help="As a page in the browser.")] = False, json: Json = False
) -> None:
    """Show everybody's sessions: who waits, who works on which files, what overlaps."""
    if open_:
        path = team_connection().request("POST", "/v1/link", dict[str, str])["path"]
        print(f"{need_membership(client.state_paths()).url}{path}")
        render.err.print("Open that in a browser within a minute; it works once.")
        return
    answer = team_connection().request("GET", "/v1/board", dict[str, Any])
    lines = [_session_line(one, answer["now"]) for one in answer["sessions"]] or ["No session is running."]
    lines += [f"Overlap: {one['path']} ({one['remote']}): {_writer_names(one)}" for one in answer["overlaps"]]
    lines += [
        f"Lease {one['name']}: {one['person']}, token {one['token']}, {', '.join(one['paths'])}"
        for one in answer["leases"]
    ]
    show_lines(answer, json, lines)


def _session_line(one: dict[str, Any], now: int) -> str:
    files = ", ".join(one["files"][:3]) + (" …" if len(one["files"]) > 3 else "")
    where = f"{one['remote'] or 'no project'} {one['branch']}"
    return f"{one['person']:<12} {one['state'] or 'unknown':<8} {where}  {one['agent']}  {files}  {time_ago(one['seen_at'], now)}"


def _writer_names(overlap: dict[str, Any]) -> str:
    return "; ".join(f"{one['person']} on {one['branch'] or 'no branch'}" for one in overlap["sessions"])


@app.command()
def cost(json: Json = False) -> None:
    """Show tokens by week, person, project and model, priced with this machine's price list."""
    from holdfast_team.cost import price_rows

    rows = price_rows(team_connection().request("GET", "/v1/cost", list[dict[str, Any]]))
    lines = [
        f"{one.week}  {one.person:<12} {one.remote or one.project[:8]:<30} {one.model:<24} {one.tokens:>12,} tokens  "
        f"{'price unknown' if one.usd is None else f'${one.usd:.2f}'}"
        for one in rows
    ]
    show_lines({"rows": [msgspec.to_builtins(one) for one in rows]}, json, lines or ["Nothing was spent yet."])


# ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.command()
def people(json: Json = False) -> None:
    """List the members and their machines."""
    show_list(json, "people", "/v1/people", _person_line)


def _person_line(one: dict[str, Any]) -> str:
    return f"{one['person']:<16} {one['role']:<8} {', '.join(map(_machine_label, one['machines']))}"


def _machine_label(one: dict[str, Any]) -> str:
    """With its id, which `team revoke --machine` takes."""
    seen = "revoked" if one["revoked_at"] else f"seen {time_ago(one['seen_at'], time.time_ns() // 1_000_000)}"
    return f"{one['label'] or 'no name'} {one['machine']} ({seen})"


@app.command()
def invite(
    person: str,
    role: Annotated[str, typer.Option("--role", help="viewer, member, lead or admin.")] = "member",
    json: Json = False,
) -> None:
    """Create a one-time code with which a person joins (admins)."""
    issued = ask_as_person("inviting somebody", "POST", "/v1/codes", CodeIssued, {"person": person, "role": role})
    show_lines(msgspec.to_builtins(issued), json, [issued.code])
    if not json:
        url = need_membership(client.state_paths()).url
        render.err.print(f"{person} runs, within a day: holdfast team join {url} --code CODE")


@app.command()
def revoke(
    person: Annotated[str, typer.Option("--person", help="All machines of this person.")] = "",
    machine: Annotated[str, typer.Option("--machine", help="The id of one machine.")] = "",
) -> None:
    """Lock a person's machines out at once (admins)."""
    answer = ask_as_person(
        "revoking a machine", "POST", "/v1/revoke", dict[str, int], {"person": person, "machine": machine}
    )
    render.out.print(f"Revoked: {render.counted(answer['revoked'], 'machine')}.")


@app.command()
def audit(json: Json = False) -> None:
    """Show every administrative act (admins)."""
    show_list(json, "audit", "/v1/audit", _act_line)


def _act_line(one: dict[str, Any]) -> str:
    when = render.day_and_clock(one["at"])
    return f"{when}  {one['by_person']:<12} {one['act']:<18} {_about_text(one['about'])}"


def _about_text(about: dict[str, Any]) -> str:
    """Empty values are omitted."""
    return msgspec.json.encode({name: value for name, value in about.items() if value not in ("", 0, [])}).decode()
