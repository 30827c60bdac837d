"""The team server on a real PostgreSQL."""

import re
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool
from starlette.testclient import TestClient

from holdfast.core.times import now_ms
from holdfast_team.protocol import MOST_BYTES, ROLES
from holdfast_team.server import acts, limits
from holdfast_team.server.app import ADDRESSES, TeamServer
from holdfast_team.server.connection import team_schema
from holdfast_team.server.database import (
    ROLE,
    TENANT_TABLES,
    owner_connection,
    remove_old_events,
)
from holdfast_team.server.run import set_quota
from holdfast_team.server.tenancy import hash_secret
from tests.kit import wait_until
from tests.team.conftest import PROJECT, Joined, an_event

NewTeam = Callable[[], Joined]


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def stored(url: str, machine: Joined) -> list[int]:
    with owner_connection(url) as db:
        rows = db.execute("select seq from events where machine = %s order by stream, seq", (machine.machine,))
        return [row["seq"] for row in rows]


def test_a_batch_is_stored_once_however_often_it_comes(team_url: str, ann: Joined) -> None:
    first = ann.send(0, 9, an_event(2), an_event(9), projects=(PROJECT,))
    assert (first["cursor"], first["taken"]) == (9, 2)
    assert ann.send(0, 9, an_event(2), an_event(9))["known"] == 2
    assert ann.send(4, 12, an_event(9), an_event(12))["taken"] == 1
    assert stored(team_url, ann) == [2, 9, 12]
    assert ann.ask("GET", "/v1/cursor")["cursor"] == 12


def test_a_gap_is_refused_with_the_cursor(team_url: str, ann: Joined) -> None:
    assert ann.send(7, 9, an_event(8), status=409) == {"stream": 1, "cursor": 0, "gap": True}
    assert stored(team_url, ann) == []


def test_numbers_that_cannot_be_are_refused(ann: Joined) -> None:
    assert "not in its place" in ann.send(0, 9, an_event(4), an_event(3), status=422)["error"]


def test_a_machine_that_joins_in_the_middle_begins_there(new_team: NewTeam) -> None:
    ann = new_team()
    code = ann.ask("POST", "/v1/codes", json={"person": "ben"})["code"]
    ben = Joined(ann.client, code, cursor=500)
    assert ben.send(500, 510, an_event(505))["taken"] == 1


def test_what_is_hostile_in_a_batch_does_not_stop_it(team_url: str, ann: Joined) -> None:
    """NUL in text, a year-wrong clock, huge numbers in data."""
    strange = an_event(1, text="a\x00b", n=1 << 60, branch="x" * 5000)
    late = msgspec.structs.replace(an_event(2, kind="model.answered", tokens={"input": 3}), at=1 << 50)
    assert ann.send(0, 2, strange, late, sent_at=1)["taken"] == 2
    [ann_row] = ann.ask("GET", "/v1/people")
    assert ann_row["machines"][0]["skew_ms"] < -1_000_000


@pytest.mark.parametrize("body", [b"", b"{}", zlib.compress(b"{}"), zlib.compress(b"[" * 100_000), b"\x78\x9c\xff\xff"])
def test_a_batch_that_is_none_is_refused(ann: Joined, body: bytes) -> None:
    answer = ann.client.post("/v1/batch", content=body, headers=ann.headers)
    assert answer.status_code in (400, 413), answer.text


def test_a_bomb_is_not_inflated(ann: Joined) -> None:
    bomb = zlib.compress(bytes(MOST_BYTES + 1), 1)
    assert ann.client.post("/v1/batch", content=bomb, headers=ann.headers).status_code == 413


