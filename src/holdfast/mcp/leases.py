"""Leases as tools. Who holds one is a process: over stdio the agent that started us, over HTTP it must say which."""

from typing import Any

from holdfast.client import acquire_lease, release_lease
from holdfast.core.errors import CommandRefused
from holdfast.mcp.answer import Answer, date_of
from holdfast.mcp.arguments import AcquireLease, ReleaseLease
from holdfast.mcp.context import CallCancelled, Context


def acquire(args: AcquireLease, context: Context) -> Answer:
    """A cancelled call never keeps the lease: not while it waits, not when it was granted a moment before."""
    pid = _owner_pid(args.pid, context)
    before = _held_by(args.name, pid, context)
    how = {"exactly": bool(args.pid), "shared": args.shared, "ttl": args.ttl_seconds, "why": args.why}
    told = acquire_lease(args.name, pid, args.wait_seconds, pause=_pause(args, context), ask=context.command, **how)
    if told["answer"] == "granted" and not before:
        context.undo = lambda: release_lease(args.name, told["owner"])
    if context.cancelled.is_set():
        raise CallCancelled
    return Answer(_sentence(args.name, told), {**told, "until": date_of(told.get("until"))})


def _pause(args: AcquireLease, context: Context) -> Any:
    waited = 0.0

    def pause(seconds: float) -> None:
        nonlocal waited
        context.wait(seconds)
        before, waited = waited, waited + seconds
        if int(before) != int(waited):
            context.report(round(waited, 1), args.wait_seconds, f"waiting for {args.name}")

    return pause


def _sentence(name: str, told: dict[str, Any]) -> str:
    if told["answer"] == "granted":
        until = date_of(told.get("until"))
        return f"granted: you hold {name} until {until} (token {told['token']}). Give it back with lease_release."
    return f"{told['answer']}: {told.get('why') or 'others hold it'}. Try again later, or give wait_seconds."


def release(args: ReleaseLease, context: Context) -> Answer:
    pid = _owner_pid(args.pid, context)
    told = context.command("project.release", lease=args.name, pid=pid, exactly=bool(args.pid))
    return Answer(f"released: {args.name}", told)


def _held_by(name: str, pid: int, context: Context) -> bool:
    leases = context.view("project.leases")["leases"]
    return any(one["name"] == name and any(holder["pid"] == pid for holder in one["holders"]) for one in leases)


def _owner_pid(named: int, context: Context) -> int:
    if not named and not context.caller.pid:
        raise CommandRefused("say which process holds the lease", fix="Give `pid`, the agent's process id.")
    return named or context.caller.pid
