"""Everything of this room that touches the disk or the network, done after the commit that asked for it."""

from holdfast.core.feature import JobHandler
from holdfast.features.uat import policy
from holdfast.features.uat.jobs import collect, health, reports, requests, scan, tend, write

JOBS: dict[str, JobHandler] = {
    policy.SCAN: scan.scan,
    policy.WRITE: write.write,
    policy.COLLECT: collect.collect,
    policy.HEALTH: health.health,
    policy.REPORT: reports.report,
    policy.ASKED: requests.asked,
    policy.TEND: tend.tend,
}
