"""Links that work on GitHub work on the site, too.

The pages of ``docs`` link to files outside of it, ``[here](../src/certsvm/matrices.py)``, as GitHub
wants it. On the site such a link leads to the file in the repository (``repository_url``), or to
the page that shows it (``repository_pages``, a page's name to a file's, whose text takes the place
of the page's own). A link to an example leads to its page in the gallery. A link to a file that
does not exist is a warning. Pictures are left alone: Sphinx copies them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
_logger = logging.getLogger(__name__)


def rewrite(text: str, folder: Path, docs: Path, url: str, pages: dict[str, str]) -> str:
    """The text of a page that lies in ``folder``, with links that hold on the site."""
    root = docs.parent
    names = {file: page for page, file in pages.items()}

    def on_the_site(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / link["path"]))
        in_docs = target.is_relative_to(docs)
        if not target.is_relative_to(root) or (in_docs and folder != root):
            return link[0]
        file = target.relative_to(root).as_posix()
        anchor = link["anchor"] or ""
        if in_docs:  # From a page whose text is a file of the repository.
            return f"[{link['text']}](/{target.relative_to(docs).as_posix()}{anchor})"
        if file in names:
            return f"[{link['text']}](/{names[file]}.md{anchor})"
        if re.fullmatch(r"examples/plot_\w+\.py", file) and target.exists():
            return f"[{link['text']}](/auto_examples/{target.stem}.rst{anchor})"
        if not target.exists():
            _logger.warning("a link to %s, which does not exist, in a page of %s", file, folder)
        kind = "tree" if target.is_dir() else "blob"
        return f"[{link['text']}]({url}/{kind}/main/{file}{anchor})"

    return LINK.sub(on_the_site, text)


def read(app: Sphinx, name: str, content: list[str]) -> None:
    """Rewrite the links of a page, which Sphinx has just read."""
    path = Path(app.env.doc2path(name))
    if path.suffix != ".md" or name.startswith("auto_examples"):
        return
    docs, pages = Path(app.srcdir), app.config.repository_pages
    folder = path.parent
    if name in pages:
        file = docs.parent / pages[name]
        app.env.note_dependency(str(file))
        content[0], folder = file.read_text(encoding="utf-8"), file.parent
    content[0] = rewrite(content[0], folder, docs, app.config.repository_url, pages)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.add_config_value("repository_url", "", "env")
    app.add_config_value("repository_pages", {}, "env")
    app.connect("source-read", read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
