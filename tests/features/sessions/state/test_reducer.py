"""What each event means for a session's document."""

import pytest

from holdfast.core.state import encode
from holdfast.features.sessions.state import reducer
from holdfast.features.sessions.state.documents import (
    DAY,
    END_REASONS,
    MAX_ASKS,
    MAX_LANES,
    MAX_RECENT_SESSIONS,
    MAX_RUNNING,
    RECENT_SESSIONS,
    TURN,
    YEAR,
    Turn,
)  # fmt: skip
from tests.features.sessions.story import PROJECT, SECOND, House, Story, an


def test_a_session_from_start_to_end():
    """S4-3 to S4-7, S4-9."""
    story = Story().start()
    assert (story.doc()["status"], story.doc()["state"]) == ("active", "idle")
    story.prompt("Fix the login\nbug")
    assert (story.doc()["state"], story.doc()["title"]) == ("working", "Fix the login bug")
    story.tool("c1").tool("c2", ok=False).tool("c3", tool="Edit", action="edit")
    assert {name: story.doc()[name] for name in ("tools", "failed", "edits", "prompts")} == {
        "tools": 3, "failed": 1, "edits": 1, "prompts": 1,
    }  # fmt: skip
    story.stop("All good.")
    doc = story.doc()
    assert (doc["state"], doc["turn"]["how"], doc["turn"]["answer"], doc["turn"]["tools"]) == (
        "waiting", "stopped", "All good.", 3,
    )  # fmt: skip
    story.end()
    doc = story.doc()
    assert (doc["status"], doc["state"], doc["reason"], doc["detail"]) == (
        "completed", "ended", "exit", "prompt_input_exit",
    )  # fmt: skip
    assert doc["ended_at"] == story.now


def test_the_next_prompt_ends_the_turn_before_it():
    """S4-4; after Esc nothing else tells that a turn is over."""
    story = Story().start().prompt("one").tell("tool.started", tool="Bash", call="c1").prompt("two")
    doc = story.doc()
    assert (doc["turn"]["n"], doc["turn"]["prompt"], doc["running"]) == (2, "two", {})
    assert (doc["previous"]["n"], doc["previous"]["how"]) == (1, "next-prompt")


def test_starting_one_session_ends_no_other():
    """S4-15."""
    story = Story().start(session="a").start(session="b")
    assert {story.doc(s)["status"] for s in "ab"} == {"active"}


def test_a_known_session_is_resumed_or_reactivated():
    """S4-16."""
    story = Story().start().prompt().stop().start("resume")
    assert (story.doc()["status"], story.doc()["restarts"], story.doc()["turn"]["n"]) == ("active", 0, 1)
    story.end().start("resume")
    doc = story.doc()
    assert (doc["status"], doc["restarts"], doc["reason"], doc["ended_at"]) == ("active", 1, "", 0)


def test_a_session_that_was_there_before_us_is_taken_in():
    """S4-13, S4-18: the first thing heard of it is a tool call."""
    story = Story().tool("c7")
    doc = story.doc()
    assert (doc["status"], doc["state"], doc["tools"]) == ("active", "working", 1)
    assert (doc["turn"]["n"], doc["turn"]["origin"], doc["turn"]["tools"]) == (1, "recovery", 1)


def test_only_agents_begin_sessions():
    story = Story().tell("session.lost", session="ghost", pid=1, start=1).tell("session.closed", session="ghost")
    assert story.docs() == {}


def test_events_without_a_session_are_nobodys():
    assert Story().start(session="").prompt(session="").docs() == {}


def test_a_late_event_lands_in_the_closed_turn():
    story = Story().start().prompt().stop().tell("tool.finished", tool="Bash", call="late", ok=True)
    doc = story.doc()
    assert (doc["turn"]["n"], doc["turn"]["tools"], doc["turn"]["how"], doc["state"]) == (1, 1, "stopped", "waiting")


def test_an_agent_that_goes_on_without_a_prompt_is_working():
    """A stop that was answered with more context, or a job the agent gave itself."""
    story = Story().start().prompt().stop().tool("more")
    assert (story.doc()["state"], story.doc()["turn"]["tools"]) == ("working", 1)
    story.stop()
    assert story.doc()["state"] == "waiting"


