"""What an agent is told, and when (S4-4, S4-17, pains 13–15, 25)."""

from holdfast.core import text
from tests.features.memory.harness import MemoryHarness

DECISION = "Always use PostgreSQL for the event store."


def told(contexts: list[str]) -> str:
    return "\n".join(contexts)


def test_nothing_remembered_nothing_told(house: MemoryHarness) -> None:
    assert house.ask("session.started", source="startup") == []
    assert house.prompt("hello there, how are you") == []


def test_a_new_session_starts_knowing(house: MemoryHarness) -> None:
    house.turn(DECISION)
    assert DECISION in told(house.ask("session.started", session="s-2", source="startup"))


def test_another_project_is_told_nothing(house: MemoryHarness) -> None:
    house.turn(DECISION)
    assert house.ask("session.started", session="s-2", project="/home/ada/other", source="startup") == []
    assert house.prompt("which event store, PostgreSQL?", session="s-2", project="/home/ada/other") == []


def test_a_resume_is_told_only_what_others_learned_meanwhile(house: MemoryHarness) -> None:
    """S4-17: minimal."""
    house.turn(DECISION, session="s-1")
    house.ask("session.started", session="s-2", source="startup")
    house.turn("look around", session="s-2")
    house.turn("From now on use port 8081 for the gateway.", session="s-1")
    resumed = told(house.ask("session.started", session="s-2", source="resume"))
    assert "port 8081" in resumed
    assert DECISION not in resumed
    assert house.ask("session.started", session="s-2", source="resume") == []


def test_a_prompt_is_told_what_fits_it_and_only_once(house: MemoryHarness) -> None:
    house.turn(DECISION)
    assert house.prompt("paint the settings page blue", session="s-2") == []
    assert DECISION in told(house.prompt("make the PostgreSQL event store faster", session="s-2"))
    assert house.prompt("make the PostgreSQL event store faster still", session="s-2") == []


def test_a_known_gotcha_is_told_before_the_file_is_edited(house: MemoryHarness) -> None:
    house.turn("Never take the lock of src/store.py twice, it breaks.")
    quiet = {"action": "edit", "paths": ["/home/ada/engine/src/other.py"], "session": "s-2"}
    assert house.ask("tool.started", **quiet) == []
    loud = {"action": "edit", "paths": ["/home/ada/engine/src/store.py"], "session": "s-2"}
    assert "it breaks" in told(house.ask("tool.started", **loud))
    assert house.ask("tool.started", **loud) == []


def refused(house: MemoryHarness, *gates: str) -> None:
    details = [{"gate": "refused", "requirements": [{"name": name} for name in gates]}]
    house.hook("decision.made", tool="Bash", verdict="deny", details=details)


def compacted(house: MemoryHarness, summary: str) -> str:
    house.hook("compact.started", trigger="auto")
    house.hook("compact.ended", trigger="auto", summary=summary)
    return told(house.ask("session.started", source="compact"))


def test_after_a_compaction_what_the_summary_lost_is_put_back(house: MemoryHarness) -> None:
    """Pain 13."""
    house.turn(DECISION)
    house.prompt("Go on with the migration of the invoices")
    house.ran("make test-store SEED=41")
    house.hook("task.created", task="7", subject="Drop the legacy column")
    refused(house, "code-review")
    back = compacted(house, "The user asked about the migration of the invoices; we go on with it.")
    for piece in (DECISION, "make test-store SEED=41", "Drop the legacy column", "code-review"):
        assert piece in back
    assert "asked last" not in back


def test_what_the_summary_kept_is_not_repeated(house: MemoryHarness) -> None:
    house.turn(DECISION)
    assert DECISION not in compacted(house, "Always use PostgreSQL for the event store. We decided on it.")