def test_what_a_machine_and_a_tenant_may_send_holds_over_all_processes(
    team_url: str, ann: Joined, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second server on the same database knows what the first one gave."""
    monkeypatch.setattr(acts, "MACHINE_EVENTS_PER_S", 0.2)
    with TestClient(TeamServer(team_url, connections=2).build_app(), base_url="http://other.test") as other:
        ann.send(0, 2, an_event(1), an_event(2))
        first, ann.client = ann.client, other
        assert "too much at once" in ann.send(2, 3, an_event(3), status=429)["error"]
        ann.send(0, 2, an_event(1), an_event(2))
        monkeypatch.setattr(acts, "MACHINE_EVENTS_PER_S", 1000.0)
        ben = ann.invite("ben")
        set_quota(team_url, ann.enrolled["tenant"], 3)
        ben.send(0, 1, an_event(1))
        ann.client = first
        assert "of today are used up" in ann.send(2, 3, an_event(3), status=429)["error"]
        set_quota(team_url, ann.enrolled["tenant"], 0)
        assert ann.send(2, 3, an_event(3))["cursor"] == 3


def test_a_flood_is_slowed_down(ann: Joined, monkeypatch) -> None:
    flooding = ann.invite("mallory")
    monkeypatch.setattr(limits, "REQUESTS_PER_S", 0.01)
    assert "too much at once" in flooding.ask("GET", "/v1/cursor", status=429)["error"]


# ── enrolment ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_code_works_once_and_secrets_are_stored_as_hashes(team_url: str, ann: Joined) -> None:
    code = ann.ask("POST", "/v1/codes", json={"person": "ben"})["code"]
    ben = Joined(ann.client, code)
    again = ann.client.post("/v1/enrol", json={"code": code, "machine": "another-machine"})
    assert again.status_code == 401 and again.json()["error"].startswith("this code is unknown, used or expired")
    with owner_connection(team_url) as db:
        tables = [row["name"] for row in db.execute(TENANT_TABLES, (team_schema(team_url),))]
        everything = " ".join(str(db.execute(f"select t::text from {name} t").fetchall()) for name in tables)
    assert code not in everything and ben.enrolled["token"] not in everything


def test_a_revoked_machine_is_out_at_once(ann: Joined) -> None:
    ben = ann.invite("ben")
    ben.send(0, 1, an_event(1))
    ann.ask("POST", "/v1/revoke", json={"machine": ben.machine})
    assert ben.send(1, 2, an_event(2), status=401)["error"]
    assert [row["act"] for row in ann.ask("GET", "/v1/audit")][0] == "machine.revoked"


def test_a_rotated_token_replaces_the_old_one_when_it_is_first_used(ann: Joined) -> None:
    """Neither a lost answer nor a machine that asks twice is locked out."""
    old, given = ann.headers, ann.ask("POST", "/v1/rotate")["token"]
    ann.ask("POST", "/v1/rotate", json={"token_hash": "no hash"}, status=422)
    assert ann.ask("POST", "/v1/rotate", json={"token_hash": hash_secret("made here").hex()}) == {}
    ann.headers = {"authorization": f"Bearer {given}"}
    ann.ask("GET", "/v1/cursor", status=401)
    ann.headers = {"authorization": "Bearer made here"}
    ann.ask("GET", "/v1/cursor")
    ann.headers = old
    ann.ask("GET", "/v1/cursor", status=401)


def test_a_revoked_machine_that_waits_for_news_hears_of_it_and_a_revoked_person_stays_out(ann: Joined) -> None:
    ben = ann.invite("ben")
    link = ben.ask("POST", "/v1/link")["path"]
    ben.client.get(link, follow_redirects=False)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ben.ask, "GET", f"/v1/feed?after={ben.enrolled.get('feed', 0)}&wait=20")
        # Revoked before it waits, it would be refused instead of told.
        wait_until(lambda: "holdfast_team_feeds_waiting 1" in ben.client.get("/metrics").text, "ben waits for news")
        ann.ask("POST", "/v1/revoke", json={"person": "ben"})
        assert [item["kind"] for item in waiting.result(10)["items"]] == ["revoked"]
    ben.ask("POST", "/v1/rotate", status=401)
    assert ben.client.get("/board").status_code == 401
    ben.client.cookies.clear()
    ann.invite("ben").ask("GET", "/v1/cursor")


def test_a_machine_of_a_protocol_that_is_too_old_is_told_so(client: TestClient) -> None:
    answer = client.post("/v1/enrol", json={"code": "x", "machine": "machine-x", "version": 0})
    assert (answer.status_code, answer.json()["fix"]) == (426, "Update Holdfast on this machine.")


# ── tenants and roles, for every route there is ──────────────────────────────────────────────────────────────────────

BODIES = {
    "/v1/lease": {"act": "acquire", "project": PROJECT.id, "name": "deploy"},
    "/v1/memory": {"id": "m1", "project": PROJECT.id, "text": "words"},
    "/v1/handover": {"project": PROJECT.id, "to": "ben", "text": "go on"},
    "/v1/forget": {"sessions": ["s1"], "projects": [PROJECT.id]},
    "/v1/revoke": {"person": "ben"},
    "/v1/rules": {"name": "reviewed", "requirement": {"enabled": True, "scope": "session"}},
    "/v1/codes": {"person": "zoe"},
    "/v1/budgets": {"name": "reviewed", "person": "ben", "tokens": 5},
    "/v1/batch": {"stream": 1, "after": 0, "upto": 9, "projects": [PROJECT], "events": [an_event(1)]},
}
"""A body for every route that reads one: without it such a route would be refused for its body, and nothing be tested."""
PUBLIC = {"/health", "/ready", "/metrics", "/login", "/sign-on/callback", "/sign-on/{tenant}", "/v1/enrol"}
MEMBERS = [a for a in ADDRESSES if a.access != "public"]


def filled_in(path: str) -> str:
    return path.replace("{id}", "m1").replace("{name}", "reviewed")


@pytest.mark.parametrize("address", MEMBERS, ids=lambda a: f"{a.method} {a.path}")
def test_every_route_refuses_whoever_is_not_known(client: TestClient, address) -> None:
    for headers in ({}, {"authorization": "Bearer hft_wrong"}, {"cookie": "holdfast_team=wrong"}):
        answer = client.request(address.method, filled_in(address.path), headers=headers)
        assert answer.status_code == 401, answer.text


def test_a_route_is_open_to_everybody_only_on_purpose() -> None:
    """Only those are left out of the tests below."""
    assert {address.path for address in ADDRESSES if address.access == "public"} == PUBLIC


@pytest.fixture(scope="module")
def furnished(team_url: str, client: TestClient) -> tuple[Joined, str]:
    """A tenant that has one of everything, each with a word that must never be seen outside of it."""
    from holdfast_team.server.run import add_tenant

    owner = Joined(client, add_tenant(team_url, "furnished", "secretive-ann").code)
    owner.invite("secretive-ben")
    edit = an_event(1, action="edit", paths=["secretive.py"], branch="secretive", title="secretive")
    owner.send(
        0, 2, edit, an_event(2, kind="model.answered", tokens={"input": 5}, model="secretive"), projects=(PROJECT,)
    )
    owner.ask("POST", "/v1/lease", json={**BODIES["/v1/lease"], "why": "secretive"})
    owner.ask("POST", "/v1/memory", json={**BODIES["/v1/memory"], "text": "secretive"})
    owner.ask("POST", "/v1/rules", json={**BODIES["/v1/rules"], "requirement": {"message": "secretive"}})
    owner.ask("POST", "/v1/budgets", json={"name": "reviewed", "person": "secretive-ben", "usd": 5})
    owner.ask("POST", "/v1/handover", json={"project": PROJECT.id, "to": "secretive-ben", "text": "secretive"})
    return owner, everything_of(team_url, "furnished")


def everything_of(url: str, tenant: str) -> str:
    with owner_connection(url) as db:
        tables = sorted(row["name"] for row in db.execute(TENANT_TABLES, (team_schema(url),)))
        return str(
            [
                (n, db.execute(f"select t::text from {n} t where tenant = %s order by 1", (tenant,)).fetchall())
                for n in tables
            ]
        )


@pytest.mark.parametrize("address", MEMBERS, ids=lambda a: f"{a.method} {a.path}")
def test_every_route_with_a_foreign_tenant_shows_and_changes_nothing(
    team_url: str, new_team: NewTeam, furnished: tuple[Joined, str], address
) -> None:
    """Made from the table of routes: a new one is tested without anybody thinking of it."""
    stranger, before = new_team(), furnished[1]
    link = stranger.ask("POST", "/v1/link")["path"]
    stranger.client.get(link, follow_redirects=False)
    body = msgspec.json.encode({**BODIES.get(address.path, {}), "machine": furnished[0].machine})
    content = {"/v1/batch": zlib.compress(body)}.get(address.path, body) if address.method == "POST" else b""
    answer = stranger.client.request(address.method, filled_in(address.path), content=content, headers=stranger.headers)
    stranger.client.cookies.clear()
    assert "secretive" not in answer.text and answer.status_code < 500
    assert answer.status_code not in (400, 401, 403, 422), f"{address.path} needs a body in BODIES: {answer.text}"
    assert everything_of(team_url, "furnished") == before


@pytest.mark.parametrize("address", [a for a in MEMBERS if a.access in ROLES[1:]], ids=lambda a: f"{a.method} {a.path}")
def test_every_route_refuses_a_role_below_its_own(ann: Joined, address) -> None:
    below = ann.invite("low", ROLES[ROLES.index(address.access) - 1])
    answer = below.client.request(address.method, filled_in(address.path), headers=below.headers)
    assert (answer.status_code, "needs the role" in answer.text) == (403, True)


def test_every_table_with_a_tenant_is_protected_and_a_query_without_one_finds_nothing(team_url: str, furnished) -> None:
    with psycopg.connect(team_url, autocommit=True) as db:
        db.execute(f"set search_path to {team_schema(team_url)}")
        tables = db.execute(TENANT_TABLES, (team_schema(team_url),)).fetchall()
        assert len(tables) > 12 and all(protected for _, protected in tables)
        db.execute(f"set role {ROLE}")
        for name, _ in tables:
            assert db.execute(f"select count(*) from {name}").fetchone() == (0,), name
            with db.transaction():
                db.execute("select set_config('holdfast.tenant', 'nobody', true)")
                assert db.execute(f"select count(*) from {name} where tenant = 'furnished'").fetchone() == (0,), name
        for forbidden in ("select * from events_other", "update audit set act = 'x'", "select * from migrations"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(forbidden)
        with pytest.raises(psycopg.errors.InsufficientPrivilege), db.transaction():
            db.execute("select set_config('holdfast.tenant', 'nobody', true)")
            db.execute("insert into rules values ('furnished', 'n', '{}', 'mallory', 0)")


# ── what a team gets ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_board_shows_who_works_where_and_what_overlaps(ann: Joined) -> None:
    ben = ann.invite("ben")
    for who, session in ((ann, "sa"), (ben, "sb")):
        edit = an_event(1, session=session, action="edit", paths=["src/api.py"], branch=f"{session}-branch")
        who.send(0, 2, edit, an_event(2, kind="permission.requested", session=session), projects=(PROJECT,))
    ben.send(2, 3, an_event(3, kind="session.started", session="over"))
    ben.send(3, 4, an_event(4, kind="session.ended", session="over"))
    board = ann.ask("GET", "/v1/board")
    assert {(s["person"], s["session"], s["state"]) for s in board["sessions"]} == {
        ("ann", "sa", "waiting"),
        ("ben", "sb", "waiting"),
    }
    [overlap] = board["overlaps"]
    assert (overlap["path"], [s["person"] for s in overlap["sessions"]]) == ("src/api.py", ["ann", "ben"])


def test_the_board_as_a_page_needs_a_link_that_works_once(ann: Joined) -> None:
    ann.send(0, 1, an_event(1, action="edit", paths=["<script>x"], branch="main"), projects=(PROJECT,))
    link = ann.ask("POST", "/v1/link")["path"]
    answer = ann.client.get(link, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/board")
    page = ann.client.get("/board")
    ann.client.cookies.clear()
    assert "ann" in page.text and "&lt;script&gt;x" in page.text and "<script" not in page.text
    assert ann.client.get(link, follow_redirects=False).status_code == 401
    ann.client.cookies.clear()


def test_machines_of_one_name_are_told_apart_on_the_page(ann: Joined) -> None:
    """All virtual machines of a host may be called the same."""
    for machine, label in (("aaaaaaaa-a", "vm"), ("bbbbbbbb-b", "vm"), ("cccccccc-c", "laptop")):
        code = ann.ask("POST", "/v1/codes", json={"person": "ben"})["code"]
        Joined(ann.client, code, machine, label=label).send(0, 1, an_event(1, session=machine))
    ann.client.get(ann.ask("POST", "/v1/link")["path"], follow_redirects=False)
    page = ann.client.get("/board").text
    ann.client.cookies.clear()
    assert sorted(re.findall(r'data-label="Machine">([^<]*)<', page)) == ["laptop", "vm aaaaaaaa", "vm bbbbbbbb"]


def test_a_lease_is_held_by_one_and_the_others_are_told(ann: Joined) -> None:
    ben = ann.invite("ben")
    want = {"act": "acquire", "project": PROJECT.id, "name": "deploy", "session": "s", "paths": ["deploy/**"]}
    mine = ann.ask("POST", "/v1/lease", json=want)
    assert (mine["granted"], mine["token"]) == (True, 1)
    theirs = ben.ask("POST", "/v1/lease", json=want)
    assert (theirs.get("granted"), theirs["person"]) == (False, "ann")
    [item] = ben.ask("GET", "/v1/feed?after=0")["items"]
    assert (item["kind"], item["payload"]["paths"], item["by"]) == ("lease", ["deploy/**"], "ann")
    ann.ask("POST", "/v1/lease", json={**want, "act": "release", "token": 1})
    assert ben.ask("POST", "/v1/lease", json=want)["token"] == 2


def test_a_memory_is_told_only_after_a_lead_promoted_it(ann: Joined) -> None:
    ben = ann.invite("ben")
    ben.ask("POST", "/v1/memory", json=BODIES["/v1/memory"])
    assert ann.ask("GET", "/v1/feed?after=0").get("items", []) == []
    ben.ask("POST", "/v1/memory/m1/promote", status=403)
    ann.ask("POST", "/v1/memory/m1/promote")
    [item] = ben.ask("GET", "/v1/feed?after=0")["items"]
    assert (item["kind"], item["payload"]["words_of"], item["by"]) == ("memory", "ben", "ann")
    ann.ask("POST", "/v1/memory/m1/promote", status=404)


def test_a_hand_over_reaches_its_person_only(ann: Joined) -> None:
    ben, zoe = ann.invite("ben"), ann.invite("zoe")
    ann.ask("POST", "/v1/handover", json=BODIES["/v1/handover"])
    assert [i["payload"]["text"] for i in ben.ask("GET", "/v1/feed?after=0")["items"]] == ["go on"]
    page = zoe.ask("GET", "/v1/feed?after=0")
    assert (page.get("items", []), page["upto"]) == ([], 1)
    ann.ask("POST", "/v1/handover", json={**BODIES["/v1/handover"], "to": "nobody"}, status=404)


def test_rules_are_checked_where_they_are_set(ann: Joined) -> None:
    ann.ask("POST", "/v1/rules", json={"name": "bad", "requirement": {"scope": "sometimes"}}, status=422)
    ann.ask("POST", "/v1/rules", json=BODIES["/v1/rules"])
    ann.ask("DELETE", "/v1/rules/reviewed")
    assert [i["kind"] for i in ann.ask("GET", "/v1/feed?after=0")["items"]] == ["rule", "rule_withdrawn"]


def test_cost_adds_up_by_person_project_model_and_week(ann: Joined) -> None:
    answers = [an_event(n, kind="model.answered", tokens={"input": 10, "output": 1}, model="m") for n in (1, 2)]
    ann.send(0, 2, *answers, projects=(PROJECT,))
    ann.send(0, 2, *answers, projects=(PROJECT,))
    rows = ann.ask("GET", "/v1/cost")
    assert {(r["person"], r["model"], r["kind"], r["tokens"], r["week"]) for r in rows} == {
        ("ann", "m", "input", 20, "2023-11-13"), ("ann", "m", "output", 2, "2023-11-13"),
    }  # fmt: skip


def test_a_budget_tells_its_people_at_80_and_at_100_percent_once_a_week(ann: Joined) -> None:
    ben, zoe, now = ann.invite("ben"), ann.invite("zoe"), now_ms()
    for bad in (
        {"name": "b"},
        {"name": "b", "tokens": 1, "usd": 1},
        {"name": "b", "usd": -1},
        {"name": "", "tokens": 1},
    ):
        ann.ask("POST", "/v1/budgets", json=bad, status=422)
    ann.ask("POST", "/v1/budgets", json={"name": "ben's", "person": "ben", "project": PROJECT.id, "tokens": 1000})
    ann.ask("POST", "/v1/budgets", json={"name": "priced", "model": "claude-opus-4-1", "usd": 1000})

    def spend(who: Joined, seq: int, tokens: int, model: str = "unknown") -> None:
        event = an_event(seq, kind="model.answered", tokens={"input": tokens}, model=model)
        who.send(seq - 1, seq, msgspec.structs.replace(event, at=now), projects=(PROJECT,))

    spend(zoe, 1, 5000)
    spend(ben, 1, 700)
    spend(ben, 2, 150, "claude-opus-4-1")
    spend(ben, 3, 10)
    spend(ben, 4, 200)
    told = [(i["payload"]["name"], i["payload"]["percent"]) for i in ben.ask("GET", "/v1/feed?after=0")["items"]]
    assert told == [("ben's", 80), ("ben's", 100)]
    assert zoe.ask("GET", "/v1/feed?after=0").get("items", []) == []
    first, second = ann.ask("GET", "/v1/budgets")
    assert (first["name"], first["used_tokens"], first["percent"]) == ("ben's", 1060, 106)
    assert (second["name"], second["percent"], second["unpriced"]) == ("priced", 0, []) and second["used_usd"] > 0
    ann.ask("DELETE", "/v1/budgets/priced")
    ann.ask("DELETE", "/v1/budgets/priced", status=404)


def test_what_is_forgotten_is_gone_with_a_receipt(team_url: str, ann: Joined) -> None:
    ben = ann.invite("ben")
    for who in (ann, ben):
        who.send(0, 3, an_event(1), an_event(2, session="other"), an_event(3, session="third"), projects=(PROJECT,))
    receipt = ann.ask("POST", "/v1/forget", json={"sessions": ["s1"], "numbers": [3]})
    assert receipt["events"] == 2 and receipt["id"]
    assert (stored(team_url, ann), stored(team_url, ben)) == ([2], [1, 2, 3])


SURVIVE_ERASURE = {"receipts", "audit"}
"""Tables that say how much was erased, and who asked."""


@pytest.mark.parametrize("request_", [{"sessions": ["canary-1"]}, {"numbers": [1, 2]}, {"everything": True}])
def test_an_erasure_reaches_every_table_there_is(team_url: str, ann: Joined, request_: dict[str, Any]) -> None:
    """Read from the schema, so that a new table cannot be forgotten."""
    edited = an_event(1, session="canary-1", paths=["canary.py"], action="edit", ok=True)
    summed = an_event(2, "session.summarised", session="canary-1", title="canary title", files=["canary.py"])
    ann.send(
        0, 3, edited, msgspec.structs.replace(summed, level="summaries"), an_event(3, session="s3"), projects=(PROJECT,)
    )
    assert {"events", "sessions", "edited_files"} <= tables_with("canary", team_url)
    assert ann.ask("POST", "/v1/forget", json=request_)["rows"] >= 2
    assert tables_with("canary", team_url) - SURVIVE_ERASURE == set()


def tables_with(word: str, team_url: str) -> set[str]:
    with owner_connection(team_url) as db:
        tables = [row["name"] for row in db.execute(TENANT_TABLES, (team_schema(team_url),))]
        asked = {name: f"select 1 from {name} t where t::text like %s" for name in tables}
        return {name for name, query in asked.items() if db.execute(query, (f"%{word}%",)).fetchone()}


def test_a_revoked_machine_joins_again_with_a_new_code(ann: Joined) -> None:
    ben = ann.invite("ben")
    ben.send(0, 1, an_event(1))
    ann.ask("POST", "/v1/revoke", json={"machine": ben.machine})
    code = ann.ask("POST", "/v1/codes", json={"person": "ben"})["code"]
    again = Joined(ben.client, code, ben.machine)
    again.send(1, 2, an_event(2))


# ── operations ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_health_readiness_and_metrics(client: TestClient, ann: Joined) -> None:
    ann.send(0, 1, an_event(1))
    assert client.get("/health").json()["ok"] and client.get("/ready").status_code == 200
    assert 'holdfast_team_requests_total{path="/v1/batch",status="200"}' in client.get("/metrics").text


def test_who_asks_whether_it_is_ready_does_not_learn_where_its_database_is(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: AsyncConnectionPool, timeout: float) -> None:
        raise psycopg.OperationalError('connection to server at "db.internal", user "holdfast_app" failed')

    monkeypatch.setattr(AsyncConnectionPool, "connection", fail)
    answer = client.get("/ready")
    assert answer.status_code == 503
    assert "db.internal" not in answer.text and "holdfast_app" not in answer.text


def test_what_is_too_old_for_its_level_goes_and_the_rest_stays(team_url: str, ann: Joined) -> None:
    ann.send(0, 2, an_event(1), msgspec.structs.replace(an_event(2), level="full"))
    with owner_connection(team_url) as db:
        db.execute(
            "update events set received_at = received_at - 40::bigint * 86400000 where machine = %s", (ann.machine,)
        )
    assert remove_old_events(team_url, {"full": 30, "facts": 365}) == 1
    assert stored(team_url, ann) == [1]


def test_migrating_again_changes_nothing_and_months_have_their_partitions(team_url: str) -> None:
    from holdfast_team.server.database import migrate_database

    assert migrate_database(team_url) == migrate_database(team_url)
    with owner_connection(team_url) as db:
        found = db.execute("select count(*) as n from pg_inherits where inhparent = 'events'::regclass").fetchone()
    assert found and found["n"] >= 4
