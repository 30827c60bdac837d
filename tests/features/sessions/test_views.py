"""Lists, one whole, who needs you, the timeline, exports, commands."""

import json
import re

import pytest

from holdfast.core.errors import CommandRefused
from holdfast.features.sessions import export, timeline

from .story import House, Story


def four_states(house: House) -> None:
    for name in ("asks", "works", "done", "fresh", "over"):
        house.hook("session.started", session=name, source="startup")
    for name in ("asks", "works", "done", "over"):
        house.hook("prompt.submitted", session=name, prompt=f"prompt of {name}")
    house.hook("turn.ended", session="done", message="It is done.")
    house.hook("permission.requested", session="asks", tool="Bash", command="git push")
    house.hook("tool.started", session="works", tool="Bash", call="c", command="make")
    house.hook("session.ended", session="over", reason="other")


def test_who_puts_those_that_need_you_first(house: House):
    four_states(house)
    told = house.view("who")
    assert [(r["id"], r["state"], (r["needs"] or {}).get("what")) for r in told["sessions"]] == [
        ("asks", "waiting", "permission"), ("done", "waiting", "stopped"),
        ("works", "working", None), ("fresh", "idle", None),
    ]  # fmt: skip
    assert told["waiting"] == 2
    assert told["sessions"][0]["needs"]["text"] == "Bash: git push"
    assert told["sessions"][2]["doing"] == "Bash: make"


def test_a_turn_long_over_is_idle_but_a_question_is_not(house: House):
    four_states(house)
    house.clock.tick(3_600_000)
    assert {r["id"]: r["state"] for r in house.view("who")["sessions"]} == {
        "asks": "waiting", "done": "idle", "works": "working", "fresh": "idle",
    }  # fmt: skip


def test_the_list_is_of_the_living_or_of_all_and_is_paged(house: House):
    """S4-20: the five latest."""
    four_states(house)
    assert {r["id"] for r in house.view("list")["sessions"]} == {"asks", "works", "done", "fresh"}
    seen, before = [], None
    while True:
        page = house.view("list", all=True, limit=2, before=before)
        seen += [r["id"] for r in page["sessions"]]
        before = page["next"]
        if not before:
            break
    assert seen == ["over", "works", "asks", "done", "fresh"]
    assert house.view("list", all=True, project="/nowhere")["sessions"] == []


# ---- ids people type


def test_the_full_id_goes_before_its_prefixes(house: House):
    for name in ("abc", "abcd-1", "abcd-2", "session_2025_11_aaaaaaa1"):
        house.hook("session.started", session=name, source="startup")
    assert house.view("show", id="abc")["id"] == "abc"
    assert house.view("show", id="abcd-1")["id"] == "abcd-1"
    assert house.view("show", id="session_")["id"] == "session_2025_11_aaaaaaa1"
    assert house.view("show", id="aaaaaaa1")["id"] == "session_2025_11_aaaaaaa1"


def test_what_may_be_several_names_them(house: House):
    for name in ("abcd-1", "abcd-2"):
        house.hook("session.started", session=name, source="startup")
    with pytest.raises(CommandRefused, match=r"abcd-2.*abcd-1.*Give more of the id"):
        house.view("show", id="abc")
    with pytest.raises(CommandRefused, match="no session"):
        house.view("show", id="zzz")


@pytest.mark.parametrize("given", ["%", "_", "'; --", "\N{SNOWMAN}", "x" * 10_000])
def test_hostile_ids_find_nothing(house: House, given: str):
    house.hook("session.started", session="abcd-1", source="startup")
    with pytest.raises(CommandRefused, match="no session"):
        house.view("show", id=given)


def test_without_an_id_it_is_the_session_that_asks_else_the_latest_here(house: House):
    four_states(house)
    assert house.view("show")["id"] == "over"
    assert house.view("show", session="asks")["id"] == "asks"


# ---- the timeline


def many_turns(house: House, turns: int = 12) -> None:
    story = Story().start()
    for n in range(1, turns + 1):
        story.prompt(f"prompt {n}").tool(f"a{n}").tool(f"b{n}", ok=False).stop(f"answer {n}")
    house.take(story)
    house.run("sessions.pending")


