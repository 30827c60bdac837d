"""Checks that a server answers: loopback, or hosts that the person's settings name."""

import http.client
import time
from typing import Any
from urllib.parse import urlsplit

from holdfast.core.event import Event
from holdfast.core.feature import JobCall
from holdfast.core.kinds.uat_events import Conditions
from holdfast.core.network import is_loopback
from holdfast.features.uat.drivers.assertions import meets_conditions
from holdfast.features.uat.drivers.results import Result
from holdfast.features.uat.files import keyed_run_event
from holdfast.features.uat.settings import DEFAULTS, clean_line
from holdfast.features.uat.state import PLANS, RUNS

# Seconds, and bytes of an answer.
PATIENCE_S = 10.0
LARGEST_ANSWER = 256 << 10


def run_health_check(call: JobCall) -> list[Event]:
    payload = call.job.payload
    doc = RUNS.load(call.reader, str(payload["uat"]))
    plan = PLANS.load(call.reader, str(payload["uat"]))
    if not doc or not plan:
        return []
    criteria = plan.health_checks[payload["index"]]
    url = plan.base_url.rstrip("/") + "/" + (criteria.path or "").lstrip("/")
    hosts = (call.settings(doc.project) or DEFAULTS).health_hosts
    good, data = check_url(url, criteria, hosts)
    result = "success" if good else "failure"
    facts = {"type": "http", "result": result, "data": data, "step": payload["step"], "index": payload["index"]}
    facts["precondition"] = criteria.precondition
    return [keyed_run_event(doc, "uat.checked", call.now, f"{call.job.id}", **facts)]


def check_url(url: str, criteria: Conditions, hosts: tuple[str, ...]) -> tuple[bool, dict[str, Any]]:
    shown = {"url": clean_line(url, 300)}
    if problem := url_refusal_reason(url, hosts):
        return False, {**shown, "error": problem}
    began = time.monotonic()
    try:
        status, text = _http_get(url)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return False, {**shown, "error": clean_line(error, 200) or type(error).__name__}
    ms = int((time.monotonic() - began) * 1000)
    result = Result(value={}, text=text, ok=status < 400, url=url, status=status, ms=ms)
    # An expected status is judged with the other conditions; without one anything below 400 is good.
    good = (result.ok or criteria.status is not None) and meets_conditions(criteria, result)
    return good, {**shown, "statusCode": status, "loadTime": ms}


def url_refusal_reason(url: str, hosts: tuple[str, ...]) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        # Reading the port makes urlsplit check it.
        _ = parts.port
    except ValueError:
        return "not an address"
    if parts.scheme not in ("http", "https") or not host:
        return "not an http address; give the scenario a base_url"
    if host in hosts or is_loopback(host):
        return ""
    return f"{clean_line(host, 100)} is not on this machine; allow it with `uat.health_hosts`"


def _http_get(url: str) -> tuple[int, str]:
    """One request, no redirects: they may lead anywhere."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=PATIENCE_S)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", target, headers={"User-Agent": "holdfast-uat", "Accept": "*/*"})
        answer = connection.getresponse()
        return answer.status, answer.read(LARGEST_ANSWER).decode("utf-8", "replace")
    finally:
        connection.close()
