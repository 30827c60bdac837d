"""The steps of a run as bars over time, in SVG."""

from html import escape
from typing import Any

from holdfast.core.event import Event
from holdfast.features.uat.record import Record
from holdfast.features.uat.report.figures import format_milliseconds, report_steps

# Width of the picture, height of a row, and room for names and times.
WIDTH, ROW, LEFT, RIGHT = 960, 26, 240, 90
MOST_MARKS = 600


def render_timeline_svg(record: Record) -> str:
    listed = report_steps(record)
    begin, end = _time_span(record)
    height = ROW * len(listed) + 24
    rows = "".join(_step_row_svg(n, step, record, begin, end) for n, step in enumerate(listed))
    marks = "".join(_call_mark_svg(call, begin, end) for call in record.calls[:MOST_MARKS])
    return (
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Timeline of the steps">'
        f"{rows}{marks}{_time_axis_svg(begin, end, height)}</svg>"
    )


def _time_span(record: Record) -> tuple[int, int]:
    doc = record.doc
    started = [s.start for s in doc.steps if s.start is not None]
    ended = [s.end for s in doc.steps if s.end is not None]
    begin = min([doc.start, *started, *(c.data.began for c in record.calls)])
    # One millisecond at least: the axis divides by the length.
    return begin, max([doc.touched, *ended, begin + 1])


def _x_position(at: int, begin: int, end: int) -> float:
    share = (at - begin) / (end - begin)
    return LEFT + (WIDTH - LEFT - RIGHT) * min(max(share, 0.0), 1.0)


def _step_row_svg(number: int, step: dict[str, Any], record: Record, begin: int, end: int) -> str:
    y = ROW * number
    stood = record.doc.steps[number]
    words = escape(f"{step['stepNumber']}. {step['description'] or step['action']}"[:36])
    label = f'<text x="0" y="{y + 17}">{words}</text>'
    if stood.start is None:
        return f'<g class="{step["status"]}">{label}<text x="{LEFT}" y="{y + 17}">{step["status"]}</text></g>'
    x = _x_position(stood.start, begin, end)
    width = max(3.0, _x_position(stood.end if stood.end is not None else end, begin, end) - x)
    time = format_milliseconds(step["duration"]) if step["duration"] is not None else step["status"].replace("_", " ")
    bar = f'<rect x="{x:.1f}" y="{y + 5}" width="{width:.1f}" height="16" rx="3"><title>{words}: {time}</title></rect>'
    slow = " slow" if step["slow"] else ""
    return f'<g class="{step["status"]}{slow}">{label}{bar}<text x="{x + width + 6:.1f}" y="{y + 17}">{time}</text></g>'


def _call_mark_svg(call: Event, begin: int, end: int) -> str:
    """One tool call, on its step's line."""
    step = call.data.step
    if step < 1:
        return ""
    x, y = _x_position(call.data.began, begin, end), ROW * (step - 1) + 5
    title = escape(f"{call.get('tool')} {format_milliseconds(call.get('ms'))}")
    kind = "call" if call.data.ok else "call bad"
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 16}"><title>{title}</title></line>'


def _time_axis_svg(begin: int, end: int, height: int) -> str:
    y = height - 6
    parts = [
        f'<text class="axis" x="{_x_position(begin + (end - begin) * n // 4, begin, end):.0f}" y="{y}">'
        f"{format_milliseconds((end - begin) * n // 4)}</text>"
        for n in range(5)
    ]
    return "".join(parts)