def test_a_finished_task_and_a_satisfied_gate_are_not_put_back(house: MemoryHarness) -> None:
    house.prompt("do it")
    house.hook("task.created", task="7", subject="Drop the legacy column")
    house.hook("task.completed", task="7", subject="Drop the legacy column")
    refused(house, "code-review")
    house.hook("gates.satisfied", requirements=[{"name": "code-review", "scope": "session", "until": 0}])
    back = compacted(house, "")
    assert "legacy" not in back
    assert "code-review" not in back


def test_marks_are_gone_with_the_compaction_that_lost_the_text(house: MemoryHarness) -> None:
    """Pain 15: shown before, thrown away, shown again."""
    house.turn(DECISION)
    ask = "make the PostgreSQL event store faster"
    assert house.prompt(ask, session="s-2")
    assert not house.prompt(ask, session="s-2")
    house.hook("compact.started", session="s-2", trigger="auto")
    back = told(house.ask("session.started", session="s-2", source="compact"))
    assert DECISION in back
    assert not house.prompt(ask, session="s-2")


def test_a_fork_has_what_its_parent_was_told_before_it(house: MemoryHarness) -> None:
    """Pain 14: marks follow the lineage."""
    house.turn(DECISION)
    ask = "make the PostgreSQL event store faster"
    assert house.prompt(ask, session="s-2")
    house.hook("session.started", session="s-3", source="fork")
    house.hook("session.linked", session="s-3", parent="s-2", reason="fork", parent_seq=1)
    assert not house.prompt(ask, session="s-3")
    house.hook("session.started", session="s-4", source="clear")
    house.hook("session.linked", session="s-4", parent="s-2", reason="clear", parent_seq=1)
    assert house.prompt(ask, session="s-4")


def test_a_handover_is_told_once(house: MemoryHarness) -> None:
    """Pain 25."""
    house.prompt("Rewrite the importer. Always use streaming in importer.py.")
    house.edited("/home/ada/engine/importer.py")
    house.ran("pytest tests/test_importer.py", ok=False, output="boom")
    house.stop("Halfway there.")
    house.hook("session.summarised", title="the importer", text="the importer: 1 prompt.", files=[])
    packet = house.command("handoff", session="s-1")["text"]
    for piece in ("Rewrite the importer", "streaming", "importer.py", "pytest tests/test_importer.py", "next step"):
        assert piece in packet
    first = told(house.ask("session.started", session="c-1", source="startup"))
    assert "Handed over from claude-code" in first
    assert first.count("rule: Always use streaming") == 1
    assert "session_summary" not in first, "the packet is the summary"
    second = told(house.ask("session.started", session="c-2", source="startup"))
    assert "Handed over" not in second


def test_a_handover_has_the_last_request_and_no_file_that_is_gone(house: MemoryHarness, tmp_path) -> None:
    (tmp_path / "importer.py").touch()
    where = {"project": str(tmp_path)}
    house.prompt("Rewrite the importer.", **where)
    house.hook("tool.finished", tool="Edit", action="edit", paths=["importer.py"], **where)
    house.hook("tool.finished", tool="Edit", action="edit", paths=["gone.py"], **where)
    house.stop("The importer streams now.", **where)
    house.prompt("Good. Tomorrow start with the exporter.", **where)
    house.stop("All right.", **where)
    packet = house.command("handoff", session="s-1")["text"]
    assert "asked last: Good. Tomorrow start with the exporter." in packet
    assert "importer.py" in packet and "gone.py" not in packet


def test_what_contradicts_a_pinned_memory_waits_for_a_person(house: MemoryHarness) -> None:
    house.turn("Remember that the request timeout is 30 seconds.")
    [first] = house.view("listed")["observations"]
    house.command("pin", id=first["id"])
    house.turn("Remember that the request timeout is 60 seconds.")
    [waiting] = house.view("listed", status="candidate")["observations"]
    assert "60 seconds" in waiting["text"] and "30 seconds" in waiting["detail"]
    assert [one["id"] for one in house.view("listed")["observations"]] == [first["id"]]


