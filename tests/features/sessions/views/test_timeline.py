"""Calls are paired by id, else by lane, turn, tool, input and order; what is no happening is no row."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.event import Event
from holdfast.core.kinds.agent_events import PromptSubmitted
from holdfast.features.sessions.state.call_text import about_call
from holdfast.features.sessions.state.lifecycle import prompt_text
from holdfast.features.sessions.views.timeline import pair_calls

from ..story import House, Story, an

COMMANDS = ("make", "ls", "make")
SHELL = {"action": "shell", "command": "make", "input": {"command": "make"}}


def calls_of(house: House) -> list[tuple[str, str]]:
    rows = house.view("timeline", id="s-1")["entries"]
    return [(row["text"], row["outcome"]) for row in rows if row["kind"].startswith("tool.")]


def begin(story: Story, command: str, **kw: Any) -> Story:
    return story.tell("tool.started", tool="bash", action="shell", command=command, input={"command": command}, **kw)


def finish(story: Story, command: str, ok: bool = True, **kw: Any) -> Story:
    kind = "tool.finished" if ok else "tool.failed"
    return story.tell(kind, tool="bash", action="shell", command=command, input={"command": command}, ok=ok, **kw)


def test_without_ids_each_end_finds_its_own_start(house: House) -> None:
    story = begin(begin(begin(Story().start().prompt(), "a"), "b"), "a")
    finish(finish(finish(story, "b"), "a", ok=False), "a")
    house.take(story)
    assert calls_of(house) == [("b", "ok"), ("a", "failed"), ("a", "ok")]


def test_lanes_are_kept_apart(house: House) -> None:
    story = begin(begin(Story().start().prompt(), "a"), "a", lane="L")
    finish(story, "a", lane="L")
    house.take(story)
    assert calls_of(house) == [("a", "running"), ("a", "ok")]


def test_the_end_of_another_turn_is_not_taken(house: House) -> None:
    story = begin(Story().start().prompt(), "a").prompt("next").stop().prompt("third")
    house.take(finish(begin(story, "a"), "a"))
    assert calls_of(house) == [("a", "not ended"), ("a", "ok")]


def test_a_start_that_comes_long_after_its_end_is_of_the_same_call(house: House) -> None:
    """A hook that lay in the spool: the call took a minute, and its start is stored last."""
    story = finish(Story().start().prompt(), "make", call="c1", after=60_000)
    story.events.append(an("tool.started", at=story.now - 60_000, tool="bash", seq=4, call="c1", **SHELL))
    house.take(story)
    assert calls_of(house) == [("make", "ok")]
    assert not story.doc()["running"]


def test_an_id_that_is_used_again_later_is_another_call(house: House) -> None:
    story = finish(Story().start().prompt(), "make", call="0")
    house.take(begin(story, "make", call="0", after=60_000))
    assert calls_of(house) == [("make", "ok"), ("make", "running")]
    assert list(story.doc()["running"]) == ["0"]


def test_a_killed_agents_calls_were_interrupted(house: House) -> None:
    story = Story().start().prompt().tell("session.process", pid=7, start=7, boot="b", host="h", name="claude")
    house.take(begin(story, "make", call="c1").tell("session.lost", pid=7, start=7))
    assert calls_of(house) == [("make", "interrupted")]


def test_an_end_that_says_so_was_interrupted(house: House) -> None:
    story = begin(Story().start().prompt(), "make", call="c1")
    house.take(finish(story, "make", ok=False, call="c1", interrupted=True))
    assert calls_of(house) == [("make", "interrupted")]


def test_denied_without_ids_and_told_to_have_ended_it_is_one_row(house: House) -> None:
    story = begin(Story().start().prompt(), "rm x")
    story.tell("decision.made", tool="bash", verdict="deny", of=3, of_kind="tool.started", reasons=["No."])
    house.take(finish(story, "rm x", ok=False))
    assert calls_of(house) == [("rm x", "denied")]
    (denial,) = house.view("rows", id="s-1", only="decisions")["rows"]
    assert (denial["kind"], denial["text"]) == ("decision.made", "denied: rm x — No."), "it says what it denied"


def test_what_nobody_typed_is_no_row_and_no_turn(house: House) -> None:
    own = '<holdfast-context source="holdfast/memory">\nold\n</holdfast-context>\n'
    story = Story().start().prompt(f"{own}Fix it").prompt("", synthetic=True).prompt("[Holdfast] Run the tests.")
    story.prompt(own).tell("subagent.ended", lane="x", compaction=True).stop()
    house.take(story)
    shown = house.view("show")
    assert (shown["title"], shown["prompts"], shown["turn_n"]) == ("Fix it", 1, 1)
    assert [row["label"] for row in house.view("timeline", id="s-1")["entries"]] == ["started", "prompt", "answer"]


def test_every_turn_of_an_import_is_shown(house: House) -> None:
    """Imports ask for no jobs, so that no turn has a document: turn 1 of 3 was missing."""
    story = Story().start("import")
    for n in range(1, 6):
        story.prompt(f"prompt {n}").tool(f"c{n}").stop(f"answer {n}")
    house.take(story)
    assert [(t["n"], t["prompt"], t["answer"]) for t in house.view("show")["turns"]] == [
        (n, f"prompt {n}", f"answer {n}") for n in range(1, 6)
    ]
    rows = house.view("timeline", id="s-1")["entries"]
    assert [row["turn"] for row in rows if row["kind"] == "prompt.submitted"] == [1, 2, 3, 4, 5]


steps = st.lists(
    st.tuples(st.sampled_from(("start", "end", "prompt", "stop", "deny")), st.sampled_from(("a", "b")),
              st.sampled_from(("", "c1", "c2")), st.sampled_from(("", "L"))),
    max_size=40,
)  # fmt: skip


def told(script: list[tuple[str, str, str, str]]) -> list[Event]:
    story = Story().start()
    for step, command, call, lane in script:
        given: dict[str, Any] = {"lane": lane, **({"call": call} if call else {})}
        if step == "start":
            begin(story, command, **given)
        elif step == "end":
            finish(story, command, **given)
        elif step == "deny":
            story.tell("decision.made", verdict="deny", of=story.events[-1].seq, of_kind="tool.started")
        else:
            story.prompt("p") if step == "prompt" else story.stop()
    return story.events


@given(steps)
@settings(max_examples=300, deadline=None)
def test_no_start_has_two_ends_and_none_is_both_open_and_over(script: list[tuple[str, str, str, str]]) -> None:
    events = told(script)
    pairing = pair_calls(events)
    starts = [start.seq for start in pairing.start_of.values()]
    assert len(starts) == len(set(starts))
    assert pairing.open.keys().isdisjoint(starts)
    assert pairing.open.keys().isdisjoint(pairing.outcomes)
    by_seq = {event.seq: event for event in events}
    for end, start in pairing.start_of.items():
        ended = by_seq[end]
        assert (ended.tool, ended.data.lane) == (start.tool, start.data.lane)
        assert not (ended.data.call and start.data.call) or ended.data.call == start.data.call


def about(action: str = "other", *, paths: tuple[str, ...] = (), **given: Any) -> str:
    event = an("tool.started", tool="T", action=action, paths=list(paths), input=given)
    return about_call(msgspec.structs.replace(event, project="/p"))


def test_a_call_says_what_it_is_about_by_its_input_where_it_names_no_file() -> None:
    assert about(prompt="MARK please look", description="look around") == "look around"
    assert (about(dir_path="/src"), about(n=1), about()) == ("/src", "n: 1", "")
    assert about(owner="acme", repo="shop", number=7, deep={"x": 1}) == "owner: acme, repo: shop, number: 7"


def test_a_search_says_what_and_where() -> None:
    """As Claude, Gemini and droid name them."""
    assert about("search", paths=("/p/src",), pattern="def add", path="/p/src") == "def add in src"
    assert about("search", pattern="**/*.py") == "**/*.py"
    assert about("search", pattern="def add", dir_path="/p/tests") == "def add in tests"
    assert about("search", patterns=["*.py", "*.md"], folder="/elsewhere") == "*.py, *.md in /elsewhere"
    assert about("search", information_request="where is add?") == "where is add?"
    assert about("search", dir_path="/p/src") == "src"


def test_an_edit_of_several_files_says_so() -> None:
    assert about("edit", paths=("/p/a.py", "/p/b.py", "/p/c.py")) == "a.py and 2 more"
    assert about("edit", paths=("/elsewhere/a.py",)) == "/elsewhere/a.py"
    assert about_call(an("tool.finished", action="edit", path="/elsewhere/b.py")) == "/elsewhere/b.py", "as Cursor may"


def test_lists_questions_and_subagents_say_what_they_hold() -> None:
    todos = [
        {"content": "read", "status": "completed"},
        {"content": "write", "status": "in_progress"},
        {"content": "test", "status": "pending"},
    ]
    assert about("todo", todos=todos) == "1 of 3 done: write"
    assert about("todo", plan=[{"step": "read", "status": "completed"}]) == "1 of 1 done"
    assert about("ask", questions=[{"question": "Which one?"}, {"question": "And when?"}]) == "Which one? and 1 more"
    assert about("agent", agent_name="investigator", prompt="look around") == "investigator: look around"
    assert about("agent", ids=["a1", "a2"]) == "ids: a1, a2"
    assert about("plan", plan="Move it over") == "Move it over"


def test_news_of_a_background_task_reads_as_its_sentence() -> None:
    text = '<task-notification>\n<task-id>a3</task-id>\n<summary>Agent "look" finished</summary>\n</task-notification>'
    assert prompt_text(PromptSubmitted(prompt=text, synthetic=True)) == 'Agent "look" finished'
    assert prompt_text(PromptSubmitted(prompt=text)) == text
