"""A run as JUnit XML."""

import re
from typing import Any
from xml.etree import ElementTree as Xml

from holdfast.features.uat import files
from holdfast.features.uat.record import Record
from holdfast.features.uat.report.figures import list_failures, report_steps, verdict_words
from holdfast.features.uat.settings import (
    FAILED,
    INTERRUPTED,
    PASSED,
    format_iso,
)

# What XML 1.0 cannot hold.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit_report(record: Record) -> bytes:
    doc = record.doc
    suite = Xml.Element(
        "testsuite", name=_xml_safe_text(doc.scenario), timestamp=(format_iso(doc.start) or "").rstrip("Z")
    )
    _add_suite_properties(suite, record)
    for step in report_steps(record):
        _add_step_case(suite, step, record)
    for one in files.assertion_entries(record):
        _add_assertion_case(suite, one, doc.scenario)
    cases = suite.findall("testcase")
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("tests", str(len(cases)))
    suite.set("time", _format_seconds(None if doc.end is None else doc.end - doc.start))
    # The same sums on the outer element, as build servers expect.
    root = Xml.Element("testsuites", {k: v for k, v in suite.attrib.items() if k != "timestamp"})
    root.append(suite)
    Xml.indent(root)
    text: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _add_suite_properties(suite: Xml.Element, record: Record) -> None:
    doc = record.doc
    property_values = {"uatSessionId": doc.id, "claudeSessionId": doc.session, "baseUrl": doc.base_url}
    property_values |= {"outcome": doc.outcome or "running", "reason": doc.reason, "toolCalls": str(doc.calls)}
    properties = Xml.SubElement(suite, "properties")
    for name, value in property_values.items():
        Xml.SubElement(properties, "property", name=name, value=_xml_safe_text(value))


def _add_step_case(suite: Xml.Element, step: dict[str, Any], record: Record) -> None:
    name = f"step {step['stepNumber']}: {step['description'] or step['action']}"
    case = _add_test_case(suite, name, record.doc.scenario, _format_seconds(step["duration"]))
    if step["verdict"] == FAILED:
        one = next(f for f in list_failures(record) if f.step == step["stepNumber"])
        message = one.error or (f"expected {one.expected}" if one.expected else "failed")
        failure = Xml.SubElement(case, "failure", message=_xml_safe_text(message), type="step")
        failure.text = _xml_safe_text(f"expected: {one.expected}\nreceived: {one.received}\ncall: {one.call}")
    elif step["verdict"] == INTERRUPTED:
        Xml.SubElement(case, "error", message="interrupted", type="interrupted")
    elif step["verdict"] != PASSED:
        Xml.SubElement(case, "skipped", message=verdict_words(step["verdict"]))
    elif step["flaky"]:
        _add_case_property(case, "flaky", f"attempt {len(step['attempts'])} passed")


def _add_case_property(case: Xml.Element, name: str, value: str) -> None:
    Xml.SubElement(Xml.SubElement(case, "properties"), "property", name=name, value=_xml_safe_text(value))


def _add_assertion_case(suite: Xml.Element, one: dict[str, Any], scenario: str) -> None:
    case = _add_test_case(suite, f"assertion: {one['description']}", scenario, "0")
    if one["result"] == "failed":
        failure = Xml.SubElement(case, "failure", message=_xml_safe_text(one["description"]), type="assertion")
        failure.text = _xml_safe_text(f"expected: {one['expected']}\nactual: {one['actual']}")
    elif one["result"] != "passed":
        Xml.SubElement(case, "skipped", message="not reached")


def _add_test_case(suite: Xml.Element, name: str, scenario: str, time: str) -> Xml.Element:
    return Xml.SubElement(
        suite, "testcase", name=_xml_safe_text(name), classname=f"uat.{_xml_safe_text(scenario)}", time=time
    )


def _format_seconds(ms: int | None) -> str:
    return f"{(ms or 0) / 1000:.3f}"


def _xml_safe_text(value: Any) -> str:
    return _UNWRITABLE.sub("\ufffd", str(value))
