"""Text never becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from certsvm.markup import Html, element, table

HOSTILE = '<script>alert("x")</script>&amp;\'"'


class Found(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")))
def test_what_goes_in_is_what_is_read(text: str) -> None:
    found = Found(element("p", text, title=text))
    assert found.tags == ["p"]
    assert found.text == text
    assert found.attributes == {"title": text}


def test_hostile_text_stays_text() -> None:
    for made in (table([HOSTILE], [[HOSTILE]]), element("p", HOSTILE, Html("<b>bold</b>"))):
        found = Found(made)
        assert "script" not in found.tags
        assert HOSTILE in found.text
