"""A machine that means ill, or is broken, against the team server: it harms nobody but itself, and is never stuck for ever."""

import tracemalloc
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from holdfast.core.errors import HoldfastError
from holdfast.core.times import now_ms
from holdfast_team.membership import TeamConnection, check_server
from holdfast_team.protocol import ReceivedBatch, SharedProject
from holdfast_team.server import app
from holdfast_team.server.database import owner_connection
from tests.team.conftest import PROJECT, Joined, an_event
from tests.team.server.test_app import stored

NewTeam = Callable[[], Joined]
YEAR_MS = 365 * 86_400_000


def rows(url: str, query: str, *values: object) -> list[dict[str, object]]:
    with owner_connection(url) as db:
        return db.execute(query, values).fetchall()


def test_a_machine_that_lies_about_its_sequence_moves_its_own_cursor_only(team_url: str, ann: Joined) -> None:
    ben = ann.invite("ben")
    ann.send(0, 5, an_event(3))
    ben.send(0, 1 << 61, an_event(7))
    assert ben.send(9, 20, an_event(12))["known"] == 1
    for after, upto, numbers in ((5, 4, ()), (-1, 4, (2,)), (0, 1 << 62, ()), (0, 9, (3, 3)), (0, 9, (10,))):
        assert ben.send(after, upto, *map(an_event, numbers), status=422)["error"]
    assert ann.send(5, 6, an_event(6))["cursor"] == 6
    assert (stored(team_url, ann), stored(team_url, ben)) == ([3, 6], [7])


def test_a_stream_that_is_over_does_not_come_back(team_url: str, ann: Joined) -> None:
    """Replays of what was recorded before a restore."""
    ann.send(0, 9, an_event(4), an_event(9))
    ann.send(5, 7, an_event(6), stream=2, restores=((2, 5),))
    assert "stream 1 is over" in ann.send(0, 9, an_event(4), an_event(9), status=422)["error"]
    assert ann.send(0, 7, an_event(4), an_event(6), stream=2)["known"] == 2
    assert stored(team_url, ann) == [4, 9, 6]


def test_a_batch_that_is_recorded_and_sent_by_another_machine_counts_for_that_one(team_url: str, ann: Joined) -> None:
    ben = ann.invite("ben")
    ann.send(0, 3, an_event(2), projects=(PROJECT,))
    ben.send(0, 3, an_event(2), projects=(PROJECT,))
    assert {(one["person"], one["machine"]) for one in ann.ask("GET", "/v1/board")["sessions"]} == {
        ("ann", ann.machine), ("ben", ben.machine),
    }  # fmt: skip
    assert (stored(team_url, ann), stored(team_url, ben)) == ([2], [2])


def test_a_clock_that_is_wrong_by_a_year_decides_nothing(team_url: str, ann: Joined) -> None:
    """Partitions, retention, the board and the weeks of cost go by the server's time, unless news is late."""
    now = now_ms()
    spent = msgspec.structs.replace(
        an_event(1, kind="model.answered", tokens={"input": 3}, model="m"), at=now + YEAR_MS
    )
    late = msgspec.structs.replace(an_event(2, kind="session.started"), at=now - YEAR_MS)
    ann.send(0, 2, spent, late, sent_at=now + YEAR_MS, projects=(PROJECT,))
    received = rows(team_url, "select received_at from events where machine = %s", ann.machine)
    assert all(abs(int(str(row["received_at"])) - now) < 600_000 for row in received)
    [session] = ann.ask("GET", "/v1/board")["sessions"]
    assert (session["state"], abs(session["seen_at"] - now) < 600_000) == ("working", True)
    [cost] = ann.ask("GET", "/v1/cost")
    assert cost["week"] <= str(rows(team_url, "select now()::date::text as day")[0]["day"])
    [person] = ann.ask("GET", "/v1/people")
    assert person["machines"][0]["skew_ms"] == pytest.approx(YEAR_MS, abs=600_000)


