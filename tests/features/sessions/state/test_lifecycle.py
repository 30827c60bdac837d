"""A gate is open in a session from its refusal until it is satisfied, or what it refused was done after all."""

from tests.features.sessions.story import House, Story

COMMIT = {"tool": "Bash", "action": "shell", "command": "git commit -m x"}


def refused(story: Story, *names: str, how: str = "refused", of_kind: str = "tool.started", call: str = "") -> Story:
    detail = {"gate": how, "requirements": [{"name": name} for name in names]}
    of, tool = story.events[-1].seq, "Bash" if of_kind == "tool.started" else ""
    verdict = "none" if how == "let_go" else "deny"
    return story.tell("decision.made", tool=tool, verdict=verdict, of=of, of_kind=of_kind, call=call, details=[detail])


def a_refused_commit() -> Story:
    story = Story().start().prompt().tell("tool.started", call="c1", **COMMIT)
    return refused(story, "tests", "review", call="c1")


def open_gates(story: Story) -> list[str]:
    return list(story.doc()["open_gates"])


def test_a_refusal_opens_every_gate_it_names() -> None:
    story = a_refused_commit()
    assert open_gates(story) == ["tests", "review"]
    assert story.doc()["open_gates"]["tests"] == {"blocks": "Bash", "about": "git commit -m x", "at": story.now}


def test_what_is_satisfied_or_approved_is_open_no_more() -> None:
    story = a_refused_commit().tell("gates.satisfied", requirements=[{"name": "tests", "scope": "session"}])
    assert open_gates(story) == ["review"]
    assert open_gates(story.tell("gates.approved", requirements=[{"name": "review"}])) == []


def test_the_same_call_going_through_closes_its_gates() -> None:
    """Evidence may have come that no event names: a test run, a commit of somebody else."""
    story = a_refused_commit().tool("c2", command="ls")
    assert open_gates(story) == ["tests", "review"]
    assert open_gates(story.tool("c3", command="git commit -m x")) == []


def test_a_refused_stop_is_over_with_the_next_prompt() -> None:
    story = refused(Story().start().prompt().stop(), "docs", how="stop", of_kind="turn.ended")
    assert open_gates(story) == ["docs"]
    assert open_gates(story.stop().prompt("next")) == []


def test_a_warning_opens_nothing_and_an_end_leaves_nothing_open() -> None:
    story = refused(Story().start().prompt(), "size", how="warned")
    assert open_gates(story) == []
    assert open_gates(a_refused_commit().end()) == []


def test_it_is_shown_with_its_name(house: House) -> None:
    """S2-6: the session's own metrics of its gates."""
    house.take(a_refused_commit())
    shown = house.view("show")
    assert (shown["open_gates"], list(shown["gates"])) == (2, ["tests", "review"])
    assert "2 open gates" in house.view("export", format="md")["text"]
    assert house.replayed() == []


def a_stop_let_through() -> Story:
    return refused(Story().start().prompt().stop(), "docs", how="let_go", of_kind="turn.ended")


def test_a_stop_let_through_stays_marked_until_it_is_made_good() -> None:
    story = a_stop_let_through()
    assert story.doc()["let_through"] == ["docs"]
    assert a_stop_let_through().end().doc()["let_through"] == ["docs"], "the end makes nothing good"
    assert a_stop_let_through().prompt("next").doc()["let_through"] == ["docs"]
    assert a_stop_let_through().prompt("next").stop().doc()["let_through"] == [], "this stop was allowed"
    satisfied = story.tell("gates.satisfied", requirements=[{"name": "docs", "scope": "session"}])
    assert satisfied.doc()["let_through"] == []


def test_a_stop_let_through_is_in_figures_summary_and_export(house: House) -> None:
    house.take(a_stop_let_through().end())
    shown = house.view("show")
    assert shown["let_through"] == ["docs"]
    assert shown["summary"]["open"] == ["its stop was let through with open requirements: docs"]
    assert "let through with 1 open requirement" in house.view("export", format="md")["text"]
    assert house.replayed() == []
