"""The team server's routes."""

# Each declares who may use it, and the guard checks before any handler runs.

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
import psycopg
import psycopg_pool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from holdfast.core.times import now_ms
from holdfast.stores import hide_password
from holdfast_team import protocol
from holdfast_team.protocol import MOST_BYTES, MOST_COMPRESSED, OLDEST_VERSION, VERSION, Role, role_allows
from holdfast_team.server import acts, forgetting, pages, reports, spending, tenancy
from holdfast_team.server.bodies import (
    as_response,
    inflate_body,
    need_version,
    problem_response,
    read_body,
    read_message,
)
from holdfast_team.server.database import LOST, TOO_LARGE, TeamDatabase
from holdfast_team.server.limits import Limits, Metrics, log_line
from holdfast_team.server.sign_on import SignOn, issue_own_code, open_page
from holdfast_team.server.tenancy import Act, Member, Refused, hash_secret, new_secret

# Seconds that a feed request is held open, whatever the machine asks for.
LONGEST_WAIT_S = 25.0
SLOW_S = 1.0
# In ms: twelve hours for a browser, one minute until a link must be opened.
COOKIE, COOKIE_MS, LINK_MS = "holdfast_team", 12 * 3_600_000, 60_000
SIGN_ON_COOKIE = "holdfast_sign_on"
Access = Literal["public", "page"] | Role


class TeamRequest(NamedTuple):
    """A request of a member, after the guard."""

    request: Request
    who: Member
    team: "TeamServer"

    @contextlib.asynccontextmanager
    async def act(self) -> AsyncIterator[Act]:
        async with self.team.database.transaction(self.who.tenant) as tx:
            yield Act(tx, self.team.database.channel, self.who, now_ms())


Handler = Callable[[TeamRequest], Awaitable[Any]]


def acting(act: Callable[..., Awaitable[Any]], asked: Any = None) -> Handler:
    """Handle a request by one act. `asked`: the message in its body, or the name of a part of its path."""

    async def handle(ask: TeamRequest) -> Any:
        if asked is None:
            given: tuple[Any, ...] = ()
        elif isinstance(asked, str):
            given = (str(ask.request.path_params[asked]),)
        else:
            given = (await read_message(ask.request, asked),)
        async with ask.act() as it:
            return await act(it, *given)

    return handle


class Address(NamedTuple):
    method: str
    path: str
    access: Access
    handler: Callable[..., Awaitable[Any]]


