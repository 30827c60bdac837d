"""Requirements that have a name everywhere (S2-5), and presets of them. All are off until somebody names them."""

from typing import Any

PLANNED = {"scope": "session", "auto_resolve_skill": ["arch-review", "plan-review"]}
ON_COMMIT = [{"tool": "Bash", "command_pattern": r"\bgit\s+(commit|cherry-pick|revert|merge)\b"}]
ON_PULL_REQUEST = [{"tool": "Bash", "command_pattern": r"\bgh\s+pr\s+create\b"}]

BUILT_IN: dict[str, dict[str, Any]] = {
    "commit_plan": {**PLANNED, "description": "A plan of the change, cut into commits, before the first edit."},
    "adr_reviewed": {**PLANNED, "description": "The plan was held against the architecture decisions."},
    "tdd_planned": {**PLANNED, "description": "The plan says which tests come first."},
    "solid_reviewed": {**PLANNED, "description": "The plan was held against the SOLID principles."},
    "pre_commit_review": {
        "scope": "single_use",
        "trigger_tools": ON_COMMIT,
        "auto_resolve_skill": "pre-commit",
        "description": "A review before each commit.",
    },
    "pre_pr_review": {
        "scope": "single_use",
        "trigger_tools": ON_PULL_REQUEST,
        "auto_resolve_skill": "quality-check",
        "description": "A review before each pull request.",
    },
    "branch_size_limit": {"type": "dynamic", "description": "Branches stay small enough to be reviewed."},
    "protected_branch": {
        "type": "guard",
        "guard_type": "protected_branch",
        "description": "No edits on the branch that everybody builds on.",
    },
    "single_session_per_project": {
        "type": "guard",
        "guard_type": "single_session",
        "description": "One session at a time edits this checkout.",
    },
    "tests_green": {
        "type": "evidence",
        "evidence": [{"command": ["pytest*", "make test*", "npm test*", "npm run test*", "cargo test*", "go test*"]}],
        "description": "Tests passed after the last edit.",
    },
}

ON = {"enabled": True}
STRICT = (
    "commit_plan",
    "adr_reviewed",
    "tdd_planned",
    "solid_reviewed",
    "pre_commit_review",
    "tests_green",
    "protected_branch",
    "branch_size_limit",
)
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "minimal": {"protected_branch": ON},
    "relaxed": {"commit_plan": {**ON, "scope": "branch"}, "protected_branch": ON, "branch_size_limit": ON},
    "strict": dict.fromkeys(STRICT, ON),
}
