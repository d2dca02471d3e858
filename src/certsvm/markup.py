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


def table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> Html:
    """A table.

    Examples
    --------
    >>> table(["class"], [["<1>"]])
    '<table><thead><tr><th>class</th></tr></thead><tbody><tr><td>&lt;1&gt;</td></tr></tbody></table>'
    """
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    head = element("tr", *(element("th", cell) for cell in header))
    return element("table", element("thead", head), element("tbody", *body))
