"""What was spent in the present period."""

from holdfast.features.project.learning.activity import token_budget
from holdfast.features.project.settings import Tokens
from holdfast.features.project.state import Activity
from tests.factories import NOON


def test_the_budget_counts_its_own_period() -> None:
    days = {"2025-10-01": 5, "2025-10-05": 7, "2025-10-09": 11}
    doing = Activity(project="/p", tokens_by_day={**days, "2025-09-30": 100}, ended=[10, 20])
    assert NOON == 1_760_000_000_000, "Thursday, 2025-10-09"
    used = {
        period: token_budget(doing, Tokens(limit=50, period=period), NOON).used for period in ("day", "week", "month")
    }
    assert used == {"day": 11, "week": 11, "month": 23}
    assert token_budget(doing, Tokens(), NOON).per_session == 15
    assert token_budget(None, Tokens(), NOON).used == 0
