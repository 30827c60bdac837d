"""Names of commands: where each is defined, where it is listed, what it does without a verb, and its older spellings."""

# Command → module. A module is imported when its command is used, so that one command does not load the others.

SECTIONS: dict[str, dict[str, str]] = {
    "See what your agents do": {
        "who": "sessions", "status": "status", "session": "sessions", "search": "search", "history": "history",
        "cost": "cost", "blame": "history",
    },
    "Work in a project": {
        "gate": "gate", "task": "project", "check": "checks", "state": "state", "memory": "memory", "uat": "uat",
        "lease": "project", "handoff": "memory", "undo": "undo",
    },
    "Set up": {
        "up": "doctor", "doctor": "doctor", "config": "config", "team": "team", "dashboard": "serve", "data": "data",
    },
}  # fmt: skip
"""The first screen of help."""

MORE: dict[str, str] = {
    "notify": "notify", "permission": "notify",
    "recall": "past_work", "fix": "past_work", "how": "past_work", "quirks": "past_work", "rescue": "undo", "diff": "undo",
    "files": "files", "demo": "serve", "event": "history", "daemon": "daemon", "install": "installing",
    "uninstall": "installing", "mcp": "serve", "statusline": "sessions", "serve": "serve", "api": "api",
}  # fmt: skip
"""Commands that the first screen only names."""

INNER: dict[str, dict[str, str]] = {
    "data": {
        "verify": "store", "rebuild": "store", "backup": "store", "restore": "store", "erase": "erase",
        "import": "importing", "redact": "erase",
    },
    "search": {"index": "search"},
    "cost": {"price": "cost"},
    "state": {"resolve": "state"},
    "team": {"server": "server"},
}  # fmt: skip
"""Sub-commands that were commands of their own."""

ALIASES = {"data export": "session export"}
OLDER_SPELLINGS = {
    "sessions": "session", "events": "event", "checks": "check", "prices": "cost price",
    **{name: f"{group} {name}" for group, names in INNER.items() for name in names},
}  # fmt: skip

WITHOUT_VERB = {
    "session": "list", "gate": "status", "task": "list", "check": "list", "memory": "list", "lease": "list",
    "config": "show", "team": "status", "daemon": "status", "event": "list", "index": "status", "price": "show",
    "uat": "list", "notify": "list",
}  # fmt: skip
"""What a group of commands does without one: it shows its state. The others show their help."""

MODULES = {
    **{name: module for section in SECTIONS.values() for name, module in section.items()},
    **MORE,
    **{name: module for names in INNER.values() for name, module in names.items()},
}


def respell(words: list[str]) -> tuple[list[str], str]:
    """The same words in today's spelling, and the spelling that they replace, or nothing."""
    older = words[0] if words else ""
    if older not in OLDER_SPELLINGS:
        return words, ""
    return [*OLDER_SPELLINGS[older].split(), *words[1:]], older


def for_help(words: list[str]) -> list[str]:
    """`help X` as `X --help`, `version` as `--version`."""
    if words[:1] == ["help"]:
        return [*words[1:], "--help"]
    return ["--version"] if words == ["version"] else words