def test_a_recovered_turn_is_open_again_when_it_goes_on():
    """O4-d."""
    story = Story().start().prompt()
    story.tell("turn.recovered", n=1, last=story.now)
    assert (story.doc()["state"], story.doc()["turn"]["how"]) == ("idle", "recovered")
    story.tool("c1")
    assert (story.doc()["state"], story.doc()["turn"]["how"]) == ("working", "")


def test_recovery_that_comes_too_late_changes_nothing():
    story = Story().start().prompt()
    before = story.now
    story.tool("c1").tell("turn.recovered", n=1, last=before).tell("session.stale", last=before)
    assert (story.doc()["state"], story.doc()["status"]) == ("working", "active")


# ---- whom it waits for


def test_a_permission_asked_is_waited_for_until_its_tool_ends():
    story = Story().start().prompt()
    asked = {"tool": "Bash", "command": "git push"}
    story.tell("tool.started", call="c1", **asked).tell("permission.requested", **asked)
    doc = story.doc()
    assert (doc["state"], doc["asks"][0]["what"], doc["asks"][0]["about"]) == ("waiting", "permission", "git push")
    story.tool("other")
    assert story.doc()["state"] == "waiting"
    story.tell("tool.finished", call="c1", ok=True, **asked)
    assert story.doc()["state"] == "working"


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("permission.denied", {"tool": "Bash", "command": "git push"}),
        ("tool.batch", {"calls": [{"call": "c1"}]}),
        ("turn.ended", {}),
        ("turn.failed", {"error": "overloaded"}),
        ("turn.interrupted", {}),
        ("prompt.submitted", {"prompt": "never mind"}),
        ("session.ended", {"reason": "other"}),
    ],
)
def test_whatever_ends_the_wait_ends_it(kind: str, data: dict):
    story = Story().start().prompt()
    story.tell("permission.requested", tool="Bash", command="git push").tell(kind, **data)
    assert story.doc()["asks"] == []


def test_a_lane_waits_for_its_own_permission():
    """H6."""
    story = Story().start().prompt().tell("subagent.started", lane="L", lane_type="Explore")
    story.tell("permission.requested", tool="Bash", command="rm x", lane="L")
    story.tell("tool.finished", tool="Bash", command="rm x", call="mine", ok=True)
    assert story.doc()["state"] == "waiting"
    story.tell("subagent.ended", lane="L")
    assert story.doc()["state"] == "working"


def test_a_question_is_waited_for():
    story = Story().start().prompt().tell("tool.started", tool="AskUserQuestion", call="q", action="ask")
    assert (story.doc()["state"], story.doc()["asks"][0]["what"]) == ("waiting", "question")


def test_an_idle_notice_ends_a_turn_that_was_interrupted_without_a_word():
    """Claude Code sends nothing after Esc but, a minute later, that it waits for input."""
    story = Story().start().prompt().tell("tool.started", tool="Bash", call="c1")
    story.tell("notification", topic="idle_prompt", message="Claude is waiting for your input")
    doc = story.doc()
    assert (doc["state"], doc["turn"]["how"], doc["running"]) == ("waiting", "notified", {})


# ---- subagents


def test_a_lanes_own_transcript_and_model_are_not_the_sessions():
    """In Codex a subagent's hooks name the rollout of the subagent."""
    story = Story().start().tell("turn.ended", transcript="/t/main.jsonl", model="large")
    story.tool("x", lane="A", transcript="/t/lane.jsonl", model="small")
    assert (story.doc()["transcript"], story.doc()["model"]) == ("/t/main.jsonl", "large")


def test_subagents_are_lanes_of_their_parent():
    """H6: agent ids are counted inside the session, and work on after Stop."""
    story = Story().start().prompt().tell("subagent.started", lane="A", lane_type="Explore")
    story.tool("x", lane="A").tool("y", lane="B", lane_type="Plan").stop()
    doc = story.doc()
    assert (doc["state"], doc["lanes_seen"], doc["lanes"]["A"]["tools"], doc["lanes"]["B"]["type"]) == (
        "working", 2, 1, "Plan",
    )  # fmt: skip
    story.tell("subagent.ended", lane="A").tell("subagent.ended", lane="B")
    assert story.doc()["state"] == "waiting"


def test_a_compaction_is_no_subagent():
    story = Story().start().prompt().tell("subagent.ended", lane="Z", compaction=True).tell("compact.ended")
    assert (story.doc()["lanes_seen"], story.doc()["compactions"]) == (0, 1)


