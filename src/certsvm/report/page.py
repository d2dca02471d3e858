"""A report: one HTML page that contains all it needs."""

from __future__ import annotations

import os
import platform
import tempfile
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from certsvm._version import __version__
from certsvm.certificates.certificate import percent
from certsvm.files.atomic import atomic_write
from certsvm.markup import element

# Classes whose weights are shown.
MOST_CLASSES = 12
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


class Verdict(NamedTuple):
    """What is proved: a sentence with a figure that catches the eye."""

    met: bool
    before: str
    figure: str = ""
    after: str = ""


def page(title: str, subtitle: str, **parts: object) -> str:
    """The whole page.

    Parameters
    ----------
    title, subtitle : str
        What it is about.
    **parts : object
        What ``static/page.html`` shows: any of ``path``, ``choice``, ``fit`` and ``slider``.

    Returns
    -------
    page : str
        A document in HTML.
    """
    try:
        import jinja2
    except ImportError as error:
        raise ImportError("reports need Jinja2: pip install 'certsvm[plot]'") from error

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("certsvm.report", "static"),
        # Labels and names come from files, and must not become markup.
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_unbroken,
    )  # fmt: skip
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.filters["percent"] = percent
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count() or "unknown",
        "Python": platform.python_version(),
        "packages": ", ".join(f"{name} {version(name)}" for name in _PACKAGES),
        "certsvm": __version__,
    }
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return environment.get_template("page.html").render(
        title=title, subtitle=subtitle, version=__version__, machine=machine, now=now, **parts
    )


class PageFile(str):
    """The path of a page, which notebooks show as the page itself."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """For notebooks: a frame, so that neither styles nor scripts reach the rest of them."""
        return element(
            "iframe", srcdoc=Path(self).read_text("utf-8"), sandbox="allow-scripts",
            title="report", style="border:0;height:40em;width:100%",
        )  # fmt: skip


def write_page(path: str | os.PathLike[str] | None, content: str) -> PageFile | None:
    """Write the page, or nothing at all; without a path, to a temporary file, which is returned."""
    to = path if path is not None else Path(tempfile.mkdtemp(prefix="certsvm-"), "report.html")
    # Names of files need not be text: what is not becomes an escape.
    with atomic_write(to) as file:
        file.write(content.encode("utf-8", "backslashreplace"))
    return PageFile(to) if path is None else None


def _unbroken(value: Any) -> Any:
    """No line ends between a number and its unit."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return value.replace(" %", "\N{NO-BREAK SPACE}%")
