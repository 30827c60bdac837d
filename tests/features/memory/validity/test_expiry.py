"""When a statement ends by itself, in the wordings people use for it."""

from datetime import date

import pytest

from holdfast.features.memory.validity.expiry import end_of

WEDNESDAY = date(2026, 3, 4)


@pytest.mark.parametrize(
    ("text", "last_day"),
    [
        ("until march 20 all deploys need an ok", "2026-03-20"),
        ("until April no schema changes", "2026-03-31"),
        ("from now until April we use mocks", "2026-03-31"),
        ("until march 2027 we stay on 14", "2027-02-28"),
        ("until february we stay on 14", "2027-01-31"),
        ("till the end of March nobody merges", "2026-03-31"),
        ("until 2027 the partners get fixes only", "2026-12-31"),
        ("until the 15th Carla reviews", "2026-03-15"),
        ("until the 3rd Carla reviews", "2026-04-03"),
        ("until wednesday the box is down", "2026-03-11"),
        ("the mirror is back by Friday, use the copy", "2026-03-06"),
        ("until the end of the week the old key works", "2026-03-08"),
        ("until next month we pay in cash", "2026-03-31"),
        ("for the next two weeks every deploy is announced", "2026-03-18"),
        ("for a couple of weeks the box is slow", "2026-03-18"),
        ("for ten days all mails go to the sink", "2026-03-14"),
        ("bis Freitag bleibt der Import aus", "2026-03-06"),
        ("bis Ende März keine Deploys", "2026-03-31"),
        ("bis 20.3. bleibt alles", "2026-03-20"),
        ("die nächsten zwei Wochen geht alles über Anna", "2026-03-18"),
        ("hasta abril usamos el viejo", "2026-03-31"),
        ("hasta fin de mes solo lectura", "2026-03-31"),
        ("durante las próximas dos semanas todo pasa por Ana", "2026-03-18"),
        ("jusqu'à la fin du mois on gèle tout", "2026-03-31"),
        ("les deux prochaines semaines tout passe par Ana", "2026-03-18"),
        ("até sexta não mexam no banco", "2026-03-06"),
        ("до конца месяца только исправления", "2026-03-31"),
        ("в ближайшие две недели релизов нет", "2026-03-18"),
        ("三月底之前不要合并", "2026-03-31"),
        ("接下来两周不要改接口", "2026-03-18"),
        ("4月まで旧APIを使う", "2026-03-31"),
    ],
)
def test_an_end_is_understood(text: str, last_day: str) -> None:
    assert str(end_of(text, WEDNESDAY)) == last_day


@pytest.mark.parametrize(
    "text",
    [
        "logs are kept for two weeks",
        "a password expires in 90 days",
        "invoices are paid by the 15th",
        "timesheets are in by Friday, every week",
        "main is frozen for two weeks before a release",
        "no refactoring until the release",
        "from this week on all services log json",
        "today we moved to pnpm",
        "we dropped moment this week",
        "prod is on 3.13 as of tonight",
        "effective today the api is v2 only",
        "heute haben wir auf bun umgestellt",
        "今天起用 pnpm",
        "今日からpnpmを使う",
        "we wait until we may upgrade",
    ],
)
def test_a_length_a_deadline_or_an_event_is_no_day(text: str) -> None:
    assert end_of(text, WEDNESDAY) is None
