"""The documentation: links lead somewhere, snippets print what they claim."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
from pathlib import Path

import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

ROOT = Path(__file__).parent.parent
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
EXAMPLES = ("a/b.py", "tests/a/test_b.py")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


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


def test_the_layout_is_what_there_is() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for package in (ROOT / "src" / "certsvm").glob("*/__init__.py"):
        assert f" {package.parent.name}/ " in text, package
    for path in re.findall(r"[a-z_]+/[a-z_/]+\.(?:py|md)", text):
        places = (ROOT, ROOT / "src" / "certsvm")
        assert any((place / path).exists() for place in places) or path in EXAMPLES, path


def test_the_first_snippet_prints_what_it_says() -> None:
    (snippet, *_) = snippets(ROOT / "README.md")
    printed = output_of(snippet).splitlines()
    claimed = [line.removeprefix("# ") for line in snippet.splitlines() if line.startswith("# ")]
    assert len(claimed) == 2
    assert [NUMBER.sub("#", line) for line in printed] == [
        NUMBER.sub("#", line) for line in claimed
    ]
    # Another processor rounds differently, which may change the last digits shown.
    numbers = [[float(n) for n in NUMBER.findall(" ".join(text))] for text in (printed, claimed)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-3)


def test_the_stream_in_the_docs_runs() -> None:
    (snippet,) = [s for s in snippets(ROOT / "docs" / "files.md") if "fit_stream" in s]
    assert output_of(snippet) == "True\n"


def test_what_a_certified_model_tells_in_the_docs() -> None:
    (snippet,) = [s for s in snippets(ROOT / "docs" / "usage.md") if "decision_interval" in s]
    stable, signs, status = output_of(snippet).splitlines()
    assert stable == "True"
    assert int(signs) > 5
    assert {"NONE", "FREE", "BOUNDED", "UNDECIDED"} == set(ast.literal_eval(status))


@pytest.mark.parametrize("number", range(3))
def test_migration(number: int) -> None:
    snippet = snippets(ROOT / "docs" / "migration.md")[number]
    assert output_of(snippet) == "True\nTrue\n"


@pytest.mark.parametrize(
    ("title", "estimator"),
    [("sklearn.svm.LinearSVC", LinearSVC), ("SGDClassifier", SGDClassifier)],
)
def test_every_parameter_is_on_the_migration_page(title: str, estimator: type) -> None:
    text = (ROOT / "docs" / "migration.md").read_text()
    section = text.split(f"## {title}\n")[1].split("\n## ")[0]
    for name in inspect.signature(estimator).parameters:
        assert re.search(rf"`{name}(=|`)", section), name


def test_probabilities_in_the_docs() -> None:
    (snippet,) = [s for s in snippets(ROOT / "docs" / "usage.md") if "predict_proba" in s]
    assert output_of(snippet) == "(143, 2)\nTrue\nTrue\n"


def snippets(text: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text.read_text(), re.DOTALL)


def output_of(snippet: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(snippet, {})
    return out.getvalue()