def pages(house: House, limit: int, **args) -> list[dict]:
    entries, before = [], 0
    while True:
        page = house.view("timeline", limit=limit, before=before, **args)
        entries = page["entries"] + entries
        before = page["next"]
        if not before:
            return entries


@pytest.mark.parametrize("limit", [1, 3, 7, 500])
def test_every_prompt_and_every_tool_call_is_there_once_under_its_turn(house: House, limit: int):
    many_turns(house)
    entries = pages(house, limit)
    prompts = [(e["turn"], e["text"]) for e in entries if e["kind"] == "prompt.submitted"]
    assert prompts == [(n, f"prompt {n}") for n in range(1, 13)]
    calls = [(e["turn"], e["call"]) for e in entries if e["call"]]
    assert calls == [(n, f"{c}{n}") for n in range(1, 13) for c in "ab"]
    assert [e["turn"] for e in entries if e["kind"] == "turn.ended"] == list(range(1, 13))


def test_a_tool_that_runs_or_never_ended_is_shown_as_such(house: House):
    house.take(Story().start().prompt().tell("tool.started", tool="Bash", call="c1", command="make"))
    (entry,) = [e for e in house.view("timeline")["entries"] if e["call"]]
    assert (entry["kind"], entry["text"]) == ("tool.started", "make")


def test_the_noise_is_left_out(house: House):
    many_turns(house, 2)
    kinds = {e["kind"] for e in house.view("timeline")["entries"]}
    assert kinds.isdisjoint(timeline.HIDDEN_KINDS)


# ---- exports


def test_jsonl_is_the_log(house: House):
    many_turns(house, 2)
    lines = [json.loads(each) for each in house.view("export", format="jsonl")["text"].splitlines()]
    assert lines[0]["type"] == "session"
    in_log = list(house.reader.replay(session="s-1"))
    assert [(each["seq"], each["kind"]) for each in lines[1:]] == [(e.seq, e.kind) for e in in_log]


HOSTILE = "</pre><script>alert(1)</script>\n# not a heading\n```\n<img src=x onerror=alert(1)>"


def test_markdown_and_html_keep_hostile_text_text(house: House):
    story = Story().start().prompt(HOSTILE).tool("c", command=HOSTILE, output=HOSTILE).stop(HOSTILE)
    house.take(story)
    html = house.view("export", format="html")["text"]
    assert "<script" not in html and "<img" not in html and "onerror=alert" in html
    assert not re.search(r"(src|href)\s*=\s*[\"']?http", html)
    assert html.startswith("<!doctype html>") and html.rstrip().endswith("</html>")
    markdown = house.view("export", format="md")["text"]
    assert "\n# not a heading" not in re.sub(r"````text.*?````", "", markdown, flags=re.DOTALL)
    assert "### Turn 1" in markdown


@pytest.mark.parametrize("style", ["md", "html", "jsonl"])
def test_a_long_session_is_exported_in_pieces_without_a_seam(house: House, monkeypatch: pytest.MonkeyPatch, style: str):
    many_turns(house)
    whole = house.view("export", format=style)["text"]
    monkeypatch.setattr(export, "PAGE", 5)
    text, after = "", 0
    while after is not None:
        piece = house.view("export", format=style, after=after)
        text, after = text + piece["text"], piece["next"]
    assert text == whole


def test_a_format_that_is_none_is_named(house: House):
    many_turns(house, 1)
    with pytest.raises(CommandRefused, match="md, jsonl, html"):
        house.view("export", format="pdf")


# ---- commands


def test_close_and_reopen_are_commands(house: House):
    """S4-20: force-close, by command instead of SQL."""
    house.take(Story().start().prompt())
    house.clock.now += 60_000
    assert house.command("close", id="s-1") == {
        "id": "s-1", "changed": True, "status": "completed", "reason": "closed-by-user",
    }  # fmt: skip
    assert house.command("close", id="s-1")["changed"] is False
    assert house.command("reopen", id="s-1")["status"] == "active"
    assert house.command("reopen", id="s-1")["changed"] is False
    assert house.replayed() == []


@pytest.mark.parametrize("name", ["close", "reopen"])
def test_a_command_names_its_session(house: House, name: str):
    with pytest.raises(CommandRefused, match="say which session"):
        house.command(name)
