"""Turns a step of the day into the payloads that Claude Code, Codex and Gemini CLI send."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from holdfast.setup.demo.moments import Cast, Moment, Step
from holdfast.setup.demo.repositories import as_text

Payload = dict[str, Any]
Said = tuple[str, Payload]
"""(the agent's event name, its payload)"""


@dataclass(frozen=True)
class Stage:
    """Where a session takes place."""

    cast: Cast
    root: Path
    home: Path


class Dialect(Protocol):
    program: str

    def env(self, stage: Stage) -> dict[str, str]: ...
    def transcript(self, stage: Stage) -> Path: ...
    def hook_payloads(self, stage: Stage, moment: Moment, done: Payload) -> Iterator[Said]: ...


def iso_time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def path_of(stage: Stage, step: Step, what: str) -> str:
    return str(stage.root / step[what])


def command_of(step: Step) -> str:
    return step["shell"] if "shell" in step else f"git {step['git']}"


class ClaudeCode:
    program = "claude"

    def env(self, stage: Stage) -> dict[str, str]:
        return {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(stage.root)}

    def transcript(self, stage: Stage) -> Path:
        # Claude Code names a project's folder by its path, with dashes for slashes and dots.
        folder = str(stage.root).replace("/", "-").replace(".", "-")
        return stage.home / ".claude" / "projects" / folder / f"{stage.cast.id}.jsonl"

    def hook_payloads(self, stage: Stage, moment: Moment, done: Payload) -> Iterator[Said]:
        common = {
            "session_id": stage.cast.id, "transcript_path": str(self.transcript(stage)), "cwd": str(stage.root),
            **({"prompt_id": f"{stage.cast.id[:24]}{moment.turn:012d}"} if moment.turn else {}),
            **({"agent_id": moment.lane, "agent_type": moment.lane_type} if moment.lane else {}),
        }  # fmt: skip
        for event, fields in self._hook_payloads(stage, moment, done):
            yield event, {**common, "hook_event_name": event, **fields}

    def _hook_payloads(self, stage: Stage, moment: Moment, done: Payload) -> Iterator[Said]:
        step, mode = moment.step, {"permission_mode": "default"}
        match moment.what:
            case "start":
                yield "SessionStart", {"source": stage.cast.source, "model": stage.cast.model}
            case "prompt":
                yield "UserPromptSubmit", {"prompt": step["prompt"], **mode}
            case "before":
                yield "PreToolUse", {**self._tool(stage, step), "tool_use_id": moment.call, **mode}
            case "after":
                yield self._after(stage, moment, done)
            case "permission":
                yield "PermissionRequest", {**self._tool(stage, step), **mode}
                note = {"message": "Claude needs your permission to use Bash", "notification_type": "permission_prompt"}
                yield "Notification", note
            case "says":
                yield "Stop", {"stop_hook_active": bool(step.get("again")), "last_assistant_message": step["says"],
                               "background_tasks": [], **mode}  # fmt: skip
            case "lane_start":
                yield "SubagentStart", {}
            case "lane_stop":
                yield "SubagentStop", {"stop_hook_active": False, "last_assistant_message": step["says"], **mode}
            case "compact":
                yield "PreCompact", {"trigger": "auto", "custom_instructions": None}
                yield "PostCompact", {"trigger": "auto", "compact_summary": f"<summary>{step['compact']}</summary>"}
                yield "SessionStart", {"source": "compact", "model": stage.cast.model}
            case "end":
                yield "SessionEnd", {"reason": step["end"]}

    def _tool(self, stage: Stage, step: Step) -> Payload:
        name, tool_input = self._call(stage, step)
        return {"tool_name": name, "tool_input": tool_input}

    def _call(self, stage: Stage, step: Step) -> tuple[str, Payload]:
        match step:
            case {"read": _}:
                return "Read", {"file_path": path_of(stage, step, "read")}
            case {"edit": _, "old": old, "new": new}:
                return "Edit", {"file_path": path_of(stage, step, "edit"), "old_string": old, "new_string": new}
            case {"write": _, "text": text}:
                return "Write", {"file_path": path_of(stage, step, "write"), "content": text}
            case {"search": pattern}:
                return "Grep", {"pattern": pattern, "path": str(stage.root), "output_mode": "files_with_matches"}
            case {"skill": skill}:
                return "Skill", {"skill": skill}
            case {"web": url}:
                return "WebFetch", {"url": url, "prompt": step.get("for", "What does it say?")}
            case {"ask": question}:
                options = [{"label": option, "description": ""} for option in step["options"]]
                return "AskUserQuestion", {"questions": [{"question": question, "options": options}]}
            case {"browser": name}:
                return f"mcp__playwright__browser_{name}", dict(step.get("given", {}))
            case {"task": task}:
                return "Agent", {"description": task, "prompt": step.get("prompt", task), "subagent_type": step["type"]}
            case {"permission": command} | {"running": command}:
                return "Bash", {"command": command, "description": step.get("for", "")}
        return "Bash", {"command": command_of(step), "description": step.get("for", "")}

    def _after(self, stage: Stage, moment: Moment, done: Payload) -> Said:
        fields = {**self._tool(stage, moment.step), "tool_use_id": moment.call, "duration_ms": moment.ms,
                  "permission_mode": "default"}  # fmt: skip
        if moment.step.get("fails"):
            error = f"Exit code {moment.step['fails']}\n{moment.step.get('out', '')}"
            return "PostToolUseFailure", {**fields, "error": error, "is_interrupt": False}
        return "PostToolUse", {**fields, "tool_response": self._response(moment.step, done)}

    def _response(self, step: Step, done: Payload) -> Any:
        if "edit" in step or "write" in step:
            return {"filePath": done["file"], "originalFile": done["before"], "structuredPatch": done["hunks"],
                    "userModified": False}  # fmt: skip
        if "read" in step:
            text = done["text"]
            return {"type": "text", "file": {"filePath": done["file"], "content": text, "numLines": text.count("\n")}}
        if "ask" in step:
            return {"answers": {step["ask"]: step["chosen"]}}
        if "browser" in step:
            return [{"type": "text", "text": step["out"]}]
        if "task" in step:
            return {"status": "completed", "content": [{"type": "text", "text": step["says"]}]}
        out = done.get("out") or step.get("out", "")
        return {"stdout": out, "stderr": "", "interrupted": False, "isImage": False}


class Codex:
    program = "codex"

    def env(self, stage: Stage) -> dict[str, str]:
        return {"CODEX_HOME": str(stage.home / ".codex")}

    def transcript(self, stage: Stage) -> Path:
        day = datetime.fromtimestamp(stage.cast.begins / 1000, UTC)
        name = f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{stage.cast.id}.jsonl"
        return stage.home / ".codex" / "sessions" / f"{day:%Y}" / f"{day:%m}" / f"{day:%d}" / name

    def hook_payloads(self, stage: Stage, moment: Moment, done: Payload) -> Iterator[Said]:
        common = {
            "session_id": stage.cast.id, "transcript_path": str(self.transcript(stage)), "cwd": str(stage.root),
            "model": stage.cast.model, "permission_mode": "default",
            **({"turn_id": f"{stage.cast.id[:24]}{moment.turn:012d}"} if moment.turn else {}),
        }  # fmt: skip
        for event, fields in self._hook_payloads(stage, moment, done):
            yield event, {**common, "hook_event_name": event, **fields}

    def _hook_payloads(self, stage: Stage, moment: Moment, done: Payload) -> Iterator[Said]:
        step = moment.step
        match moment.what:
            case "start":
                yield "SessionStart", {"source": stage.cast.source}
            case "prompt":
                yield "UserPromptSubmit", {"prompt": step["prompt"]}
            case "before":
                yield "PreToolUse", {**self._tool(step), "tool_use_id": moment.call}
            case "after":
                response = self._response(step, done)
                fields = {**self._tool(step), "tool_use_id": moment.call, "tool_response": response}
                yield "PostToolUse", fields
            case "permission":
                yield "PermissionRequest", self._tool(step)
            case "says":
                yield "Stop", {"stop_hook_active": bool(step.get("again")), "last_assistant_message": step["says"]}
            case "interrupt":
                yield "Interrupt", {}
            case "end":
                yield "SessionEnd", {"reason": step["end"]}

    def _tool(self, step: Step) -> Payload:
        match step:
            case {"edit": path, "old": old, "new": new}:
                lines = [f"-{line}" for line in old.splitlines()] + [f"+{line}" for line in new.splitlines()]
                text = "\n".join([f"*** Update File: {path}", "@@", *lines])
            case {"write": path, "text": text}:
                text = "\n".join([f"*** Add File: {path}", *(f"+{line}" for line in text.splitlines())])
            case {"read": path}:
                return {"tool_name": "Bash", "tool_input": {"command": f"sed -n 1,200p {path}"}}
            case {"search": pattern}:
                return {"tool_name": "Bash", "tool_input": {"command": f"rg -n {pattern!r}"}}
            case {"permission": command} | {"running": command}:
                return {"tool_name": "Bash", "tool_input": {"command": command}}
            case _:
                return {"tool_name": "Bash", "tool_input": {"command": command_of(step)}}
        patch = f"*** Begin Patch\n{text}\n*** End Patch"
        return {"tool_name": "apply_patch", "tool_input": {"command": patch}}

    def _response(self, step: Step, done: Payload) -> str:
        if "edit" in step or "write" in step:
            letter, path = ("M", step["edit"]) if "edit" in step else ("A", step["write"])
            return (
                f"Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\n{letter} {path}\n"
            )
        value: str = done.get("text") or done.get("out") or step.get("out", "")
        return value


class Gemini:
    program = "gemini"

    def env(self, stage: Stage) -> dict[str, str]:
        return {"GEMINI_SESSION_ID": stage.cast.id, "GEMINI_PROJECT_DIR": str(stage.root)}

    def transcript(self, stage: Stage) -> Path:
        return stage.home / ".gemini" / "tmp" / stage.root.name / "chats" / f"session-{stage.cast.id[:8]}.jsonl"

    def hook_payloads(self, stage: Stage, moment: Moment, done: Payload) -> Iterator[Said]:
        common = {"session_id": stage.cast.id, "transcript_path": str(self.transcript(stage)), "cwd": str(stage.root)}
        for event, fields in self._hook_payloads(stage, moment, done):
            yield event, {**common, "hook_event_name": event, "timestamp": iso_time(moment.at), **fields}

    def _hook_payloads(self, stage: Stage, moment: Moment, done: Payload) -> Iterator[Said]:
        step = moment.step
        match moment.what:
            case "start":
                yield "SessionStart", {"source": stage.cast.source}
            case "prompt":
                yield "BeforeAgent", {"prompt": step["prompt"]}
            case "before":
                yield "BeforeTool", self._tool(stage, step)
            case "after":
                yield "AfterTool", {**self._tool(stage, step), "tool_response": self._response(step, done)}
            case "permission":
                note = {
                    "notification_type": "ToolPermission",
                    "message": "Tool Confirm Shell Command requires execution",
                }
                yield "Notification", {**note, "details": {"type": "exec", "command": step["permission"]}}
            case "says":
                fields = {"prompt": "", "prompt_response": step["says"], "stop_hook_active": bool(step.get("again"))}
                yield "AfterAgent", fields
            case "end":
                yield "SessionEnd", {"reason": step["end"]}

    def _tool(self, stage: Stage, step: Step) -> Payload:
        match step:
            case {"read": _}:
                return {"tool_name": "read_file", "tool_input": {"file_path": path_of(stage, step, "read")}}
            case {"edit": _, "old": old, "new": new}:
                tool_input = {"file_path": path_of(stage, step, "edit"), "old_string": old, "new_string": new}
                return {"tool_name": "replace", "tool_input": tool_input}
            case {"write": _, "text": text}:
                tool_input = {"file_path": path_of(stage, step, "write"), "content": text}
                return {"tool_name": "write_file", "tool_input": tool_input}
            case {"search": pattern}:
                return {"tool_name": "grep_search", "tool_input": {"pattern": pattern}}
            case {"skill": skill}:
                return {"tool_name": "activate_skill", "tool_input": {"name": skill}}
            case {"running": command}:
                return {"tool_name": "run_shell_command", "tool_input": {"command": command}}
        return {"tool_name": "run_shell_command", "tool_input": {"command": command_of(step)}}

    def _response(self, step: Step, done: Payload) -> Payload:
        if "edit" in step or "write" in step:
            path = step.get("edit") or step.get("write")
            shown = {"fileName": path, "filePath": done["file"], "fileDiff": as_text(str(path), done),
                     "originalContent": done["before"], "newContent": done["after"]}  # fmt: skip
            return {
                "llmContent": f"Successfully modified file: {done['file']} (1 replacements).",
                "returnDisplay": shown,
            }
        out = done.get("text") or done.get("out") or step.get("out", "")
        code = f"\nExit Code: {step['fails']}" if step.get("fails") else ""
        content = out if "read" in step else f"<untrusted_context>\nOutput: {out}{code}\n</untrusted_context>"
        return {"llmContent": content, "returnDisplay": out}


DIALECTS: dict[str, Dialect] = {"claude-code": ClaudeCode(), "codex": Codex(), "gemini": Gemini()}
