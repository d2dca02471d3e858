"""Elements of HTML for notebooks, with all text escaped.

A model may come from a stranger's file, so its labels and column names must not become markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Markup, as opposed to text that has yet to be escaped."""

    __slots__ = ()

    def __html__(self) -> str:
        """For templates: this is escaped already."""
        return self


def element(tag: str, *children: object, **attributes: object) -> Html:
    """An element; children that are not ``Html`` are escaped, and None is left out.

    Examples
    --------
    >>> element("p", "a < b", element("b", 1), None, title="note")
    '<p title="note">a &lt; b<b>1</b></p>'
    """
    described = "".join(f' {name}="{escape(str(value))}"' for name, value in attributes.items())
    content = "".join(
        child if isinstance(child, Html) else escape(str(child))
        for child in children
        if child is not None
    )
    return Html(f"<{tag}{described}>{content}</{tag}>")


def statement(good: bool, sentence: object, *facts: object) -> Html:
    """A sentence that something is proved, or is not, and what more there is to say.

    Examples
    --------
    >>> "a &lt; b</b>" in statement(True, "a < b", "a = 1", "b = 2")
    True
    """
    colour = "#047857" if good else "#b91c1c"
    return element(
        "div",
        element("b", sentence),
        element("div", " · ".join(map(str, facts)), style="opacity:0.75") if facts else None,
        style=f"border-left:4px solid {colour};padding:0.3em 0.8em",
    )


def table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> Html:
    """A table, in a box that scrolls if there are many rows or little room.

    Examples
    --------
    >>> "<tbody><tr><td>&lt;1&gt;</td></tr></tbody>" in table(["class"], [["<1>"]])
    True
    """
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    head = element("tr", *(element("th", cell) for cell in header))
    content = element("table", element("thead", head), element("tbody", *body))
    return element("div", content, style="max-height:30em;overflow:auto;white-space:nowrap")
