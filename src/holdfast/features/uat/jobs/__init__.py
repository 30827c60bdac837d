"""Everything of this room that touches the disk or the network, done after the commit that asked for it."""

from holdfast.core.feature import JobHandler
from holdfast.features.uat import enqueue
from holdfast.features.uat.jobs import collect, health, reports, requests, scan, tend, write

JOBS: dict[str, JobHandler] = {
    enqueue.SCAN: scan.scan,
    enqueue.WRITE: write.write,
    enqueue.COLLECT: collect.collect,
    enqueue.HEALTH: health.health,
    enqueue.REPORT: reports.report,
    enqueue.ASKED: requests.asked,
    enqueue.TEND: tend.tend,
}
