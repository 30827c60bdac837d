"""Jobs that look at the project."""

# No hook waits for them, and they report only changes.

from holdfast.core.lazy import lazy_function

WATCH_S, CHECK_S = 15.0, 60.0

JOBS = {
    "project.refresh": lazy_function(__name__, "refresh", "refresh"),
    "project.trees": lazy_function(__name__, "trees", "look_at_trees"),
    "project.scan": lazy_function(__name__, "refresh", "scan_todos"),
    "project.checks": lazy_function(__name__, "refresh", "run_own_rules"),
    "project.notion": lazy_function(__name__, "notion", "push_tasks"),
    "project.watch": lazy_function(__name__, "refresh", "watch_time"),
}
SCHEDULE = {"project.watch": WATCH_S, "project.checks": CHECK_S, "project.notion": CHECK_S}
