"""The screens, in the order of the menu. A screen is one file here and one template of the same name."""

from holdfast.web.screens import (
    activity,
    cost,
    event,
    gates,
    health,
    memory,
    now,
    run,
    search,
    session,
    sessions,
    state,
    tasks,
    uat,
    why,
)  # fmt: skip

SCREENS = (
    now.SCREEN, sessions.SCREEN, session.SCREEN, event.SCREEN, session.ROWS, session.MOMENT, gates.SCREEN, why.SCREEN,
    tasks.SCREEN, state.SCREEN, uat.SCREEN,
    run.SCREEN, search.SCREEN, memory.SCREEN, activity.SCREEN, cost.SCREEN, health.SCREEN,
)  # fmt: skip