def test_a_subagents_prompt_and_stop_are_not_the_users():
    story = Story().start().prompt().prompt("look around", lane="A").tell("turn.ended", lane="A")
    assert (story.doc()["turn"]["n"], story.doc()["state"], story.doc()["prompts"]) == (1, "working", 1)


# ---- how it ends


def test_the_reasons_of_an_end():
    assert Story().start().end("clear").doc()["reason"] == "clear"
    assert Story().start().end("logout").doc()["reason"] == "exit"
    assert Story().start().tell("session.closed").doc()["reason"] == "closed-by-user"
    story = Story().start()
    assert story.tell("session.stale", last=story.now).doc()["reason"] == "stale"
    assert set(END_REASONS) == {"exit", "clear", "process-gone", "stale", "closed-by-user"}


def test_a_lost_process_ends_its_session_and_no_other():
    story = Story().start().prompt().tell("session.process", pid=7, start=70, boot="b", host="h", name="claude")
    story.tell("session.lost", pid=7, start=69)
    assert story.doc()["status"] == "active"
    story.tell("session.lost", pid=7, start=70)
    doc = story.doc()
    assert (doc["status"], doc["reason"], doc["turn"]["how"]) == ("completed", "process-gone", "lost")


def test_what_the_agent_says_of_its_end_is_better_than_what_was_concluded():
    story = Story().start().tell("session.closed").end()
    first_end = story.events[1].at
    assert (story.doc()["reason"], story.doc()["ended_at"]) == ("exit", first_end)
    story.end("clear").tell("session.closed")
    assert story.doc()["reason"] == "exit"


def test_activity_after_a_doubtful_end_proves_life():
    """S4-18: a live session that was closed goes on."""
    story = Story().start().prompt().tell("session.closed").tool("c1")
    doc = story.doc()
    assert (doc["status"], doc["state"], doc["restarts"]) == ("active", "working", 1)


def test_what_waited_in_the_spool_does_not_wake_a_session_that_ended():
    story = Story().start().prompt().end()
    story.tell("tool.finished", tool="Bash", call="c1", ok=True, after=-500)
    story.tell("prompt.submitted", prompt="older", after=-500)
    doc = story.doc()
    assert (doc["status"], doc["tools"], doc["turn"]["end"] > 0) == ("completed", 1, True)


def test_a_process_with_a_known_session_is_never_stale():
    """Decision 10."""
    story = Story().start().tell("session.process", pid=7, start=70, boot="b", host="h", name="claude")
    story.tell("session.stale", last=story.now)
    assert story.doc()["status"] == "active"


def test_a_person_may_reopen():
    story = Story().start().prompt().stop().end().tell("session.reopened")
    assert (story.doc()["status"], story.doc()["process"]) == ("active", None)


# ---- the order agents keep, and the one they do not


def test_stop_before_its_prompt():
    story = Story().start().tell("turn.ended", turn="p1", message="x").prompt("the prompt", turn="p1")
    doc = story.doc()
    assert (doc["turn"]["how"], doc["turn"]["prompt"], doc["state"]) == ("stopped", "the prompt", "waiting")


def test_a_tool_that_ends_before_it_starts_is_counted_once_and_runs_no_more():
    story = Story().start().prompt()
    story.tell("tool.finished", tool="Bash", call="c1", ok=True).tell("tool.started", tool="Bash", call="c1")
    assert (story.doc()["tools"], story.doc()["running"]) == (1, {})


def test_everything_twice_is_counted_once():
    """O4-c: hooks registered at two levels, and Cursor."""
    story = (
        Story()
        .start()
        .start()
        .prompt("p", turn="t")
        .prompt("p", turn="t")
        .tool("c")
        .tool("c")
        .stop()
        .stop()
        .end()
        .end()
    )
    doc = story.doc()
    assert {name: doc[name] for name in ("prompts", "tools", "restarts")} == {"prompts": 1, "tools": 1, "restarts": 0}
    assert doc["turn"]["n"] == 1


def test_calls_without_ids_are_paired_by_tool():
    story = Story().start().prompt()
    for _ in range(2):
        story.tell("tool.started", tool="run_shell_command").tell("tool.finished", tool="run_shell_command", ok=True)
    assert (story.doc()["running"], story.doc()["tools"]) == ({}, 2)


def test_an_empty_prompt_in_a_turn_is_not_another():
    """Qwen sends one after every batch of tools."""
    story = Story().start().prompt("real").tell("prompt.submitted")
    assert story.doc()["turn"]["n"] == 1


