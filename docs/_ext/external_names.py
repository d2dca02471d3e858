"""Names of other libraries lead to their documentation, without a network while building.

Their sites give each name a page of its own, whose address follows from the name. ``make
docs-links`` checks that the pages exist.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

SITES = {
    "sklearn": "https://scikit-learn.org/stable/modules/generated/{name}.html",
    "numpy": "https://numpy.org/doc/stable/reference/generated/{name}.html",
    "scipy": "https://docs.scipy.org/doc/scipy/reference/generated/{name}.html",
}


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | None:
    """A link for a name that this project does not define."""
    name = str(node.get("reftarget", ""))
    site = SITES.get(name.partition(".")[0])
    if node.get("refdomain") != "py" or site is None or "." not in name:
        return None
    link = nodes.reference("", "", internal=False, refuri=site.format(name=name))
    link += content
    return link


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("missing-reference", resolve)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
