"""The screens in menu order; each is a `…_SCREEN` in a module here with a template of the same name."""

from holdfast.doors.web.screens import answer_page, finding_pages, project_pages, session_pages

SCREENS = (
    session_pages.NOW_SCREEN, session_pages.SESSIONS_SCREEN, session_pages.SESSION_SCREEN, session_pages.EVENT_SCREEN,
    session_pages.ROWS, session_pages.MOMENT, answer_page.ANSWER_SCREEN,
    project_pages.GATES_SCREEN, project_pages.WHY_SCREEN, project_pages.TASKS_SCREEN, project_pages.STATE_SCREEN,
    finding_pages.UAT_SCREEN, finding_pages.RUN_SCREEN, finding_pages.SEARCH_SCREEN,
    project_pages.MEMORY_SCREEN, session_pages.ACTIVITY_SCREEN, project_pages.COST_SCREEN, project_pages.HEALTH_SCREEN,
)  # fmt: skip