class TeamServer:
    """One process. It keeps nothing that another process would need."""

    def __init__(self, url: str, connections: int = 8, public_url: str = "", oidc_secret: str = "") -> None:
        self.database = TeamDatabase(url, connections)
        self.limits, self.metrics = Limits(), Metrics()
        self.sign_on, self.public_url = SignOn(self.database, oidc_secret), public_url.rstrip("/")

    def build_app(self) -> Starlette:
        routes = [Route(one.path, self._guarded(one), methods=[one.method]) for one in ADDRESSES]
        return Starlette(routes=routes, lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        await self.database.open()
        try:
            yield
        finally:
            await self.database.close()

    def _guarded(self, address: Address) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            began = time.perf_counter()
            try:
                response = await self._answer(address, request)
            except Refused as refused:
                response = problem_response(request, refused.status, refused.error, refused.fix)
            except (msgspec.DecodeError, psycopg.DataError, UnicodeError, RecursionError, *TOO_LARGE) as error:
                said = str(error).splitlines()[0][:200]
                response = problem_response(request, 400, f"the request cannot be read: {said}")
            except (*LOST, psycopg_pool.PoolTimeout) as error:
                response = problem_response(
                    request, 503, "the database does not answer", "Try again; nothing was lost."
                )
                log_line("database.lost", path=address.path, error=hide_password(str(error))[:300])
            except Exception as error:
                response = problem_response(request, 500, "the server made a mistake; its log says which")
                log_line("request.failed", path=address.path, error=f"{type(error).__name__}: {error}"[:300])
            took = time.perf_counter() - began
            self.metrics.count_request(address.path, response.status_code)
            # A feed request is meant to wait.
            if response.status_code >= 400 or (took > SLOW_S and address.path != "/v1/feed"):
                log_line("request", path=address.path, status=response.status_code, ms=round(took * 1000))
            return response

        return answer

    async def _answer(self, address: Address, request: Request) -> Response:
        if address.access == "public":
            return as_response(await address.handler(self, request))
        who = await self._member(request, page=address.access == "page")
        needed: Role = "viewer" if address.access == "page" else address.access
        if not role_allows(who.role, needed):
            raise Refused(403, f"this needs the role {needed}; you are {who.role}", "Ask an admin of your team.")
        need_version(request)
        # After the token check: a stranger cannot use up a machine's share.
        self.limits.take_request(who)
        return as_response(await address.handler(TeamRequest(request, who, self)))

    def address_of(self, request: Request) -> str:
        """Where browsers reach this server: as configured, or else as this request was made."""
        return self.public_url or f"{request.url.scheme}://{request.url.netloc}"

    async def _member(self, request: Request, page: bool) -> Member:
        rows: list[dict[str, Any]] = []
        word, _, token = request.headers.get("authorization", "").partition(" ")
        # Pages accept the cookie only, the API the token only: another site's page cannot act with a browser's cookie.
        if page and (cookie := request.cookies.get(COOKIE)):
            rows = await self.database.call_function("find_cookie", hash_secret(cookie), now_ms())
        elif not page and word.lower() == "bearer" and token:
            rows = await self.database.call_function("find_token", hash_secret(token))
        if not rows and page:
            raise Refused(
                401, "you are not signed in here, or no longer", "For a new link run: holdfast team board --open"
            )
        if not rows:
            raise Refused(401, "this machine is not known here, or was revoked", "Join again: holdfast team join")
        return Member(**rows[0])


# ── machines ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def post_enrolment(team: TeamServer, request: Request) -> protocol.Enrolled:
    team.limits.take_enrolment(request.client.host if request.client else "")
    enrol_request = await read_message(request, protocol.EnrolRequest)
    need_version(request, enrol_request.version)
    if not 8 <= len(enrol_request.machine) <= 64 or not 0 <= enrol_request.cursor < protocol.LARGEST_NUMBER:
        raise Refused(422, "a machine has an id of 8 to 64 characters")
    token = new_secret("hft")
    rows = await team.database.call_function(
        "use_code", hash_secret(enrol_request.code), enrol_request.machine, enrol_request.label[:100], hash_secret(token),
        enrol_request.cursor, now_ms(),
    )  # fmt: skip
    if not rows:
        what = "this code is unknown, used or expired, or this machine belongs to another member"
        raise Refused(
            401, what, "Ask for a new code. On a machine that changes hands its person leaves the team first."
        )
    return protocol.Enrolled(token=token, **rows[0])


async def post_batch(ask: TeamRequest) -> Response:
    body = await read_body(ask.request, MOST_COMPRESSED)
    batch = msgspec.json.decode(inflate_body(body, MOST_BYTES), type=protocol.ReceivedBatch)
    ask.team.limits.take_events(ask.who, len(batch.events))
    with ask.team.metrics.timing("batch"):
        async with ask.act() as act:
            answer, taken = await acts.store_batch(act, batch)
    ask.team.metrics.add("events_taken", taken)
    ask.team.metrics.add("events_known", answer.known)
    if answer.copied:
        log_line("machine.copied", tenant=ask.who.tenant, machine=ask.who.machine)
    status = 409 if answer.gap or answer.copied else 200
    return Response(msgspec.json.encode(answer), status, media_type="application/json")


async def get_cursor(ask: TeamRequest) -> protocol.BatchAnswer:
    async with ask.act() as act:
        row = await act.one(acts.READ_MACHINE)
    if row is None:
        raise Refused(401, "this machine is not known here")
    return protocol.BatchAnswer(stream=row["stream"], cursor=row["cursor"], feed=row["feed_head"])


async def get_feed(ask: TeamRequest) -> protocol.FeedPage:
    """Waits for news up to `wait` seconds."""
    after = number_of(ask.request, "after")
    wait = min(number_of(ask.request, "wait"), LONGEST_WAIT_S)
    # Subscribed before the first look, so that no item in between is missed.
    with ask.team.database.subscribe(ask.who.tenant) as news:
        page = await _feed_page(ask, after)
        if not page.items and wait:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), wait)
            page = await _feed_page(ask, after)
    return page