def test_a_notification_of_a_task_is_a_turn_but_no_prompt_of_a_person():
    story = Story().start().prompt("real").stop().prompt("<task-notification>…", synthetic=True)
    doc = story.doc()
    assert (doc["turn"]["n"], doc["turn"]["origin"], doc["prompts"], doc["title"]) == (2, "agent", 1, "real")


def test_a_refused_stop_means_the_turn_goes_on():
    story = Story().start().prompt().stop()
    story.tell("decision.made", verdict="deny", of_kind="turn.ended", contexts=[])
    assert story.doc()["state"] == "working"


def test_a_refused_tool_does_not_run():
    story = Story().start().prompt().tell("tool.started", tool="Write", call="c1")
    story.tell("decision.made", verdict="deny", of_kind="tool.started", call="c1", contexts=[])
    assert (story.doc()["running"], story.doc()["denied"]) == ({}, 1)


def test_a_compaction_leaves_the_turn_alone():
    story = Story().start().prompt().tell("tool.started", tool="Bash", call="c").start("compact", after=60_000)
    assert (story.doc()["state"], len(story.doc()["running"]), story.doc()["origin"]) == ("working", 1, "startup")


def test_a_resume_in_another_process_ends_what_was_cut_off():
    story = Story().start(pid=5).prompt().tell("session.process", pid=5, start=1, boot="b", host="h", name="claude")
    story.start("resume", pid=6, after=60_000)
    doc = story.doc()
    assert (doc["turn"]["how"], doc["process"], doc["state"]) == ("lost", None, "idle")


def test_a_start_that_comes_after_its_prompt_leaves_the_turn_open():
    """Copilot sends both in either order."""
    story = Story().prompt("first").start("resume", after=3)
    assert story.doc()["state"] == "working"


# ---- bounds


def test_every_list_is_capped():
    story = Story().start().prompt()
    for n in range(60):
        story.tell("tool.started", tool=f"T{n}", call=f"call-{n}")
        story.tell("permission.requested", tool=f"T{n}", command=f"do {n}")
        story.tell("subagent.started", lane=f"lane-{n}")
        story.tell("session.branched", child=f"kid-{n}")
    doc = story.doc()
    assert (len(doc["running"]), len(doc["asks"]), len(doc["lanes"]), len(doc["children"])) == (
        MAX_RUNNING, MAX_ASKS, MAX_LANES, 20,
    )  # fmt: skip
    assert (doc["lanes_seen"], doc["children_seen"]) == (60, 60)
    for n in range(60):
        story.prompt(f"prompt {n}")
    assert (story.doc()["previous"]["n"], story.doc()["missed"]) == (60, 1)
    assert len(encode(story.doc())) < 20_000


def test_a_place_remembers_the_latest_sessions_of_a_project():
    story = Story()
    for n in range(40):
        story.start(session=f"s{n}")
    recent = story.docs()[RECENT_SESSIONS.ref("/home/ada/engine")]["recent"]
    assert recent == [f"s{n}" for n in range(39, 39 - MAX_RECENT_SESSIONS, -1)]


def test_a_turns_document_holds_its_facts():
    story = Story().start().prompt().stop()
    story.tell("turn.processed", n=1, upto=3, facts={"prompt": "Fix it", "at": 5, "first": 2})
    turn = story.docs()[TURN.ref("s-1/1")]
    assert (turn["prompt"], turn["status"]) == ("Fix it", "completed")
    assert story.doc()["turn"]["processed"] == 3


# ---- lineage


def test_links_make_parents_and_no_cycles():
    story = Story().start(session="old").start(session="new", source="clear")
    story.tell("session.linked", session="new", parent="old", reason="clear", parent_seq=1)
    story.tell("session.branched", session="old", child="new", reason="clear")
    story.tell("session.linked", session="old", parent="new", reason="fork", parent_seq=2)
    story.tell("session.linked", session="new", parent="new", reason="fork", parent_seq=0)
    assert (story.doc("new")["parent"], story.doc("new")["parent_reason"]) == ("old", "clear")
    assert (story.doc("old")["parent"], story.doc("old")["children"]) == ("", ["new"])


# Sums per day: a turn counts once, however often it is gone through, and replay says the same.


def a_turn(house: House, *tools: str, prompt: str = "Fix it") -> None:
    house.hook("prompt.submitted", prompt=prompt)
    for call in tools:
        house.hook("tool.finished", tool="Bash", call=call, ok=True)
    house.hook("turn.ended", message="Done.")


