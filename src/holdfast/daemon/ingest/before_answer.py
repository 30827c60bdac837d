"""Lets features do what must be done before a waiting hook is answered."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.core.decision import Delivery
from holdfast.core.feature import Waiting

if TYPE_CHECKING:
    from holdfast.app import App

Report = Callable[[str, Exception], None]


class BeforeAnswer:
    """Calls `Feature.before_answer`; a feature that fails has nothing to say."""

    def __init__(self, app: "Callable[[], App]", report: Report) -> None:
        self._app, self._report = app, report

    def __call__(self, delivery: Delivery, kind: str, folder: str) -> bool:
        app = self._app()
        features = [one for one in app.features if one.before_answer and kind in one.answers_after]
        if not features:
            return False
        speaks = False
        for feature in features:
            assert feature.before_answer is not None
            waiting = Waiting(
                delivery.key, delivery.agent, kind, delivery.cwd or folder, delivery.body,
                partial(_section, app, folder, feature.name), app.paths.state, app.cipher,
            )  # fmt: skip
            try:
                speaks |= feature.before_answer(waiting)
            except Exception as error:
                self._report(feature.name, error)
        return speaks


def _section(app: "App", folder: str, name: str) -> Any:
    return app.settings.for_project(app.engine.ports.project(folder)).get(name)
