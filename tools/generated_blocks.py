"""Copies values from code into files that cannot import it; with --check it only reports stale ones.

Both hook clients get the names of environment variables, core/caller.py the agents' programs, ARCHITECTURE.md the
stages of a batch, and gates.md the requirement kinds.
"""

import re
import sys
import textwrap
from pathlib import Path

from holdfast.agents import AGENTS
from holdfast.agents.payload_reader import HOOK_ENVIRONMENT
from holdfast.daemon.ingest.pipeline import TRANSITIONS, Stage
from holdfast.features.gates.kinds import KINDS

ROOT = Path(__file__).parents[1]


def in_c() -> str:
    names = textwrap.wrap(", ".join(f'"env.{name}"' for name in HOOK_ENVIRONMENT) + ",", 114)
    return "\n".join(["static const char *const ENVIRONMENT[] = {", *(f"    {line}" for line in names), "};"])


def in_python() -> str:
    lines = textwrap.wrap(" ".join(HOOK_ENVIRONMENT), 110)
    parts = [f'    b"{line} "' for line in lines[:-1]] + [f'    b"{lines[-1]}"']
    return "\n".join(["ENVIRONMENT = (", *parts, ")"])


def agent_programs() -> str:
    programs = " ".join(sorted({agent.program for agent in AGENTS.values() if agent.program}))
    return f'KNOWN_PROGRAMS = "{programs}"'


def in_markdown() -> str:
    """The allowed transitions as a table, readable in a terminal too."""
    ends = [stage.value for stage, following in TRANSITIONS.items() if not following]
    rows = [
        f"| {stage.value} | {after.value} | {why} |"
        for stage, following in TRANSITIONS.items()
        for after, why in following.items()
    ]
    head = [
        "<!-- stages: from src/holdfast/daemon/ingest/pipeline.py -->",
        "",
        "| a batch that is | becomes | when |",
        "|---|---|---|",
    ]
    return "\n".join(
        [*head, *rows, "", f"It begins {Stage.ACCEPTED.value} and ends {' or '.join(ends)}.", "<!-- end of stages -->"]
    )


def requirement_kinds() -> str:
    rows = [f"| `{kind.name}` | {kind.summary} |" for kind in KINDS.values()]
    head = ["<!-- kinds: from src/holdfast/features/gates/kinds -->", "", "| type | meaning |", "|---|---|"]
    return "\n".join([*head, *rows, "", "<!-- end of kinds -->"])


BLOCKS = {
    ROOT / "native" / "hook.c": (r"static const char \*const ENVIRONMENT\[\] = \{.*?\n\};", in_c),
    ROOT / "src" / "holdfast" / "hook.py": (r"ENVIRONMENT = \(.*?\n\)", in_python),
    ROOT / "src" / "holdfast" / "core" / "caller.py": (r"KNOWN_PROGRAMS = (?:\(.*?\n\)|\"[^\"]*\")", agent_programs),
    ROOT / "ARCHITECTURE.md": (r"<!-- stages: .*?<!-- end of stages -->", in_markdown),
    ROOT / "docs" / "features" / "gates.md": (r"<!-- kinds: .*?<!-- end of kinds -->", requirement_kinds),
}


def main() -> None:
    stale = []
    for file, (pattern, written) in BLOCKS.items():
        text = file.read_text()
        found = re.search(pattern, text, flags=re.S)
        if not found:
            sys.exit(f"{file}: the block to be written is not there")
        fresh = text[: found.start()] + written() + text[found.end() :]
        if fresh != text:
            stale.append(file)
            if "--check" not in sys.argv:
                file.write_text(fresh)
    if stale and "--check" in sys.argv:
        sys.exit(f"stale: {', '.join(file.name for file in stale)}; run: python tools/generated_blocks.py")


if __name__ == "__main__":
    main()
