"""Docstrings are written to be read in an editor; this makes reStructuredText of them.

Formulas stand in indented blocks, as in Markdown, and ``|w|`` is a norm. Of members that are
inherited from other libraries, and hence documented there, the reference shows none. What a
solver does is said at the top of its file, which becomes a note of its class.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from sphinx.application import Sphinx

from certsvm.solvers import Solver

LITERAL = re.compile(r"(``.*?``)")
UNDERLINE = re.compile(r"^-{3,}\s*$")
MADE_BY_FUNCTIONS = ("certsvm.estimators.path.Path",)


def to_restructuredtext(lines: list[str]) -> list[str]:
    r"""Make indented blocks of the text literal, and escape bars elsewhere.

    Examples
    --------
    >>> to_restructuredtext(["The norm |w| of", "", "    w = |x|", "", "as ``|w|``."])
    ['The norm \\|w\\| of', '', '::', '', '    w = |x|', '', 'as ``|w|``.']
    """
    out: list[str] = []
    # Sections such as Parameters have lists, whose indentation means something else.
    in_list = literal = False
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if UNDERLINE.match(following):
            in_list = line.strip() not in ("Notes", "Examples", "References")
        indented = line.startswith("    ")
        if not line.strip():
            out.append(line)
            continue
        if indented and not in_list and not literal:
            before = next((text for text in reversed(out) if text.strip()), "")
            starts_block = bool(out) and not out[-1].strip() and not before.endswith("::")
            if starts_block:
                out += ["::", ""]
                literal = True
        elif not indented:
            literal = False
        if literal or line.lstrip().startswith((">>>", "...")):
            out.append(line)
        else:
            parts = LITERAL.split(line)
            parts[::2] = [text.replace("|", r"\|") for text in parts[::2]]
            out.append("".join(parts))
    return out


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Before numpydoc reads a docstring."""
    lines[:] = to_restructuredtext(lines)
    if inspect.isclass(obj) and issubclass(obj, Solver) and obj is not Solver:
        lines += algorithm_of(obj)


def algorithm_of(solver: type[Solver]) -> list[str]:
    """The header of the solver's file: the problem, the update and the literature, as a note."""
    header = inspect.getdoc(inspect.getmodule(solver)) or ""
    return ["", "Notes", "-----", "::", "", *(f"    {line}" for line in header.splitlines())]


def skip(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Whether to leave out a member of a class."""
    function = getattr(obj, "fget", None) or getattr(obj, "__func__", obj)
    home = getattr(function, "__module__", None) or ""
    foreign = bool(home) or inspect.isroutine(function)
    return True if foreign and not home.startswith("certsvm") else None


def signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, given: str, returned: str
) -> tuple[str, str | None] | None:
    """Leave out the parameters of a class that functions make."""
    return ("", None) if name in MADE_BY_FUNCTIONS else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-signature", signature)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
