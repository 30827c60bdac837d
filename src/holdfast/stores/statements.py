"""Loads named SQL statements and migrations from files."""

import re
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_MIGRATION = re.compile(r"^(\d{4})_\w+\.sql$")


@cache
def load_queries() -> dict[str, str]:
    # `split` with a group returns the text before the first name, then names and statements in turn.
    parts = _NAME.split(_read_sql("queries.sql"))[1:]
    return {name: _strip_comments(sql) for name, sql in zip(parts[::2], parts[1::2], strict=True)}


def load_migrations() -> list[tuple[int, str]]:
    """(number, statements), forward only."""
    files = (f.name for f in _sql_folder().iterdir())
    return sorted((int(m[1]), _read_sql(name)) for name in files if (m := _MIGRATION.match(name)))


def _strip_comments(sql: str) -> str:
    return "\n".join(line for line in sql.splitlines() if not line.startswith("--")).strip()


def _read_sql(name: str) -> str:
    return _sql_folder().joinpath(name).read_text(encoding="utf-8")


def _sql_folder() -> Traversable:
    return resources.files(__package__).joinpath("sql")
