"""The feature alone in this process: the real intake, engine, store and jobs, with a clock that tests set."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.app import App, build_app
from holdfast.core.decision import Delivery
from holdfast.core.engine import Outcome
from holdfast.core.feature import Call, JobCall
from holdfast.core.ids import delivery_key
from holdfast.core.job import ClaimedJob, Job
from holdfast.core.ports import Doc, Ref
from holdfast.core.replay import Rebuild
from holdfast.daemon.children import run_child
from holdfast.daemon.files import put_file
from holdfast.features import uat
from holdfast.features.uat import files
from holdfast.features.uat.record import Record, load_record
from holdfast.paths import Paths

SESSION = "claude-session-abc123def456"
SEED_BEGAN = 1_751_725_822_123
"""2025-07-05T14:30:22.123Z, when the seed's example began."""
NAVIGATE, FILL, CLICK = (f"mcp__playwright__playwright_{name}" for name in ("navigate", "fill", "click"))
SNAPSHOT, SHOT = "mcp__playwright__browser_snapshot", "mcp__playwright__browser_take_screenshot"
URL = "https://vrp-system-v4.pages.dev/auth/login"
FAR = 1 << 52
PNG = b"\x89PNG\r\n\x1a\n"

LOGIN = """\
name: login-flow
description: User authentication flow testing
base_url: https://vrp-system-v4.pages.dev
estimated_ms: 45000
steps:
  - {action: navigate, description: Navigate to login page, arguments: {url: "*/auth/login*"}}
  - {action: fill, description: Fill login credentials}
  - {action: click, description: Submit the form}
  - {action: verify, description: The dashboard is there}
  - {action: screenshot, description: Keep a picture}
assertions:
  - {description: The user is welcomed, step: 4, contains: Welcome}
health_checks:
  - {type: page_load, step: 1}
"""


