"""Everything of this feature that touches the disk or the network, done after the commit that asked for it."""

from holdfast.core.feature import JobHandler
from holdfast.features.uat import policy
from holdfast.features.uat.jobs import collect, tend

JOBS: dict[str, JobHandler] = {
    policy.SCAN: collect.scan_scenarios,
    policy.WRITE: tend.write_session_file,
    policy.COLLECT: collect.collect_evidence,
    policy.HEALTH: tend.run_health_check,
    policy.REPORT: tend.run_report_job,
    policy.ASKED: collect.handle_request,
    policy.TEND: tend.tend_runs,
}
