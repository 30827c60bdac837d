"""Whatever agents send is shown as text: stored scripts, escape codes, marks that turn text around, endless lines."""

import html.parser
import re
from urllib.parse import quote

import pytest

from holdfast.doors.web import pages
from holdfast.doors.web.changes import LONGEST_LINE, MOST_LINES, list_changes
from tests.kit import World

from .conftest import Door, serving

HOSTILE = [
    "<script>alert(1)</script>", "</title><script>alert(2)</script>", "\"><img src=x onerror=alert(3)>",
    "' onmouseover='alert(4)", "{{ 7 * 7 }}", "{% raw %}", "javascript:alert(5)", "</pre></svg><script>6</script>",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07", "abc\u202egnp.exe", "\u2066hidden\u2069", "a\x00b", "zero\u200bwidth",
    "&lt;already&gt; &amp;", "]]><!--", "--><script>7</script>", "\ufeffbom", "\U000e0041tag", "line\u2028sep",
    "data:text/html,<script>8</script>", "%3Cscript%3E", "<svg/onload=alert(9)>", "../../../etc/passwd",
]  # fmt: skip
SCREENS = ("/", "/session/hostile", "/search?q=x", "/activity", "/health")
ALLOWED = {"script", "link", "meta"}


class Page(html.parser.HTMLParser):
    """What a browser would make of it."""

    def __init__(self, body: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(body)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def harmless(body: str) -> Page:
    page = Page(body)
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert "style" not in attributes, (tag, attributes)
        assert "javascript:" not in (attributes.get("href") or "").lower()
        if tag == "script":
            assert (attributes["src"] or "").startswith("/static/"), attributes
        assert tag not in ("img", "iframe", "object", "embed", "base"), tag
    assert pages.sanitise_value(body) == body
    return page


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory):
    world = World(tmp_path_factory.mktemp("world"))
    try:
        with serving(world) as door:
            _attack(world)
            yield door
    finally:
        world.close()


def _attack(world: World) -> None:
    agent = world.session("hostile")
    agent.start(model=HOSTILE[0])
    for one in HOSTILE:
        agent.prompt(one)
        agent.tool(one[:100], response={"stdout": one, "stderr": one}, command=one, file_path=one, **{one[:50]: one})
        agent.fire("Notification", "tell", message=one)
    agent.fire("SubagentStart", "tell", agent_id=HOSTILE[0], agent_type=HOSTILE[2])
    agent.tool("Edit", file_path=HOSTILE[0], old_string=HOSTILE[1], new_string="\n".join(HOSTILE))
    agent.tool("Bash", command="x" * 1_000_000)
    agent.prompt("y" * 1_000_000)
    agent.stop(HOSTILE[0])
    strange = world.session("'\"><script>id</script>/../x?y#z%00")
    strange.start()
    strange.prompt("An id that is an attack")


def test_every_screen_shows_it_as_text(attacked: Door):
    for path in SCREENS:
        page = harmless(attacked.page(path))
        assert len(page.text) < 400_000, path
    shown = harmless(attacked.page("/session/hostile")).text
    assert "<svg/onload=alert(9)>" in shown or "../../../etc/passwd" in shown


def test_every_event_shows_it_as_text(attacked: Door):
    seen = ""
    for event in attacked.world.hooks_seen():
        body = attacked.page(f"/event/{event.seq}")
        assert len(body) < 600_000
        seen += harmless(body).text
    for one in HOSTILE:
        assert pages.sanitise_value(one) in seen, one
    assert "␛[31mred" in seen
    assert "⟨202E⟩" in seen


def test_an_id_that_is_an_attack_leads_to_its_session(attacked: Door):
    body = attacked.page("/")
    links = [found for found in re.findall(r'href="(/session/[^"]+)"', body) if "script" in found]
    assert links
    page = harmless(attacked.page(links[0]))
    assert "An id that is an attack" in page.text
    (one,) = [e.session for e in attacked.world.events(kinds=("prompt.submitted",)) if "script" in e.session]
    assert attacked.api(f"sessions/{quote(one, safe='')}")["data"]["id"] == one
    assert attacked.api(f"sessions/{quote(one, safe='')}/marks")["data"]["total"] >= 2


@pytest.mark.parametrize(
    "question", [*HOSTILE, "x" * 5000, "\ud800".encode("utf-8", "surrogatepass").decode("latin-1")]
)
def test_what_is_asked_for_is_text_too(attacked: Door, question: str):
    for path in ("/search?q=", "/session/hostile?q=", "/session/hostile?only=", "/activity?by=", "/?project="):
        harmless(attacked.page(path + quote(question, errors="replace")))


def test_addresses_that_lead_nowhere(attacked: Door):
    for path in (
        "/event/0",
        "/event/x",
        "/event/99999999",
        "/event/" + "9" * 400,
        "/session/%00",
        "/session/" + "a" * 5000,
    ):
        status, body, _ = attacked.ask("GET", path, **attacked.as_page)
        assert status == 404, path
        harmless(body.decode())


# ── the parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_hides_is_named():
    assert pages.sanitise_value("plain") == "plain"
    assert pages.sanitise_value("Grüße, 世界") == "Grüße, 世界"
    assert pages.sanitise_value("a\x1b\u202e\u200bz") == "a␛⟨202E⟩⟨200B⟩z"
    assert pages.sanitise_value("tab\tand\nline") == "tab\tand\nline"
    assert pages.sanitise_value(None) == ""
    assert pages.sanitise_value(7) == 7


def test_marking_words_never_breaks_out():
    assert pages.mark_words("a <b> Cat", ["cat", "<b>"]) == "a <mark>&lt;b&gt;</mark> <mark>Cat</mark>"
    assert pages.mark_words("<b>", []) == "&lt;b&gt;"
    assert "<script" not in pages.mark_words("<script>amp lt mark</script>", ["script", "amp", "lt", "mark", "&"])


def test_an_edit_is_a_diff_whatever_its_fields_are_called():
    (change,) = list_changes({"file_path": "a.py", "old_string": "one\ntwo\n", "new_string": "one\n2\n"})
    assert change.path == "a.py"
    assert [line for line in change.lines if line[0] in "+-"] == [("-", "two"), ("+", "2")]
    (written,) = list_changes({"path": "b", "content": "x\ny"})
    assert written.lines == [("+", "x"), ("+", "y")]
    many = list_changes({"filePath": "c", "edits": [{"oldString": "a", "newString": "b"}, 7, {"nothing": 1}]})
    assert len(many) == 1
    for strange in (None, 7, "text", [], {}, {"edits": "x"}, {"old_string": 1, "new_string": None}):
        assert list_changes(strange) == []
    (huge,) = list_changes({"old_string": "x" * 500_000, "new_string": "a\n" * 100_000})
    assert len(huge.lines) <= MOST_LINES
    assert all(len(line) <= LONGEST_LINE for _, line in huge.lines)
