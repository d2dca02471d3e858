"""The pages of the site: which there are, and the snippets in them."""

import contextlib
import io
import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Made by the build.
_MADE = ("_build", "api", "auto_examples")
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Of packages that the tests do without.
_FOREIGN = re.compile(r"^(?:import|from) (?:skl2onnx|mlflow|huggingface_hub|skops)\b", re.MULTILINE)
_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Snippet(NamedTuple):
    """A piece of code, or a command, and the output that the page claims."""

    language: str
    code: str
    claimed: str


def pages() -> list[Path]:
    """All pages of the site that are written by hand."""
    found = [*DOCS.rglob("*.md"), *DOCS.rglob("*.rst")]
    return sorted(
        path
        for path in found
        if path.relative_to(DOCS).parts[0] not in (*_MADE, "_templates", "sg_execution_times.rst")
    )


def children(page: Path) -> Iterator[Path | str]:
    """The pages in the tables of contents of a page; as text, those that the build makes."""
    for block in _TOCTREE.findall(page.read_text()):
        for entry in block.split():
            if entry.startswith(":"):
                continue
            if entry.startswith("auto_examples/"):
                yield entry
            else:
                both = [(page.parent / f"{entry}{ending}").resolve() for ending in (".md", ".rst")]
                yield next((path for path in both if path.exists()), both[0])


def snippets(page: Path) -> list[Snippet]:
    """The snippets of a page, with the output that follows them."""
    fences = _FENCE.findall(page.read_text())
    following = [*fences, ("", "")][1:]
    found = []
    for (language, code), (next_language, output) in zip(fences, following, strict=True):
        if language == "python":
            found.append(Snippet(language, code, output if next_language == "text" else ""))
        elif language == "console":
            for command in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
                line, _, printed = command.partition("\n")
                found.append(Snippet(language, line, printed))
    return found


def output_of(code: str, names: dict[str, Any] | None = None) -> str:
    """What Python code prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {} if names is None else names)
    return out.getvalue()


def output_of_command(command: str, folder: Path) -> str:
    """What a command prints on standard output; it must not fail."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(page: Path, folder: Path) -> list[tuple[Snippet, str]]:
    """Run the snippets of a page in order, Python with common names, and return what they print.

    Those that need further packages are left out.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    return [
        (
            snippet,
            output_of(snippet.code, names)
            if snippet.language == "python"
            else output_of_command(snippet.code, folder),
        )
        for snippet in snippets(page)
        if not _FOREIGN.search(snippet.code)
    ]