def test_an_agent_proposes_only_what_its_user_is_on_record_with(tmp_path) -> None:
    """`memory.agent_proposes`: off by default, because it costs the agent's tokens."""
    house = MemoryHarness(tmp_path, agent_proposes=True)
    assert "memory/propose" in told(house.ask("session.started", session="s-1", source="startup"))
    house.prompt("Ah, and the nightly export goes to the blue bucket, by the way")
    quoted = house.command("add", text="the nightly export goes to the blue bucket", by="agent")
    invented = house.command("add", text="the nightly export goes to the red bucket", by="agent")
    assert (quoted["origin"], quoted["status"], len(quoted["evidence"])) == ("user", "active", 1)
    assert (invented["origin"], invented["status"]) == ("agent", "candidate")
    house.close()


def test_budgets_hold(tmp_path) -> None:
    house = MemoryHarness(tmp_path, start_tokens=120, prompt_tokens=60)
    for n in range(20):
        house.turn(f"Always use library{n} for the part called component{n} of the engine.")
    [context] = house.ask("session.started", session="s-2", source="startup")
    assert text.estimate_tokens(context) <= 120
    house.close()


def test_switched_off_or_paused_nothing_is_told(tmp_path) -> None:
    house = MemoryHarness(tmp_path, inject=False)
    house.turn(DECISION)
    assert house.ask("session.started", session="s-2", source="startup") == []
    house.close()


def test_a_memory_about_files_that_are_gone_is_not_told(house: MemoryHarness, tmp_path) -> None:
    """The files are looked for soon after, and looked at again whenever the memory is about to be told."""
    project = str(tmp_path)
    (tmp_path / "legacy.py").write_text("x = 1\n")
    house.turn("Never take the lock of legacy.py twice, it breaks.", project=project)
    house.work()
    assert "it breaks" in told(house.ask("session.started", session="s-2", project=project, source="startup"))
    (tmp_path / "legacy.py").unlink()
    assert house.ask("session.started", session="s-3", project=project, source="startup") == []


def test_a_name_that_never_was_a_file_keeps_nothing_back(house: MemoryHarness, tmp_path) -> None:
    house.turn("From now on deploy to fly.io.", project=str(tmp_path))
    house.work()
    assert "fly.io" in told(house.ask("session.started", session="s-2", project=str(tmp_path), source="startup"))


def test_a_handover_is_looked_at_again_before_it_is_told(house: MemoryHarness) -> None:
    house.turn("Rewrite the importer")
    for task in ("write the parser", "measure it"):
        house.hook("task.created", task=task, subject=task)
    house.hook("gates.triggered", requirements=["met but never in the way"])
    refused(house, "tests", "review")
    house.command("handoff")
    house.hook("task.completed", task="write the parser", subject="write the parser")
    house.hook("gates.satisfied", requirements=[{"name": "tests"}])
    heard = told(house.ask("session.started", session="s-2", source="startup"))
    assert "open task: measure it" in heard
    assert "write the parser" not in heard
    assert "gates still open: review\n" in heard


def test_the_open_gates_of_a_handover_are_the_sessions_figure(house: MemoryHarness) -> None:
    """Those that refused something and were not satisfied since; of an ended session none."""
    house.turn("Rewrite the importer")
    refused(house, "tests", "review")
    assert "- gates still open: review, tests\n" in house.command("handoff")["text"]
    house.hook("session.ended")
    assert "gates" not in house.command("handoff")["text"]
    assert "gates" not in told(house.ask("session.started", session="s-2", source="startup"))


def test_the_newer_of_two_opposites_holds(house: MemoryHarness) -> None:
    house.turn("Always squash commits before merging.")
    house.turn("Never squash commits before merging.", session="s-2")
    heard = told(house.ask("session.started", session="s-3", source="startup"))
    assert "Never squash" in heard
    assert "Always squash" not in heard
