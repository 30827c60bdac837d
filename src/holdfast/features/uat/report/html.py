"""One self-contained HTML file: no script, no address, pictures inside, everything from outside escaped."""

from collections import defaultdict
from collections.abc import Iterable
from html import escape
from typing import Any

import msgspec

from holdfast.core.event import Event
from holdfast.features.uat import files
from holdfast.features.uat.record import Record
from holdfast.features.uat.report import labels
from holdfast.features.uat.report.pictures import Picture, pictures
from holdfast.features.uat.report.timeline import svg

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
MOST_CALLS = 2_000
STYLE = """
:root{color-scheme:light dark;--line:#8884;--dim:#777;--ok:#1a7f37;--bad:#cf222e;--wait:#9a6700;--back:#8881}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;max-width:66rem;margin:2rem auto;padding:0 1rem}
h1{margin:0 0 .3rem;font-size:1.7rem}h2{margin-top:2.2rem;border-bottom:1px solid var(--line);font-size:1.2rem}
.verdict{display:inline-block;padding:.1rem .7rem;border-radius:1rem;color:#fff;font-weight:600;background:var(--dim)}
.verdict.passed{background:var(--ok)}.verdict.failed{background:var(--bad)}.verdict.incomplete,.verdict.interrupted{background:var(--wait)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.8rem 0}
dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}
.timeline{width:100%;height:auto;font-size:12px;background:var(--back);border-radius:6px;padding:.4rem}
.timeline text{fill:currentColor}.timeline .axis{fill:var(--dim);font-size:10px}
.timeline .completed rect{fill:var(--ok)}.timeline .failed rect{fill:var(--bad)}
.timeline .in_progress rect{fill:var(--wait)}.timeline .slow rect{stroke:var(--wait);stroke-width:3}
.timeline .pending text,.timeline .skipped text{fill:var(--dim)}
.timeline .call{stroke:#fff;stroke-opacity:.8}.timeline .call.bad{stroke:#000}
.step{border:1px solid var(--line);border-radius:6px;padding:.6rem 1rem;margin:.8rem 0}
.failure{border-color:var(--bad);border-width:2px}.step h3{margin:0;font-size:1rem}.step h3 small{font-weight:400;color:var(--dim)}
.ok{color:var(--ok)}.bad{color:var(--bad)}.dim{color:var(--dim)}
ul{margin:.3rem 0;padding-left:1.2rem}
@media(max-width:40rem){body{margin:.6rem auto}figure{max-width:100%!important}dl{grid-template-columns:1fr}}
figure{display:inline-block;margin:.5rem .8rem .2rem 0;max-width:48%}figcaption{color:var(--dim);font-size:.8rem}
figure img{max-width:100%;border:1px solid var(--line);border-radius:4px}
table{border-collapse:collapse;width:100%;font-size:.88rem}
td,th{text-align:left;padding:.2rem .6rem .2rem 0;border-bottom:1px solid var(--line);vertical-align:top}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0;font-size:.82rem}summary{cursor:pointer}
@media print{body{max-width:none}details{display:none}}
"""
GOOD = ("passed", "completed", "success")


def rendered(record: Record) -> bytes:
    return "".join(_parts(record)).encode("utf-8", "replace")


def _parts(record: Record) -> Iterable[str]:
    doc = record.doc
    title = escape(f"UAT: {doc.scenario}")
    outcome = labels.outcome(record)
    yield (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title} {outcome}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n<body>\n<h1>{title}</h1>\n'
        f'<p><span class="verdict {escape(outcome)}">{escape(outcome)}</span> '
        f"{escape(record.plan.get('description', ''))}</p>\n<dl>"
    )
    yield from (f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in labels.facts(record))
    yield "</dl>\n"
    shown = list(pictures(record))
    yield from _failures(record, shown)
    yield from _steps(record, shown)
    yield f"<h2>Timeline</h2>\n{svg(record)}\n"
    yield from _problems(record)
    yield from _calls(record.calls)
    yield f'<p class="dim">Made by Holdfast from the log, events {doc.first_seq} to {doc.last_seq}.</p>\n'
    yield "</body></html>\n"


def _failures(record: Record, shown: list[Picture]) -> Iterable[str]:
    """What went wrong comes before everything else, with what was expected and what was seen."""
    found = labels.failures(record)
    if found:
        yield f"<h2>What failed ({len(found)})</h2>\n"
    for one in found:
        told = (
            ("expected", one.expected),
            ("received", one.received),
            ("error", one.error if one.error not in one.received else ""),
            ("call", one.call),
        )
        rows = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in told if value)
        mine = _figures([p for p in shown if p.step == one.step]) if one.step else ""
        head = f'<span class="bad">{labels.mark(one.verdict)} {labels.verdict_words(one.verdict)}</span>'
        yield f'<section class="step failure"><h3>{head} {escape(one.title)}</h3><dl>{rows}</dl>{mine}</section>\n'


