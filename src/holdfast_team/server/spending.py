"""A team's spending and its budgets."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from holdfast.core.times import DAY
from holdfast_team import core
from holdfast_team.cost import price_tokens, tokens_counted
from holdfast_team.protocol import LONGEST_NAME, BudgetRequest
from holdfast_team.server.tenancy import Act, Refused, need_text

TOLD_AT = (80, 100)
"""Percentages of a budget at which its people are informed, once a week each."""


ADD_SPENDING = """
insert into spending as s (tenant, week, person, project, model, kind, tokens)
select %(tenant)s, r.week, %(by)s, r.project, r.model, r.kind, r.tokens
from json_to_recordset(%(spent)s::json) as r(week date, project text, model text, kind text, tokens bigint)
on conflict (tenant, week, person, project, model, kind) do update set tokens = s.tokens + excluded.tokens
"""


def sum_rows(spent: Sequence[core.Spending], now: int) -> list[dict[str, Any]]:
    sums: dict[tuple[str, str, str, str], int] = {}
    for one in spent:
        for kind, tokens in one.tokens.items():
            # Whole days for the cache of `_week_text`; a clock that is ahead counts as the server's.
            key = _week_text(min(max(one.at, 0), now) // DAY), one.project, one.model[:LONGEST_NAME], kind
            sums[key] = sums.get(key, 0) + tokens
    names = ("week", "project", "model", "kind")
    return [{**dict(zip(names, key, strict=True)), "tokens": n} for key, n in sorted(sums.items())]


@lru_cache(64)
def _week_text(day: int) -> str:
    return week_of(day * DAY, (day + 1) * DAY).isoformat()


def week_of(at: int, now: int) -> date:
    """The Monday. A machine's clock that is ahead counts as the server's; one that is behind may be late news."""
    day = datetime.fromtimestamp(min(max(at, 0), now) / 1000, UTC).date()
    return day - timedelta(days=day.weekday())


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def set_budget(act: Act, budget: BudgetRequest) -> dict[str, str]:
    need_text("a budget's name", budget.name)
    # Exactly one of the two.
    if (budget.tokens > 0) == (budget.usd > 0):
        raise Refused(422, "a budget is a number of tokens or of dollars a week, above 0")
    about = msgspec.structs.asdict(budget)
    await act.execute(SAVE_BUDGET, **about, micro_usd=round(budget.usd * 1_000_000))
    await act.audit("budget.set", about)
    return {"name": budget.name}


SAVE_BUDGET = """
insert into budgets (tenant, name, person, project, model, tokens, micro_usd, by_person, at)
values (%(tenant)s, %(name)s, %(person)s, %(project)s, %(model)s, %(tokens)s, %(micro_usd)s, %(by)s, %(now)s)
on conflict (tenant, name) do update set person = excluded.person, project = excluded.project, model = excluded.model,
  tokens = excluded.tokens, micro_usd = excluded.micro_usd, by_person = excluded.by_person, at = excluded.at,
  told_week = '1970-01-01', told_percent = 0
"""


async def remove_budget(act: Act, name: str) -> dict[str, str]:
    if not await act.execute("delete from budgets where tenant = %(tenant)s and name = %(name)s", name=name):
        raise Refused(404, f"there is no budget {name[:60]!r}", "See: holdfast team budget list")
    await act.audit("budget.removed", {"name": name})
    return {"name": name}


async def list_budgets(act: Act) -> list[dict[str, Any]]:
    """Each with what was spent of it this week, and its share."""
    rows = await act.all(READ_BUDGETS, week=week_of(act.now, act.now))
    return [{**_without(row, "spent", "told_week", "told_percent"), **_use_of(row, act.now)} for row in rows]


READ_BUDGETS = """
select b.name, b.person, b.project, p.remote, b.model, b.tokens, b.micro_usd, b.by_person, b.at, b.told_week, b.told_percent,
  coalesce((
    select json_agg(json_build_object('model', s.model, 'kind', s.kind, 'tokens', s.tokens)) from (
      select model, kind, sum(tokens) as tokens from spending
      where tenant = b.tenant and week = %(week)s and b.person in ('', person) and b.project in ('', project)
        and b.model in ('', model)
      group by model, kind) s
  ), '[]') as spent
from budgets b left join projects p on p.tenant = b.tenant and p.project = b.project
where b.tenant = %(tenant)s order by b.name
"""


def _use_of(row: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Models without a price count as nothing in a dollar budget, and are named."""
    by_model: dict[str, dict[str, int]] = {}
    for one in row["spent"]:
        by_model.setdefault(one["model"], {})[one["kind"]] = int(one["tokens"])
    used = sum(tokens_counted(kinds) for kinds in by_model.values())
    priced = {model: price_tokens(model, kinds, now) for model, kinds in by_model.items()}
    usd = sum(one for one in priced.values() if one is not None)
    percent = 100 * usd * 1_000_000 / row["micro_usd"] if row["micro_usd"] else 100 * used / row["tokens"]
    unpriced = sorted(model for model, one in priced.items() if one is None)
    return {"used_tokens": used, "used_usd": usd, "percent": int(percent), "unpriced": unpriced}


def _without(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


async def tell_budgets(act: Act) -> None:
    """After spending was added in this transaction."""
    week = week_of(act.now, act.now)
    for row in await act.all(READ_BUDGETS, week=week):
        percent = max((step for step in TOLD_AT if _use_of(row, act.now)["percent"] >= step), default=0)
        # With two batches at once, whoever raises the row first informs.
        if percent and await act.one(TOLD_BUDGET, name=row["name"], week=week, percent=percent):
            told = {"name": row["name"], "percent": percent, "text": describe_budget(row)}
            await act.tell("budget", told, by=row["by_person"], person=row["person"])


TOLD_BUDGET = """
update budgets set told_week = %(week)s, told_percent = %(percent)s where tenant = %(tenant)s and name = %(name)s
and (told_week < %(week)s or told_percent < %(percent)s) returning name
"""


def describe_budget(row: Mapping[str, Any]) -> str:
    limit = f"${row['micro_usd'] / 1_000_000:.2f}" if row["micro_usd"] else f"{row['tokens']} tokens"
    return f"{limit} a week for {', '.join(_scope_of(row)) or 'the whole team'}"


def _scope_of(row: Mapping[str, Any]) -> Iterable[str]:
    if row["person"]:
        yield str(row["person"])
    if row["project"]:
        yield str(row["remote"] or row["project"])
    if row["model"]:
        yield str(row["model"])
