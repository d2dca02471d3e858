"""Elements of HTML and SVG, with all text escaped.

A model may come from a stranger's file, so its labels and column names must not become markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

_VOID = frozenset({"br", "circle", "input", "line", "link", "meta", "polygon", "polyline", "rect"})


_NUMBER = re.compile(r"[-+]?[\d.,]+(e[-+]?\d+)?( ?%| s)?")


class Html(str):
    """Markup, as opposed to text that has yet to be escaped."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: object) -> Html:
    """An element; children that are not ``Html`` are escaped.

    Parameters
    ----------
    tag : str
        Its name.
    *children : object
        Text, markup, or None, which is left out.
    **attributes : object
        A trailing underscore is dropped and others become dashes: ``class_="x"``. None is left out.

    Returns
    -------
    element : Html
        The markup.

    Examples
    --------
    >>> element("p", "a < b", element("b", 1), class_="note")
    '<p class="note">a &lt; b<b>1</b></p>'
    """
    described = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID and not children:
        return Html(f"<{tag}{described}/>")
    return Html(f"<{tag}{described}>{joined(children)}</{tag}>")


def joined(children: Iterable[object]) -> Html:
    """Several children, one after the other."""
    return Html(
        "".join(
            child if isinstance(child, Html) else escape(str(child))
            for child in children
            if child is not None
        )
    )


def table(header: Sequence[object], rows: Iterable[Sequence[object]], **attributes: object) -> Html:
    """A table; columns of numbers, but for the first, have a class of their own.

    Examples
    --------
    >>> table(["class", "passes"], [["1", 7]])
    '<table><thead><tr><th>class</th><th class="number">passes</th></tr></thead><tbody><tr><td>1\
</td><td class="number">7</td></tr></tbody></table>'
    """
    rows = [list(row) for row in rows]
    kinds = [
        "number" if i and all(_NUMBER.fullmatch(str(row[i])) for row in rows) else None
        for i in range(len(header))
    ]

    def line(tag: str, cells: Sequence[object]) -> Html:
        pairs = zip(cells, kinds, strict=True)
        return element("tr", *(element(tag, cell, class_=kind) for cell, kind in pairs))

    return element(
        "table",
        element("thead", line("th", header)),
        element("tbody", *(line("td", row) for row in rows)),
        **attributes,
    )


def definitions_line(pairs: Mapping[str, object]) -> Html:
    """Names and values on one line, for notebooks.

    Examples
    --------
    >>> definitions_line({"C": 1})
    '<div style="opacity:0.75">C 1</div>'
    """
    text = " · ".join(f"{name} {value}" for name, value in pairs.items())
    return element("div", text, style="opacity:0.75")


def definitions(pairs: Iterable[tuple[object, object]], **attributes: object) -> Html:
    """A list of names and values."""
    children = [
        child for name, value in pairs for child in (element("dt", name), element("dd", value))
    ]
    return element("dl", *children, **attributes)
