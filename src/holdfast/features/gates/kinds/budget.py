"""Kind `budget`: tokens or money for a turn, a session, a day or a project."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from holdfast.features.gates.fields import Part, Spec
from holdfast.features.gates.kinds.base import Finding, RequirementKind, settings_of
from holdfast.features.gates.rules.triggers import actions
from holdfast.features.gates.state.spending import Cells, money_of, price_table, tokens_of
from holdfast.features.gates.strictness import is_at_most, is_lower_limit

if TYPE_CHECKING:
    from holdfast.features.gates.rules.checker import Checker
    from holdfast.features.gates.rules.triggers import Rule
    from holdfast.features.gates.settings import Requirement

_SPANS = {"turn": "in this turn", "session": "in this session", "day": "today (UTC)", "project": "in this project"}


class BudgetSettings(Part):
    tokens: Annotated[int, Meta(ge=0, description="For type budget: the most tokens of all kinds; 0 = no limit.")] = 0
    usd: Annotated[float, Meta(ge=0, description="For type budget: the most money, by list prices or your own.")] = 0.0
    per: Annotated[
        Literal["turn", "session", "day", "project"],
        Meta(description="What a budget is for: the turn, the session, this project today (UTC), this project in all."),
    ] = "session"
    warn_at: Annotated[float, Meta(gt=0, le=1, description="The part of a budget from which it warns.")] = 0.8


class Budget(RequirementKind):
    name = "budget"
    summary = "Tokens or money (`tokens`, `usd`, `per`, `warn_at`)."
    settings = BudgetSettings
    comparisons = {"tokens": is_lower_limit, "usd": is_lower_limit, "warn_at": is_at_most}
    warn_step = 10

    def complete_settings(self, spec: Spec) -> Spec:
        """A budget stops every tool, including those that only read."""
        return {"trigger_tools": sorted(actions()), **spec}

    def check_settings(self, spec: "Requirement") -> None:
        settings = settings_of(BudgetSettings, spec)
        if not settings.tokens and not settings.usd:
            raise ValueError("type budget needs `tokens:` or `usd:`")

    def checked_at(self, spec: "Requirement") -> tuple[bool, bool]:
        return True, False

    def check(self, checker: "Checker", rule: "Rule") -> Finding:
        settings = settings_of(BudgetSettings, rule.spec)
        cells = checker.spending(settings.per)
        parts = [_tokens_used(settings, cells)] if settings.tokens else []
        parts += [_money_used(settings, cells)] if settings.usd else []
        # The limit that is used up further decides.
        percent, why = max(parts)
        if percent >= 100:
            return checker.approved(rule) or Finding(rule, False, f"the budget is used up: {why}", percent)
        return Finding(rule, True, why, percent)

    def warn_from(self, rule: "Rule") -> float:
        return int(settings_of(BudgetSettings, rule.spec).warn_at * 100)

    def warning(self, finding: Finding) -> str:
        return f"{finding.rule.name}: {finding.why}; tool calls are refused when it is used up."

    def scope_of(self, rule: "Rule") -> str:
        """A budget is spent within its `per`; its scope means nothing."""
        return settings_of(BudgetSettings, rule.spec).per


def _tokens_used(settings: BudgetSettings, cells: Cells) -> tuple[int, str]:
    used = tokens_of(cells)
    return used * 100 // settings.tokens, f"{used:,} of {settings.tokens:,} tokens {_SPANS[settings.per]}"


def _money_used(settings: BudgetSettings, cells: Cells) -> tuple[int, str]:
    money = money_of(cells, price_table())
    used = money.micros / 1_000_000
    unknown = f", and what {', '.join(money.unknown[:3])} cost is unknown" if money.unknown else ""
    return int(used * 100 / settings.usd), f"${used:.2f} of ${settings.usd:.2f} {_SPANS[settings.per]}{unknown}"


KIND = Budget()