def today(house: House) -> dict:
    return house.view("activity", days=1)["today"]


def test_a_turn_counts_while_it_is_open_and_once(house: House):
    house.hook("session.started", source="startup")
    house.hook("prompt.submitted", prompt="Fix it")
    house.hook("tool.finished", tool="Bash", call="a", ok=True)
    assert (today(house)["turns"], today(house)["tools"]) == (1, 1)
    (row,) = house.view("activity", days=1)["rows"]
    assert (row["project"], row["agent"], row["tools"]) == (PROJECT, "claude-code", 1)
    house.hook("tool.finished", tool="Bash", call="b", ok=True)
    house.hook("turn.ended", message="Done.")
    before = today(house)
    house.run("sessions.process", session="s-1")
    assert today(house) == before
    told = today(house)
    assert {name: told[name] for name in ("turns", "tools", "sessions", "ms", "failed")} == {
        "turns": 1, "tools": 2, "sessions": 1, "ms": 3 * SECOND, "failed": 0,
    }  # fmt: skip
    assert house.replayed() == []


def test_what_comes_late_is_added_and_nothing_counted_twice(house: House):
    a_turn(house, "a")
    house.run("sessions.process", session="s-1")
    house.hook("tool.finished", tool="Bash", call="late", ok=False)
    house.run("sessions.process", session="s-1")
    house.run("sessions.process", session="s-1")
    told = today(house)
    assert (told["turns"], told["tools"], told["sessions"]) == (1, 2, 1)
    a_turn(house, "b", prompt="More")
    house.run("sessions.process", session="s-1")
    assert (today(house)["turns"], today(house)["sessions"]) == (2, 1)
    assert house.replayed() == []


def test_by_project_and_agent(house: House):
    a_turn(house, "a")
    house.run("sessions.process", session="s-1")
    tokens = {"input": 5, "output": 7, "cache_read": 11, "reasoning": 3}
    day = reducer.local_day(house.clock())
    house.take([an("model.answered", at=house.clock(), tokens=tokens, day=day)])
    (row,) = house.view("activity", days=7)["rows"]
    assert (row["project"], row["agent"], row["tools"], row["tokens"]) == (PROJECT, "claude-code", 1, 23)
    assert today(house)["tokens"] == 23


def test_events_of_before_are_counted_by_their_own_time():
    """Written by an older Holdfast: no day, no agent, no difference to what was told before."""
    facts = {"at": 1_700_000_000_000, "end": 1_700_000_060_000, "tools": 3, "failed": 1, "first": 2, "seq": 9}
    docs = Story().start().tell("turn.processed", n=1, upto=9, facts=facts).docs()
    (by,) = docs[DAY.ref("2023-11-14")]["by"].values()
    assert by == {"": {"turns": 1, "ms": 60_000, "tools": 3, "failed": 1, "sessions": 1}}
    assert docs[YEAR.ref("2023")]["days"]["11-14"]["turns"] == 1


def test_documents_stay_small():
    story = Story()
    for n in range(300):
        story.events.append(
            an("turn.processed", n=1, day="2026-01-01", agent="a", more={"turns": 1}, facts={"at": 1}, session=f"s{n}")
        )
    import msgspec

    story.events = [msgspec.structs.replace(e, project=f"/p{n}") for n, e in enumerate(story.events)]
    doc = story.docs()[DAY.ref("2026-01-01")]
    assert len(doc["by"]) == reducer.MAX_PROJECTS + 1
    assert doc["by"][reducer.OTHER_PROJECTS]["a"]["turns"] == 300 - reducer.MAX_PROJECTS


def test_a_night_with_an_open_turn_is_no_nights_work():
    week = Turn(n=1, at=0, end=7 * 86_400_000)
    assert reducer.growth_of(week, None)["ms"] == reducer.LONGEST_TURN_MS
    assert reducer.local_day(1 << 62) == "1970-01-01"


def test_the_title_is_the_agents_own_else_the_persons_first_words() -> None:
    story = Story().start().prompt("/model").stop().prompt("Fix the login").stop().prompt("And the tests")
    assert story.doc()["title"] == "Fix the login"
    assert story.tell("session.titled", title="Login repair").prompt("more").doc()["title"] == "Login repair"
    assert Story().start().prompt("/review src/a.py").doc()["title"] == "/review src/a.py"
