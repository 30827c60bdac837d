"""UAT: the runs of all projects."""

from typing import Any

from holdfast.web.screen import Screen, Visit

PAGE = 50


def uat_page(visit: Visit) -> dict[str, Any]:
    before = visit.query.get("before", "").partition("~")
    after = [int(before[0]), before[2]] if before[0].isdecimal() and len(before[0]) < 17 else None
    answer = visit.view("uat.list", all=not visit.project, limit=PAGE, before=after)
    return {
        "runs": answer["runs"],
        "next": "~".join(map(str, answer["next"])) if answer["next"] else "",
        "projects": visit.view("project.list")["projects"],
        "now": answer["now"],
    }


SCREEN = Screen(name="uat", title="UAT", path="/uat", page=uat_page, key="u", live="uat.")
