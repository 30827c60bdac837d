"""Text stays text in Markdown: what is escaped reads as it was written."""

import re

from hypothesis import given
from hypothesis import strategies as st

from holdfast.features.sessions.views import export
from tests.features.sessions.story import House, Story

ESCAPED = re.compile(r"\\([\\`*_{}\[\]<>#|~!])")


@given(st.text())
def test_unescaped_it_is_what_it_was(text: str) -> None:
    assert ESCAPED.sub(lambda found: found[1], export.escape_markdown(text)) == text


@given(st.text())
def test_no_special_character_is_left_bare(text: str) -> None:
    assert not re.search(r"[`*_{}\[\]<>#|~!]", ESCAPED.sub("", export.escape_markdown(text)))


def test_names_with_underscores_survive(house: House) -> None:
    """`my_var` was written as `my\\1var`."""
    house.take(Story().start().prompt("rename my_var\nand [x]").tool("c", command="grep my_var").stop("my_var is gone"))
    text = house.view("export", format="md")["text"]
    assert "> rename my\\_var\n> and \\[x\\]" in text and "> my\\_var is gone" in text
    assert "\\1" not in text


def test_an_html_page_is_titled_by_the_session_or_else_by_its_id(house: House) -> None:
    house.take(Story().start(session="s-7"))
    assert "<title>s-7</title>" in house.view("export", format="html", id="s-7")["text"]
    house.take(Story().prompt("Fix <the> parser", session="s-7"))
    text = house.view("export", format="html", id="s-7")["text"]
    assert "<h1>Fix &lt;the&gt; parser</h1>" in text
    assert "<title>s-7</title>" not in text
