"""Everything of this room that touches the disk or the network, done after the commit that asked for it."""

from holdfast.core.feature import JobHandler
from holdfast.features.uat import policy
from holdfast.features.uat.jobs import collect, health, reports, requests, scan, tend, write

JOBS: dict[str, JobHandler] = {
    policy.SCAN: scan.scan_scenarios,
    policy.WRITE: write.write_session_file,
    policy.COLLECT: collect.collect_evidence,
    policy.HEALTH: health.run_health_check,
    policy.REPORT: reports.run_report_job,
    policy.ASKED: requests.handle_request,
    policy.TEND: tend.tend_runs,
}
