"""The documentation: links lead somewhere, snippets print what they claim, examples draw."""

import ast
import inspect
import logging
import re
import runpy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

from tests.pages import DOCS, ROOT, children, output_of, pages, printed, snippets

TEXTS = sorted([*ROOT.glob("*.md"), *(page for page in pages() if page.suffix == ".md")])
# Pages whose snippets, all of them, run one after the other.
RUN = [
    DOCS / "index.md",
    DOCS / "faq.md",
    DOCS / "production.md",
    *sorted(DOCS.glob("quickstart/*.md")),
    *sorted(DOCS.glob("guide/*.md")),
]
PUBLIC = ("certsvm", "certsvm.files", "certsvm.dask", "certsvm.solvers", "certsvm.torch")
EXAMPLES = ("a/b.py", "tests/a/test_b.py")
QUICK = ("plot_gpu", "plot_intercept", "plot_linear_probe", "plot_windows")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
SECONDS = re.compile(r"\d+\.\d+ s\b")


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_links_lead_somewhere(text: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", text.read_text()):
        # What is in the gallery is made by the build, which checks the links to it.
        if "://" not in target and "auto_examples/" not in target:
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


def test_the_layout_is_what_there_is() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for package in (ROOT / "src" / "certsvm").glob("*/__init__.py"):
        assert f" {package.parent.name}/ " in text, package
    for path in re.findall(r"[a-z_]+/[a-z_/]+\.(?:py|md)", text):
        places = (ROOT, ROOT / "src" / "certsvm")
        assert any((place / path).exists() for place in places) or path in EXAMPLES, path


def test_the_first_snippet_prints_what_it_says() -> None:
    snippet = snippets(ROOT / "README.md")[0].code
    claimed = [line.removeprefix("# ") for line in snippet.splitlines() if line.startswith("# ")]
    assert len(claimed) == 2
    output, claim = output_of(snippet), "\n".join(claimed)
    assert shape(output) == shape(claim)
    # Another processor rounds differently, which may change the last digits shown.
    assert numbers(output) == pytest.approx(numbers(claim), rel=1e-3)


def test_what_a_certified_model_tells_in_the_docs() -> None:
    (code,) = [s.code for s in snippets(DOCS / "usage.md") if "decision_interval" in s.code]
    stable, signs, status = output_of(code).splitlines()
    assert stable == "True"
    assert int(signs) > 5
    assert {"NONE", "SUPPORT", "UNDECIDED"} == set(ast.literal_eval(status))


@pytest.mark.parametrize("number", range(3))
def test_migration(number: int) -> None:
    snippet = snippets(ROOT / "docs" / "migration.md")[number]
    assert output_of(snippet.code) == "True\nTrue\n"


@pytest.mark.parametrize(
    ("title", "estimator"), [("sklearn.svm.LinearSVC", LinearSVC), ("SGDClassifier", SGDClassifier)]
)
def test_every_parameter_is_on_the_migration_page(title: str, estimator: type) -> None:
    text = (ROOT / "docs" / "migration.md").read_text()
    section = text.split(f"## {title}\n")[1].split("\n## ")[0]
    for name in inspect.signature(estimator).parameters:
        assert re.search(rf"`{name}(=|`)", section), name


def test_streams_and_probabilities_in_the_docs() -> None:
    for page, name, output in (("files", "fit_stream", "True\n"),
                               ("usage", "predict_proba", "(143, 2)\nTrue\nTrue\n")):  # fmt: skip
        (code,) = [s.code for s in snippets(DOCS / f"{page}.md") if name in s.code]
        assert output_of(code) == output


@pytest.mark.parametrize("page", RUN, ids=lambda path: str(path.relative_to(DOCS)))
def test_snippets(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They print what the page says."""
    monkeypatch.chdir(tmp_path)
    log = logging.getLogger("certsvm")
    monkeypatch.setattr(log, "handlers", [])
    for snippet, output in printed(page, tmp_path):
        assert shape(output) == shape(snippet.claimed), snippet.code
        # Another processor rounds differently, and gaps near machine precision are noise.
        assert numbers(output) == pytest.approx(numbers(snippet.claimed), rel=0.05, abs=1e-6)
    log.setLevel(logging.NOTSET)


def test_every_page_is_in_a_table_of_contents() -> None:
    found, left = set(), [DOCS / "index.md"]
    while left:
        page = left.pop()
        assert page.exists(), f"{page} is in a table of contents, but not there"
        assert page not in found, f"{page} is in two tables of contents"
        found.add(page)
        left += [child for child in children(page) if isinstance(child, Path)]
    assert found == set(pages())


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    sections = re.split(r"^\.\. currentmodule:: ", (DOCS / "api.rst").read_text(), flags=re.M)
    listed = {
        name
        for section in sections[1:]
        if section.splitlines()[0] == module
        for name in re.findall(r"^   ([\w.]+)$", section, re.M)
    }
    # Not imported, since PyTorch may not be there.
    source = (ROOT / "src" / module.replace(".", "/") / "__init__.py").read_text()
    names = re.search(r"^__all__ = (\[.*?\])", source, re.M | re.S)
    assert names
    # The reference has Model once.
    elsewhere = {"Model"} if module == "certsvm.files" else set()
    assert set(ast.literal_eval(names[1])) - {"__version__"} - listed == elsewhere


def shape(output: str) -> list[str]:
    """The text without its numbers; how many spaces align them may differ."""
    return NUMBER.sub("#", output).split()


def numbers(output: str) -> list[float]:
    """The numbers, except for times."""
    return [float(number) for number in NUMBER.findall(SECONDS.sub("", output))]


@pytest.mark.parametrize("name", QUICK)
def test_a_script_runs_and_draws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The build of the site runs all."""
    plt = pytest.importorskip("matplotlib.pyplot", reason="pip install 'certsvm[plot]'")
    drawn: list[Any] = []

    def show() -> None:
        drawn.extend(plt.figure(number) for number in plt.get_fignums())
        plt.close("all")

    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", show)
    monkeypatch.chdir(ROOT / "examples")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runpy.run_path(f"{name}.py")
    assert drawn
    for figure in drawn:
        figure.canvas.draw()
        shown = [axes for axes in figure.axes if axes.axison]
        for axes in shown:
            assert axes.get_xlabel(), axes
            assert axes.get_ylabel(), axes
        # A stored picture fills the figure and has its axes inside.
        assert shown or figure.axes[0].images


def test_every_script_has_a_place_in_the_order() -> None:
    style = runpy.run_path(str(ROOT / "docs" / "_ext" / "gallery_style.py"))
    assert set(style["ORDER"]) == {path.name for path in (ROOT / "examples").glob("*.py")}


def test_the_probe_takes_files_or_makes_up_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    probe = str(ROOT / "examples" / "linear_probe.py")
    names = [f"{i}.npy" for i in range(4)]
    for name, array in zip(names, runpy.run_path(probe)["made_up_embeddings"](), strict=True):
        np.save(name, array[::2])
    for arguments, rows in ([], "3,200"), ([*names, "--report", "probe.html"], "1,600"):
        monkeypatch.setattr("sys.argv", [probe, *arguments])
        runpy.run_path(probe, run_name="__main__")
        fit, certificates, *accuracies = capsys.readouterr().out.splitlines()
        assert fit.startswith(f"{rows} rows, 64 columns")
        assert certificates.startswith("10 of 10 certificates met")
        assert [line.split()[0] for line in accuracies] == ["accuracy", "top"]
    assert Path("probe.html").stat().st_size > 10_000