def test_a_machine_that_is_revoked_in_the_middle_of_a_batch_leaves_nothing(
    team_url: str, ann: Joined, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its token was looked up and before its events are stored."""
    ben = ann.invite("ben")

    def revoke_meanwhile(body: bytes, most: int) -> bytes:
        rows(team_url, "update machines set revoked_at = 1 where machine = %s returning 1", ben.machine)
        return inflate(body, most)

    inflate = app.inflate_body
    monkeypatch.setattr(app, "inflate_body", revoke_meanwhile)
    assert "was revoked" in ben.send(0, 2, an_event(1), status=401)["error"]
    assert stored(team_url, ben) == []


LONG = "".join(f"{n * 7919:x}" for n in range(4000))
"""Longer than an index of PostgreSQL takes, and it cannot be compressed much."""


def test_a_path_that_no_index_takes_is_kept_in_its_event_and_a_session_name_is_refused_for_good(
    team_url: str, ann: Joined
) -> None:
    """Refused as bad, not as a server that is down: the machine leaves that event out instead of trying for ever."""
    assert ann.send(0, 1, an_event(1, action="edit", paths=[LONG, "a.py"]), projects=(PROJECT,))["taken"] == 1
    [session] = ann.ask("GET", "/v1/board")["sessions"]
    assert session["files"] == ["a.py"]
    ann.send(1, 2, an_event(2, session=LONG), status=400)
    ann.ask("POST", "/v1/lease", json={"act": "acquire", "project": LONG, "name": "n"}, status=400)
    ann.ask("POST", "/v1/memory", json={"id": LONG, "project": "p", "text": "x"}, status=400)
    assert stored(team_url, ann) == [1]


@pytest.mark.parametrize("depth", [900, 20_000])
def test_what_is_nested_too_deep_is_refused_for_good_or_kept(ann: Joined, depth: int) -> None:
    event = msgspec.json.encode(an_event(1, deep=0)).replace(b'"deep":0', b'"deep":' + b"[" * depth + b"]" * depth)
    batch = b'{"stream":1,"after":0,"upto":1,"events":[' + event + b"]}"
    answer = ann.client.post("/v1/batch", content=zlib.compress(batch), headers=ann.headers)
    assert answer.status_code in (200, 400), answer.text


def test_a_level_that_nobody_knows_does_not_keep_an_event_for_ever(team_url: str, ann: Joined) -> None:
    strange = msgspec.structs.replace(an_event(1), level="eternal")
    ann.send(0, 2, strange, msgspec.structs.replace(an_event(2), level="full"), level="presence")
    found = rows(team_url, "select level from events where machine = %s order by seq", ann.machine)
    assert [row["level"] for row in found] == ["presence", "full"]


def test_a_machine_or_server_of_another_version_is_understood(team_url: str, ann: Joined) -> None:
    """Fields that this version does not know are ignored, on both sides."""
    newer = {
        "stream": 1,
        "after": 0,
        "upto": 2,
        "mood": "new",
        "events": [{**msgspec.to_builtins(an_event(1)), "mood": 1}],
    }
    answer = ann.client.post("/v1/batch", content=zlib.compress(msgspec.json.encode(newer)), headers=ann.headers)
    assert answer.json()["taken"] == 1
    asked = ann.ask("POST", "/v1/lease", json={"act": "acquire", "project": "p", "name": "n", "mood": "new"})
    assert asked["granted"]


def test_a_machine_that_became_too_old_is_told_so_and_keeps_its_events(ann: Joined) -> None:
    ann.headers["holdfast-version"] = "0"
    assert ann.send(0, 1, an_event(1), status=426)["fix"] == "Update Holdfast on this machine."
    ann.headers["holdfast-version"] = "7"
    assert ann.send(0, 1, an_event(1))["taken"] == 1


@pytest.mark.parametrize(
    ("answer", "said"), [({"ok": True, "version": 0}, "speaks version 0"), ({"hello": 1}, "Is it a team server")]
)
def test_a_machine_shows_its_code_to_no_server_that_it_cannot_speak_with(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, object], said: str
) -> None:
    monkeypatch.setattr(TeamConnection, "send", lambda *_: (200, msgspec.json.encode(answer)))
    with pytest.raises(HoldfastError) as refused:
        check_server(TeamConnection("http://localhost"))
    assert said in refused.value.message


def test_a_machine_that_was_away_hears_of_a_lease_with_what_is_left_of_it(team_url: str, ann: Joined) -> None:
    """Else the lease of somebody who is long gone would hold for its whole time once more."""
    ben = ann.invite("ben")
    ann.ask("POST", "/v1/lease", json={"act": "acquire", "project": "p", "name": "n", "ttl_s": 300, "paths": ["**"]})
    [fresh] = ben.ask("GET", "/v1/feed?after=0")["items"]
    assert 200_000 < fresh["payload"]["left_ms"] <= 300_000
    tenant = ann.enrolled["tenant"]
    rows(team_url, "update feed set at = at - 3600000 where tenant = %s returning 1", tenant)
    [stale] = ben.ask("GET", "/v1/feed?after=0")["items"]
    assert stale["payload"]["left_ms"] == 0


def test_nobody_has_forgotten_what_another_machine_said(team_url: str, ann: Joined) -> None:
    """Ids of words are known to whoever hears them."""
    ben = ann.invite("ben")
    ann.ask("POST", "/v1/lease", json={"act": "acquire", "project": "p", "name": "n", "why": "mine", "words": "w1"})
    ann.ask("POST", "/v1/memory", json={"id": "m1", "project": "p", "text": "words of ann"})
    ann.ask("POST", "/v1/memory/m1/promote")
    ann.ask("POST", "/v1/handover", json={"project": "p", "to": "ben", "text": "go on", "words": "w2"})
    names = {"words": ["w1", "w2", "m1", f"{ann.machine}/w1"], "everything": True, "projects": ["p"]}
    assert ben.ask("POST", "/v1/forget", json=names)["words"] == 0
    assert [one["why"] for one in ann.ask("GET", "/v1/board")["leases"]] == ["mine"]
    assert [one["text"] for one in ann.ask("GET", "/v1/memories")] == ["words of ann"]
    receipt = ann.ask("POST", "/v1/forget", json={"everything": True})
    assert receipt["words"] == 5, "a lease, a memory, and three items of the feed"
    kinds = [(item["kind"], item["payload"]) for item in ben.ask("GET", "/v1/feed?after=0")["items"]]
    assert kinds == [("withdrawn", {"numbers": [1, 2, 3]}), ("withdrawn", {"memories": ["m1"]})]
    again = ben.ask("POST", "/v1/lease", json={"act": "acquire", "project": "p", "name": "n"})
    assert (again["granted"], again["token"]) == (True, 2), "a token never comes back"


def test_nobody_joins_as_the_machine_of_somebody_else_unless_it_left(ann: Joined) -> None:
    """The ids of machines are no secret within a team."""
    ben, code = ann.invite("ben"), ann.ask("POST", "/v1/codes", json={"person": "mallory"})["code"]
    taken = ann.client.post("/v1/enrol", json={"code": code, "machine": ben.machine})
    assert taken.status_code == 401 and "another member" in taken.json()["error"]
    ben.ask("GET", "/v1/cursor")
    ben.ask("POST", "/v1/leave")
    assert Joined(ann.client, code, ben.machine).enrolled["person"] == "mallory"


def test_a_code_from_before_does_not_let_a_revoked_person_in_again(ann: Joined) -> None:
    ann.invite("ben")
    code = ann.ask("POST", "/v1/codes", json={"person": "ben"})["code"]
    ann.ask("POST", "/v1/revoke", json={"person": "ben"})
    assert ann.client.post("/v1/enrol", json={"code": code, "machine": "another-machine"}).status_code == 401


def test_what_happened_while_a_machine_was_in_no_team_is_not_asked_for_when_it_joins_again(ann: Joined) -> None:
    ben = ann.invite("ben")
    ben.send(0, 9, an_event(4))
    ben.ask("POST", "/v1/leave")
    again = Joined(ann.client, ann.ask("POST", "/v1/codes", json={"person": "ben"})["code"], ben.machine, cursor=50)
    assert again.enrolled["cursor"] == 50 and again.send(50, 60, an_event(55))["taken"] == 1
    again.ask("POST", "/v1/leave")
    wants_all = Joined(ann.client, ann.ask("POST", "/v1/codes", json={"person": "ben"})["code"], ben.machine, cursor=0)
    assert wants_all.enrolled["cursor"] == 60


def test_what_a_machine_says_in_few_bytes_does_not_become_many_objects() -> None:
    """32 MB of `{}`, 32 KB on their way, took 900 MB of a server."""
    event = msgspec.json.encode(an_event(1, x=0)).replace(b'"x":0', b'"x":[' + b"{}," * 300_000 + b"0]")
    batch = b'{"stream":1,"after":0,"upto":1,"events":[' + event + b"]}"
    tracemalloc.start()
    try:
        msgspec.json.decode(batch, type=ReceivedBatch)
        assert tracemalloc.get_traced_memory()[1] < len(batch)
    finally:
        tracemalloc.stop()


def test_data_of_a_size_that_nobody_looks_into_is_stored_and_stops_nothing(team_url: str, ann: Joined) -> None:
    large = an_event(1, action="edit", paths=["large.py"], text="x" * (1 << 20))
    assert ann.send(0, 2, large, an_event(2, action="edit", paths=["small.py"]), projects=(PROJECT,))["taken"] == 2
    [session] = ann.ask("GET", "/v1/board")["sessions"]
    assert session["files"] == ["small.py"]
    [row] = rows(team_url, "select length(data->>'text') as n from events where machine = %s and seq = 1", ann.machine)
    assert row["n"] == 1 << 20


@pytest.mark.parametrize(
    "data", [b"[1]", b'"text"', b'{"branch": {"a": [1]}, "paths": 7, "tokens": [], "title": null}']
)
def test_data_of_another_shape_is_refused_for_good_or_stored(ann: Joined, data: bytes) -> None:
    event = msgspec.json.encode(an_event(1, kind="model.answered", x=0)).replace(b'{"x":0}', data)
    batch = b'{"stream":1,"after":0,"upto":1,"events":[' + event + b"]}"
    answer = ann.client.post("/v1/batch", content=zlib.compress(batch), headers=ann.headers)
    assert answer.status_code == (200 if data.startswith(b"{") else 400), answer.text


@pytest.mark.parametrize("text", [b"a\\u0000b", b"a\\\\u0000b", b"\\ud800", b"\\udc00\\ud800"])
def test_what_postgresql_cannot_keep_is_replaced_or_refused_for_good(ann: Joined, text: bytes) -> None:
    """NUL and halves of surrogate pairs, in a field and in the name of a file."""
    event = msgspec.json.encode(an_event(1, action="edit", paths=["XX", "b.py"], text="XX")).replace(b"XX", text)
    batch = b'{"stream":1,"after":0,"upto":1,"events":[' + event + b"]}"
    answer = ann.client.post("/v1/batch", content=zlib.compress(batch), headers=ann.headers)
    assert answer.status_code == (400 if b"ud800" in text else 200), answer.text
    # It goes on in either case: an empty batch moves the cursor past what was left out.
    assert ann.send(0 if answer.status_code == 400 else 1, 2)["cursor"] == 2


def test_nobody_names_a_project_that_is_not_theirs_to_name(ann: Joined) -> None:
    """An id is made of the address and the first commit: with another address it is not believed."""
    mallory = ann.invite("mallory")
    lie = SharedProject(id=PROJECT.id, remote="evil.example/other", root=PROJECT.root)
    huge = SharedProject(id="h" * 32, remote="h" * 100_000, root="h")
    mallory.send(0, 1, an_event(1), projects=(lie, huge))
    assert [one["remote"] for one in ann.ask("GET", "/v1/board")["sessions"]] == [None]
    ann.send(0, 1, an_event(1), projects=(PROJECT,))
    assert {one["remote"] for one in ann.ask("GET", "/v1/board")["sessions"]} == {PROJECT.remote}


def test_a_code_that_many_machines_use_at_once_lets_one_in(ann: Joined) -> None:
    code = ann.ask("POST", "/v1/codes", json={"person": "ben"})["code"]

    def enrol(number: int) -> int:
        return ann.client.post("/v1/enrol", json={"code": code, "machine": f"racing-{number:04}"}).status_code

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(enrol, range(6))) == [200, *[401] * 5]
    assert [row["act"] for row in ann.ask("GET", "/v1/audit")][:2] == ["machine.enrolled", "code.issued"]


def test_who_was_made_a_viewer_sends_no_more_and_can_still_have_forgotten_what_was_sent(
    team_url: str, ann: Joined
) -> None:
    ben = ann.invite("ben")
    ben.send(0, 1, an_event(1))
    ann.invite("ben", "viewer")
    ben.send(1, 2, an_event(2), status=403)
    ben.ask("POST", "/v1/lease", json={"act": "acquire", "project": "p", "name": "n"}, status=403)
    assert ben.ask("POST", "/v1/forget", json={"everything": True})["events"] == 1
    assert stored(team_url, ben) == []


def test_an_older_token_neither_renews_nor_gives_back_what_somebody_holds_now(team_url: str, ann: Joined) -> None:
    """A machine that slept through the end of its lease."""
    ben = ann.invite("ben")
    want = {"act": "acquire", "project": "p", "name": "n", "session": "s", "ttl_s": 5}
    old = ann.ask("POST", "/v1/lease", json=want)["token"]
    rows(
        team_url,
        "update leases set lease = jsonb_set(lease, '{until}', '1') where tenant = %s returning 1",
        ann.enrolled["tenant"],
    )
    new = ben.ask("POST", "/v1/lease", json=want)["token"]
    assert new > old
    for act in ("renew", "release"):
        answer = ann.ask("POST", "/v1/lease", json={**want, "act": act, "token": old})
        assert (answer.get("granted"), answer["why"]) == (False, "lost")
        # Nor with the token of the new one: it is another machine's.
        assert ann.ask("POST", "/v1/lease", json={**want, "act": act, "token": new})["granted"] is False
    [lease] = ann.ask("GET", "/v1/board")["leases"]
    assert (lease["person"], lease["token"]) == ("ben", new)


def test_every_administrative_act_is_in_the_audit_log(ann: Joined) -> None:
    ben = ann.invite("ben")
    ben.ask("POST", "/v1/memory", json={"id": "m", "project": "p", "text": "words"})
    ann.ask("POST", "/v1/memory/m/promote")
    ann.ask("POST", "/v1/rules", json={"name": "r", "requirement": {"enabled": True}})
    ann.ask("DELETE", "/v1/rules/r")
    ann.ask("POST", "/v1/budgets", json={"name": "b", "tokens": 5})
    ann.ask("DELETE", "/v1/budgets/b")
    ben.ask("POST", "/v1/rotate")
    ben.ask("POST", "/v1/forget", json={"everything": True})
    ann.ask("POST", "/v1/revoke", json={"person": "ben"})
    assert [(row["by_person"], row["act"]) for row in reversed(ann.ask("GET", "/v1/audit"))] == [
        ("operator", "code.issued"), ("ann", "machine.enrolled"), ("ann", "code.issued"), ("ben", "machine.enrolled"),
        ("ann", "memory.promoted"), ("ann", "rule.set"), ("ann", "rule.withdrawn"), ("ann", "budget.set"),
        ("ann", "budget.removed"), ("ben", "token.rotated"), ("ben", "forgotten"), ("ann", "machine.revoked"),
    ]  # fmt: skip


def test_figures_name_no_tenant_person_machine_or_address_that_somebody_made_up(ann: Joined) -> None:
    ann.send(0, 1, an_event(1, branch="secret-branch"), projects=(PROJECT,))
    ann.client.get("/v1/made-up-by-a-stranger")
    ann.client.get('/sign-on/made"up')
    text = ann.client.get("/metrics").text
    for name in (ann.enrolled["tenant"], ann.machine, "secret-branch", PROJECT.remote, "made"):
        assert name not in text


def test_a_callback_with_strange_letters_is_refused_and_no_mistake_of_the_server(ann: Joined) -> None:
    answer = ann.client.get(
        "/sign-on/callback?state=acme.%C3%A9&code=x", headers={"cookie": "holdfast_sign_on=\u00e9".encode("latin-1")}
    )
    assert answer.status_code == 401, answer.text
