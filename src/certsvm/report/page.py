"""A report: one HTML page that contains all it needs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from certsvm._version import __version__
from certsvm.markup.html import Html, definitions, element
from certsvm.storage.atomic import atomic_write

# Browsers fetch nothing, whatever the page contains.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(
    title: str, subtitle: str, *sections: Html | None, columns: Mapping[str, Any] | None = None
) -> str:
    """The whole page.

    Parameters
    ----------
    title, subtitle : str
        What it is about.
    *sections : Html
        Its content.
    columns : dict, default=None
        By name, the columns of numbers and texts that sliders go through.

    Returns
    -------
    page : str
        A document in HTML.
    """
    script = columns and _static("report.js")
    return "<!DOCTYPE html>\n" + element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", name="generator", content=f"certsvm {__version__}"),
            element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            # Instead of a request for an icon.
            element("link", rel="icon", href="data:,"),
            element("title", title),
            element("style", Html(_static("report.css"))),
        ),
        element(
            "body",
            element("header", element("h1", title), element("p", subtitle)),
            element("main", *sections),
            element("footer", f"Made by certsvm {__version__} on {_now()}."),
            *(
                element("script", _json(values), type="application/json", id=name)
                for name, values in (columns or {}).items()
            ),
            element("script", Html(script)) if script else None,
        ),
        lang="en",
    )


def section(heading: str, *children: object) -> Html:
    """A part of the page."""
    return element("section", element("h2", heading), *children)


def facts(pairs: Mapping[str, object]) -> Html:
    """A few figures that catch the eye."""
    return element(
        "div",
        *(
            element("div", element("span", name, class_="soft"), element("b", value))
            for name, value in pairs.items()
        ),
        class_="facts",
    )


def machine() -> Html:
    """What this machine is, and the versions of what matters."""
    packages = [f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "scikit-learn")]
    return definitions(
        [
            ("system", f"{platform.system()} {platform.machine()}"),
            ("processors", os.cpu_count() or "unknown"),
            ("Python", platform.python_version()),
            ("packages", ", ".join(packages)),
            ("certsvm", __version__),
        ]
    )


def write_page(path: str | os.PathLike[str], content: str) -> None:
    """Write the page, or nothing at all."""
    # Names of files need not be text: what is not becomes an escape.
    with atomic_write(path) as file:
        file.write(content.encode("utf-8", "backslashreplace"))


def _json(values: Any) -> Html:
    # Inside a script element, only "</" would be understood as markup.
    return Html(json.dumps(values, allow_nan=False).replace("<", "\\u003c"))


def _static(name: str) -> str:
    return (files("certsvm.report") / "static" / name).read_text(encoding="utf-8")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
