"""Everything of this feature that touches the disk or the network, done after the commit that asked for it."""

from holdfast.core.feature import JobHandler
from holdfast.features.uat.jobs import collect, health_check, reports, requests, scenario_scan, session_file, tend
from holdfast.features.uat.policy import jobs_for

JOBS: dict[str, JobHandler] = {
    jobs_for.SCAN: scenario_scan.scan_scenarios,
    jobs_for.WRITE: session_file.write_session_file,
    jobs_for.COLLECT: collect.collect_evidence,
    jobs_for.HEALTH: health_check.run_health_check,
    jobs_for.REPORT: reports.run_report_job,
    jobs_for.ASKED: requests.handle_request,
    jobs_for.TEND: tend.tend_runs,
}
