"""Named statements in plain files: `queries(dialect)["head"]`; migrations in order."""

import re
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_MIGRATION = re.compile(r"^(\d{4})_\w+\.sql$")


@cache
def load_queries(dialect: str) -> dict[str, str]:
    # `split` with a group gives what stands before the first name, then names and statements in turn.
    parts = _NAME.split(_read_sql(dialect, "queries.sql"))[1:]
    return {name: _strip_comments(sql) for name, sql in zip(parts[::2], parts[1::2], strict=True)}


def load_migrations(dialect: str) -> list[tuple[int, str]]:
    """(number, statements), forward only."""
    files = (f.name for f in resources.files(__package__).joinpath(dialect).iterdir())
    return sorted((int(m[1]), _read_sql(dialect, name)) for name in files if (m := _MIGRATION.match(name)))


def _strip_comments(sql: str) -> str:
    return "\n".join(line for line in sql.splitlines() if not line.startswith("--")).strip()


def _read_sql(dialect: str, name: str) -> str:
    return resources.files(__package__).joinpath(dialect, name).read_text(encoding="utf-8")
