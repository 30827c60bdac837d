"""Lists, one whole, who needs you, the timeline, exports, commands."""

import json
import re

import pytest

from holdfast.core.errors import CommandRefused
from holdfast.features.sessions import views
from holdfast.features.sessions.views import export, timeline

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
    with pytest.raises(CommandRefused, match="no session given"):
        house.command(name)


# Rows by range: the same, in whatever pieces they are asked for.


@pytest.fixture
def long(house: House) -> House:
    story = Story().start()
    for n in range(130):
        story.prompt(f"prompt {n}").tool(f"c{n}", ok=n % 10 != 0).stop(f"answer {n}")
        story.tell("prompt.submitted", session="another", prompt="not mine")
    house.take(story)
    return house


def test_every_range_is_a_piece_of_the_whole(long: House):
    marks = long.view("marks", id="s-1")
    whole: list[int] = []
    for mark in marks["marks"]:
        page = long.view("rows", id="s-1", start=mark, limit=marks["every"])["rows"]
        assert page[0]["seq"] == mark
        whole += [row["seq"] for row in page]
    assert len(whole) == marks["total"] == 1 + 130 * 3
    assert whole == sorted(set(whole))
    assert whole[-1] == marks["last"]
    backwards, before = [], 0
    while True:
        page = long.view("rows", id="s-1", before=before, limit=100)
        backwards = [row["seq"] for row in page["rows"]] + backwards
        before = page["older"]
        if not before:
            break
    assert backwards == whole


@pytest.mark.parametrize("only", [name for name in views.ROW_FILTERS if name])
def test_what_is_filtered_is_marked_alike(long: House, only: str):
    marks = long.view("marks", id="s-1", only=only)
    page = long.view("rows", id="s-1", only=only, limit=500)["rows"]
    assert marks["total"] == len(page)
    assert {row["kind"] for row in page} <= set(views.ROW_FILTERS[only])


def test_a_row_knows_its_turn_and_how_long_it_took(long: House):
    page = long.view("rows", id="s-1", limit=4)["rows"]
    prompt, tool, answer = page[-3:]
    assert [row["kind"] for row in (prompt, tool, answer)] == ["prompt.submitted", "tool.finished", "turn.ended"]
    assert {row["turn"] for row in (prompt, tool, answer)} == {130}
    assert (tool["ms"], tool["at"] - tool["began"]) == (1000, 1000)  # Seen: it began a second before it ended.
    assert prompt["turn_at"] == prompt["at"]
    assert prompt["turn_end"] == answer["at"]


def test_words_are_found_and_the_search_goes_on_where_it_stopped(long: House):
    found = long.view("rows", id="s-1", q="PROMPT 12", limit=5)
    texts = [row["text"] for row in found["rows"]]
    assert texts == [f"prompt {n}" for n in range(125, 130)]
    older = long.view("rows", id="s-1", q="prompt 12", limit=500, before=found["older"])
    assert [row["text"] for row in older["rows"]] == ["prompt 12", *(f"prompt {n}" for n in range(120, 125))]
    assert older["older"] == 0
    assert long.view("rows", id="s-1", q="nowhere to be found")["rows"] == []


def test_paths_of_the_project_are_told_from_there(house: House):
    house.take(Story().start().prompt().tool(tool="Read", command="", paths=["/home/ada/engine/src/a.py"]))
    assert house.view("rows", id="s-1")["rows"][-1]["text"] == "src/a.py"


def test_an_overview_shows_turns_lanes_and_answers(house: House):
    story = Story().start().prompt().tell("subagent.started", lane="l1", lane_type="explorer").tool()
    story.tell("decision.made", of=3, of_kind="tool.started", verdict="deny", reasons=["no"], contexts=[]).stop()
    house.take(story)
    seen = house.view("overview", id="s-1")
    assert [(t["n"], t["tools"]) for t in seen["turns"]] == [(1, 1)]
    assert [lane["type"] for lane in seen["lanes"]] == ["explorer"]
    assert [d["deny"] for d in seen["decisions"]] == [True]


# The status line says what is known, and nothing else.


def test_what_is_known_is_said(house: House) -> None:
    house.hook("prompt.submitted", prompt="one")
    assert house.view("statusline", id="s-1")["text"] == "– tokens"
    assert house.view("statusline", id="s-1", reported=1.5, context=12.6)["text"] == "$1.50 · context 13%"
    house.hook("model.answered", tokens={"input": 100_000}, model="claude-sonnet-4-5")
    assert house.view("statusline", id="s-1", reported=1.5)["text"] == "$0.30 · 100.0k tokens"


@pytest.mark.parametrize("context", [None, "x", True, -1, 101, float("nan")])
def test_an_odd_share_of_the_context_is_left_out(house: House, context: object) -> None:
    house.hook("prompt.submitted", prompt="one")
    assert house.view("statusline", id="s-1", context=context)["text"] == "– tokens"


def test_gates_and_others_that_wait(house: House) -> None:
    detail = {"gate": "refused", "requirements": [{"name": "tests"}]}
    story = Story().start().prompt().tell("tool.started", tool="Bash", call="c")
    house.take(story.tell("decision.made", verdict="deny", of_kind="tool.started", call="c", details=[detail]))
    process = {"pid": 5, "start": 5, "boot": "b", "machine": "m", "name": "claude"}
    for name in ("s-2", "s-3"):
        house.take(Story().start(session=name, process=process).prompt(session=name).stop(session=name))
    assert house.view("statusline", id="s-1")["text"] == "– tokens · 1 open gate · 2 other sessions wait"


def test_a_long_turn_is_looked_at_in_the_middle(house: House) -> None:
    story = Story().start().prompt()
    for n in range(10):
        story.tool(f"c{n}")
    house.take(story)
    assert house.waiting().count("sessions.read_usage") == 1


def test_a_person_who_names_no_session_sees_the_latest_an_agent_none(house: House) -> None:
    house.take(Story().start().prompt())
    assert house.view("statusline", latest=True) == {"text": "– tokens", "id": "s-1"}
    assert house.view("statusline") == {"text": "", "id": ""}, "its own screen never shows another session"
