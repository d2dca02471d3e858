"""What the texts say: links lead somewhere, snippets print what they claim."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_links_lead_somewhere(text: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", text.read_text()):
        if "://" not in target:
            assert (text.parent / target).exists(), target


def test_formulas_lead_to_the_functions_that_compute_them() -> None:
    theory = (ROOT / "docs" / "theory.md").read_text()
    links = re.findall(r"\[`([^`]+)`\]\(([^)]+\.py)\)", theory)
    assert len(links) > 20
    for name, target in links:
        source = (ROOT / "docs" / target).read_text()
        file = Path(target).stem
        symbols = name.replace("-", "_").split(".")
        # A module, or a module or a class and what it defines.
        for symbol in symbols if symbols[0] != file else symbols[1:]:
            assert re.search(rf"^ *(def|class) {symbol}\b", source, re.MULTILINE), name
    named = set(re.findall(r"`([a-z_]+\.[A-Za-z_]+)`", theory))
    modules = {path.stem for path in (ROOT / "src" / "certsvm").rglob("*.py")}
    assert not {n for n in named if n.split(".")[0] in modules} - {name for name, _ in links}


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_nothing_is_left_to_be_filled_in(text: Path) -> None:
    assert not re.search(r"@[A-Z]+@|TODO|TBD", text.read_text())


def test_the_first_snippet_prints_what_it_says() -> None:
    readme = (ROOT / "README.md").read_text()
    found = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    snippet = found.group(1)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(snippet, {})
    claimed = [line.removeprefix("# ") for line in snippet.splitlines() if line.startswith("# ")]
    # What is left of the gap at machine precision depends on the machine.
    said, claims = (
        re.sub(r"-?\d[.\d]*e-1\d", "tiny", text) for text in (out.getvalue(), "\n".join(claimed))
    )
    assert said.splitlines() == claims.splitlines()


def test_the_stream_in_the_docs_runs() -> None:
    text = (ROOT / "docs" / "files.md").read_text()
    snippets = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (snippet,) = [snippet for snippet in snippets if "fit_stream" in snippet]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(snippet, {})
    assert out.getvalue() == "True\n"