class Lab:
    def __init__(self, root: Path, project: Path | None = None) -> None:
        self.project = project or root / "project"
        self.project.mkdir(parents=True, exist_ok=True)
        self.problems: list[tuple[str, Exception]] = []
        report = lambda feature, _event, error: self.problems.append((feature, error))  # noqa: E731
        self.app: App = build_app(Paths(root / "state").prepare(), features=(uat.FEATURE,), report=report)
        self.now = SEED_BEGAN
        self._calls = itertools.count(1)

    def close(self) -> None:
        self.app.store.close()
        assert not self.problems, self.problems

    # ── as an agent ────────────────────────────────────────────────────────────────────────────────────────────────

    def hook(
        self, event: str, *, at: int | None = None, session: str = SESSION, mode: str = "ask", **fields: Any
    ) -> Outcome:
        self.now = self.now if at is None else at
        body = {
            "hook_event_name": event,
            "session_id": session,
            "transcript_path": "/t",
            "cwd": str(self.project),
            **fields,
        }
        env = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(self.project)}
        delivery = Delivery(
            key=delivery_key(self.now), agent="claude-code", event=event, at=self.now, cwd=str(self.project), env=env,
            mode=mode, body=json.dumps(body).encode(),
        )  # fmt: skip
        return self.app.engine.handle([delivery])[0]

    def before(self, tool: str, call: str = "", **given: Any) -> Outcome:
        at, session = given.pop("at", None), given.pop("session", SESSION)
        return self.hook(
            "PreToolUse",
            at=at,
            session=session,
            tool_name=tool,
            tool_input=given,
            tool_use_id=call or f"c{next(self._calls)}",
        )

    def after(
        self, tool: str, call: str, response: Any = "ok", *, at: int | None = None, ms: int | None = 10, **given: Any
    ) -> Outcome:
        took = {} if ms is None else {"duration_ms": ms}
        text = response if isinstance(response, str) else json.dumps(response)
        parts = [{"type": "text", "text": text}]
        session = given.pop("session", SESSION)
        return self.hook(
            "PostToolUse",
            at=at,
            session=session,
            tool_name=tool,
            tool_input=given,
            tool_use_id=call,
            tool_response=parts,
            **took,
        )

    def tool(self, tool: str, response: Any = "ok", *, took: int = 100, session: str = SESSION, **given: Any) -> None:
        call = f"c{next(self._calls)}"
        self.before(tool, call, session=session, **given)
        self.after(tool, call, response, at=self.now + took, ms=took, session=session, **given)

    def failed(self, tool: str, error: str, **given: Any) -> None:
        call = f"c{next(self._calls)}"
        self.before(tool, call, **given)
        self.now += 50
        self.hook("PostToolUseFailure", tool_name=tool, tool_input=given, tool_use_id=call, error=error, mode="tell")

    # ── as a person ────────────────────────────────────────────────────────────────────────────────────────────────

    def scenario(self, text: str = LOGIN, name: str = "login-flow") -> None:
        """Written and known."""
        folder = self.project / "uat" / "scenarios"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(text)
        self.hook("SessionStart", source="startup", mode="start")
        self.work()

    def command(self, name: str, **args: Any) -> Any:
        reader = self.app.store.reader()
        ask = uat.FEATURE.commands[name](self._call(reader, args))
        if ask.events:
            self.app.engine.handle(ask.events)
        return ask.answer(reader) if callable(ask.answer) else ask.answer

    def view(self, name: str, **args: Any) -> Any:
        return uat.FEATURE.views[name](self._call(self.app.store.reader(), args))

    def _call(self, reader: Any, args: Mapping[str, Any]) -> Call:
        settings = self.app.settings.for_project(str(self.project)).get("uat")
        return Call(
            args=args, reader=reader, settings=settings, now=self.now, session=SESSION, project=str(self.project)
        )

    # ── what became of it ──────────────────────────────────────────────────────────────────────────────────────────

    def work(self) -> int:
        """Every job that waits, whenever it is due, and those they lead to."""
        done, store = 0, self.app.store
        while True:
            with store.transaction():
                claimed = store.claim("lab", FAR, 60_000, 1, tuple(uat.FEATURE.jobs))
            if not claimed:
                return done
            job = claimed[0]
            events = list(uat.FEATURE.jobs[job.kind](self._job_call(job)))
            self.app.engine.handle(events, also=lambda store, job=job: store.finish(job.id, "lab"))
            done += 1

    def _job_call(self, job: ClaimedJob) -> JobCall:
        return JobCall(
            job=job,
            reader=self.app.store.reader(),
            settings=lambda project: self.app.settings.for_project(project).get("uat"),
            now=self.now,
            state_dir=self.project,
            cancelled=lambda: False,
            run=run_child,
            put=put_file,
        )

    def tend(self) -> None:
        with self.app.store.transaction():
            self.app.store.enqueue([Job(kind="uat.tend", dedupe="uat.tend")], self.now)
        self.work()

    def doc(self, kind: str, key: str) -> Doc | None:
        return self.app.store.reader().state(Ref(kind, key))

    @property
    def session(self) -> Doc:
        return self.doc("uat-session", SESSION) or {"active": "", "runs": [], "tail": ""}

    @property
    def run(self) -> Doc:
        """The session's latest."""
        found = self.doc("uat", self.session["runs"][-1])
        assert found is not None
        return found

    @property
    def record(self) -> Record:
        return load_record(self.app.store.reader(), self.run["id"])

    @property
    def document(self) -> dict[str, Any]:
        return files.build_run_document(self.record)

    def replayed(self) -> list[str]:
        """P5: what differs from the log; nothing may."""
        rebuild = Rebuild([uat.FEATURE], self.app.store.reader())
        rebuild.read()
        return rebuild.differences()

    @property
    def file(self) -> Path:
        return self.project / "uat" / "sessions" / f"claude-session-{SESSION}.json"