async def _feed_page(ask: TeamRequest, after: int) -> protocol.FeedPage:
    async with ask.act() as act:
        return await tenancy.read_feed(act, after)


def number_of(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    # Up to 18 digits fit into PostgreSQL's bigint.
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Refused(422, f"{name} is a number")
    return int(text)


async def post_rotation(ask: TeamRequest) -> protocol.RotateAnswer:
    body = await read_body(ask.request)
    asked = msgspec.json.decode(body, type=protocol.RotateRequest) if body else protocol.RotateRequest()
    async with ask.act() as act:
        return protocol.RotateAnswer(token=await acts.rotate_token(act, asked.token_hash))


async def get_board(ask: TeamRequest) -> dict[str, Any]:
    async with ask.act() as act:
        return await reports.read_board(act)


async def get_audit(ask: TeamRequest) -> Any:
    async with ask.act() as act:
        return await reports.read_audit(act, number_of(ask.request, "before"))


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def post_link(ask: TeamRequest) -> Mapping[str, str]:
    """A key that opens the page once, within a minute, for the person of this machine."""
    secret = new_secret("link")
    async with ask.act() as act:
        await act.execute(
            "insert into browser_sessions (tenant, hash, machine, kind, until)"
            " values (%(tenant)s, %(hash)s, %(machine)s, 'link', %(until)s)",
            hash=hash_secret(secret),
            until=act.now + LINK_MS,
        )
    return {"path": f"/login?link={secret}"}


async def get_login(team: TeamServer, request: Request) -> Response:
    cookie, now = new_secret("page"), now_ms()
    link = hash_secret(request.query_params.get("link", ""))
    rows = await team.database.call_function("use_link", link, hash_secret(cookie), now + COOKIE_MS, now)
    if not (rows and rows[0]["use_link"]):
        raise Refused(401, "this link was used or is too old", "Run: holdfast team board --open")
    response = Response(status_code=303, headers={"location": "/board", **pages.HEADERS})
    _keep_cookie(team, request, response, cookie)
    return response


def _keep_cookie(team: TeamServer, request: Request, response: Response, cookie: str) -> None:
    secure = team.address_of(request).startswith("https:")
    # Only over https if the server has it; a local one may be plain http.
    response.set_cookie(COOKIE, cookie, COOKIE_MS // 1000, httponly=True, samesite="strict", secure=secure)


async def begin_sign_on(team: TeamServer, request: Request) -> Response:
    """`?for=join`: a code for a machine instead of the board."""
    team.limits.take_enrolment(request.client.host if request.client else "")
    purpose: Literal["board", "join"] = "join" if request.query_params.get("for") == "join" else "board"
    back = f"{team.address_of(request)}/sign-on/callback"
    where, kept = await team.sign_on.begin(str(request.path_params["tenant"]), purpose, back, now_ms())
    response = Response(status_code=303, headers={"location": where, **pages.HEADERS})
    # Lax, not strict: the browser comes back from the provider's site.
    secure = back.startswith("https:")
    response.set_cookie(SIGN_ON_COOKIE, kept, 600, "/sign-on", httponly=True, samesite="lax", secure=secure)
    return response


async def finish_sign_on(team: TeamServer, request: Request) -> Response:
    team.limits.take_enrolment(request.client.host if request.client else "")
    asked, address = request.query_params, team.address_of(request)
    if said := asked.get("error"):
        raise Refused(403, f"the provider said: {said[:100]}")
    who, purpose = await team.sign_on.finish(
        asked.get("state", ""), asked.get("code", ""), request.cookies.get(SIGN_ON_COOKIE, ""),
        f"{address}/sign-on/callback", now_ms(),
    )  # fmt: skip
    if purpose == "join":
        issued = await issue_own_code(team.database, who, now_ms())
        page = pages.draw_code(who, issued, address)
    else:
        page = pages.draw_signed_on(who)
    response = Response(page, media_type="text/html", headers=pages.HEADERS)
    if purpose == "board":
        _keep_cookie(team, request, response, await open_page(team.database, who, now_ms()))
    response.delete_cookie(SIGN_ON_COOKIE, "/sign-on")
    return response


async def board_page(ask: TeamRequest) -> Response:
    board = await get_board(ask)
    return Response(pages.draw_board(board, ask.who), media_type="text/html", headers=pages.HEADERS)


# ── operations ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def get_health(_team: TeamServer, _request: Request) -> protocol.Health:
    return protocol.Health(ok=True, version=VERSION, oldest=OLDEST_VERSION)


async def get_readiness(team: TeamServer, request: Request) -> Response:
    reason = await team.database.check()
    return problem_response(request, 503, reason) if reason else as_response({"ok": True})


async def get_metrics(team: TeamServer, _request: Request) -> Response:
    return Response(team.metrics.text(team.database.current_figures()), media_type="text/plain; version=0.0.4")


ADDRESSES = (
    Address("GET", "/health", "public", get_health),
    Address("GET", "/ready", "public", get_readiness),
    Address("GET", "/metrics", "public", get_metrics),
    Address("GET", "/login", "public", get_login),
    Address("GET", "/sign-on/callback", "public", finish_sign_on),
    Address("GET", "/sign-on/{tenant}", "public", begin_sign_on),
    Address("POST", "/v1/enrol", "public", post_enrolment),
    Address("POST", "/v1/batch", "member", post_batch),
    Address("GET", "/v1/cursor", "viewer", get_cursor),
    Address("GET", "/v1/feed", "viewer", get_feed),
    Address("POST", "/v1/lease", "member", acting(acts.change_lease, protocol.LeaseRequest)),
    Address("POST", "/v1/memory", "member", acting(acts.propose_memory, protocol.MemoryProposal)),
    Address("POST", "/v1/memory/{id}/promote", "lead", acting(acts.promote_memory, "id")),
    Address("POST", "/v1/handover", "member", acting(acts.hand_over, protocol.HandoverRequest)),
    Address("POST", "/v1/forget", "viewer", acting(forgetting.erase_shared_data, protocol.ForgetRequest)),
    Address("POST", "/v1/rotate", "viewer", post_rotation),
    Address("POST", "/v1/leave", "viewer", acting(acts.leave_team)),
    Address("POST", "/v1/link", "viewer", post_link),
    Address("GET", "/v1/board", "viewer", get_board),
    Address("GET", "/v1/cost", "viewer", acting(reports.read_cost)),
    Address("GET", "/v1/budgets", "viewer", acting(spending.list_budgets)),
    Address("POST", "/v1/budgets", "lead", acting(spending.set_budget, protocol.BudgetRequest)),
    Address("DELETE", "/v1/budgets/{name}", "lead", acting(spending.remove_budget, "name")),
    Address("GET", "/v1/people", "viewer", acting(reports.list_people)),
    Address("GET", "/v1/rules", "viewer", acting(reports.list_rules)),
    Address("GET", "/v1/memories", "viewer", acting(reports.list_memories)),
    Address("POST", "/v1/rules", "lead", acting(acts.set_rule, protocol.RuleRequest)),
    Address("DELETE", "/v1/rules/{name}", "lead", acting(acts.withdraw_rule, "name")),
    Address("POST", "/v1/codes", "admin", acting(acts.issue_code, protocol.CodeRequest)),
    Address("POST", "/v1/revoke", "admin", acting(acts.revoke_machines, protocol.RevokeRequest)),
    Address("GET", "/v1/audit", "admin", get_audit),
    Address("GET", "/board", "page", board_page),
)
"""Every route and who may use it. `public` handlers get the server and the request, the others a `TeamRequest`."""