def _steps(record: Record, taken: list[Picture]) -> Iterable[str]:
    shown, judged = defaultdict(list), defaultdict(list)
    failed = {one.step for one in labels.failures(record)}
    for picture in taken:
        if picture.step not in failed or not picture.step:
            shown[picture.step].append(picture)
    for one in files.assertions(record):
        judged[one["stepNumber"] or 0].append(one)
    checks = [files.health_check(event, check) | {"step": event.data.step} for event, check in record.checks]
    yield "<h2>Steps</h2>\n"
    for step in labels.steps(record):
        number = step["stepNumber"]
        mine = [check for check in checks if check["step"] == number]
        yield _step(step, judged.pop(number, []), mine, shown.pop(number, []))
    rest = [check for check in checks if not check["step"]]
    left = [one for listed in judged.values() for one in listed]
    pictures_left = [one for listed in shown.values() for one in listed]
    if left or rest or pictures_left:
        parts = f"{_judged(left)}{_checked(rest)}{_figures(pictures_left)}"
        yield f'<section class="step"><h3>Whole run</h3>{parts}</section>\n'


def _step(step: dict[str, Any], judged: list[Any], checks: list[Any], shown: list[Picture]) -> str:
    status = step["verdict"]
    slow = f", expected {labels.took(step['expected'])}" if step["slow"] else ""
    time = f"{labels.took(step['duration'])}{slow}" if step["duration"] is not None else labels.verdict_words(status)
    head = f"{step['stepNumber']}. {escape(step['description'] or step['action'])}"
    return (
        f'<section class="step"><h3><span class="{_class(status)}">{labels.mark(status)}</span> {head} '
        f"<small>{escape(step['action'])} · {time}{' · flaky' if step['flaky'] else ''}</small></h3>"
        f"{_attempts(step)}{_judged(judged)}{_checked(checks)}{_figures(shown)}"
        "</section>\n"
    )


def _attempts(step: dict[str, Any]) -> str:
    """Each try of the step, when there was more than one."""
    tried = step["attempts"]
    if len(tried) < 2:
        return ""
    return _list(_attempt(one) for one in tried)


def _attempt(one: dict[str, Any]) -> str:
    why = f" ({escape(one['reason'])})" if one["reason"] else ""
    said = one["error"] or one["received"]
    told = f": {escape(said)}" if said else ""
    head = f'<span class="{_class(one["status"])}">{labels.mark(one["status"])} attempt {one["number"]}</span>'
    return f"{head}{why}, {labels.took(one['duration'])}{told}"


def _class(status: str) -> str:
    return "ok" if status in GOOD else "bad" if status in ("failed", "failure", "interrupted") else "dim"


def _judged(judged: list[dict[str, Any]]) -> str:
    return _list(
        f'<span class="{_class(one["result"])}">{labels.mark(one["result"])} {escape(one["result"])}</span> '
        f"{escape(str(one['description']))}{_difference(one)}"
        for one in judged
    )


def _difference(one: dict[str, Any]) -> str:
    if one["result"] == "passed":
        return ""
    wanted = f"<br>expected: {escape(str(one['expected']))}" if one["expected"] else ""
    return wanted + (f"<br>actual: {escape(str(one['actual']))}" if one["actual"] else "")


def _checked(checks: list[dict[str, Any]]) -> str:
    return _list(
        f'<span class="{_class(check["result"])}">{labels.mark(check["result"])} health {escape(check["type"])}</span> '
        f'<span class="dim">{escape(_compact(check["data"]))}</span>'
        for check in checks
    )


def _list(items: Iterable[str]) -> str:
    listed = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{listed}</ul>" if listed else ""


def _figures(shown: list[Picture]) -> str:
    return "".join(_figure(picture) for picture in shown)


def _figure(picture: Picture) -> str:
    name = escape(picture.name)
    image = f'<img alt="{name}" src="{picture.data}">' if picture.data else '<em class="bad">the picture is gone</em>'
    return f"<figure>{image}<figcaption>{name}</figcaption></figure>"


def _problems(record: Record) -> Iterable[str]:
    for title, listed in (("Errors", record.errors()), ("Warnings", record.warnings())):
        if listed:
            yield f"<h2>{title} ({len(listed)})</h2>\n<table>"
            yield from (
                f"<tr><td>{labels.clock(one['at'])}</td><td>step {one['step']}</td><td>{escape(one['type'])}</td>"
                f"<td>{escape(str(one['message']))}</td></tr>"
                for one in listed[:500]
            )
            yield "</table>\n"


def _calls(calls: list[Event]) -> Iterable[str]:
    yield f"<h2>Tool calls ({len(calls)})</h2>\n<table>"
    for call in calls[:MOST_CALLS]:
        status = "completed" if call.data.ok else "interrupted" if call.data.interrupted else "failed"
        yield (
            f"<tr><td>{labels.clock(call.get('began'))}</td><td>{call.get('step')}</td>"
            f'<td><details><summary><span class="{_class(status)}">{labels.mark(status)}</span> '
            f"{escape(call.get('tool'))}</summary><pre>{escape(_compact(call.get('parameters')))}</pre>"
            f"<pre>{escape(_compact(call.get('result')))}</pre></details></td>"
            f"<td>{labels.took(call.get('ms'))}</td></tr>\n"
        )
    more = len(calls) - MOST_CALLS
    yield f"</table>{f'<p>{more} more are in the log.</p>' if more > 0 else ''}\n"


def _compact(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode("utf-8", "replace")[:3000]
