"""The checker in the pages of models: in a real browser, and beside the one in Python."""

import random
import struct
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from certsvm import LinearSVC, Model
from certsvm.files import save_libsvm
from certsvm.verification.exact import verify_exactly
from tests.cli.running import run
from tests.report.browser import opened

_CALL = """
const [model, witness, text, name, options, done] = arguments;
const file = new File([text], name);
verifyExactly(model, witness, file, options).then(
  ({ verdicts, seen, same }) =>
    done([verdicts.map(({ verdict }) => verdict), seen.rows, seen.digest, same]),
  (error) => done(error.message));
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a model of it with its witness, and the model's page."""
    folder = tmp_path_factory.mktemp("check")
    X, y = load_iris(return_X_y=True, as_frame=True)
    X["a, quoted"] = np.where(X.iloc[:, 0] > 6.0, "long", 'so "short"')
    X["label"] = y.map(["setosa", "versicolor", "virginica"].__getitem__)
    X.to_csv(folder / "iris.csv", index=False)
    words = "iris.csv", "iris.model", "--witness", "--categorical", "-B", "1"
    assert run("train", *words, cwd=folder).code == 0
    assert run("report", "iris.model", cwd=folder).code == 0
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Any]:
    """The model's page in a browser."""
    with opened(folder / "iris.model.html") as driver:
        driver.set_script_timeout(60)
        yield driver


def dropped(page: Any, file: Path) -> tuple[str, str]:
    """The verdict on a file that is given to the page, and what the page says."""
    page.execute_script("document.getElementById('check').dataset.verdict = ''")
    page.find_element("css selector", "#check input[type=file]").send_keys(str(file))
    return page.execute_async_script("""
      const [check, done] = [document.getElementById("check"), arguments[0]];
      const wait = () => (check.dataset.verdict && check.querySelector("progress").hidden
        ? done([check.dataset.verdict, check.innerText]) : setTimeout(wait, 20));
      wait();""")


def test_a_page_confirms_its_model(page: Any, folder: Path) -> None:
    verdict, text = dropped(page, folder / "iris.csv")
    assert verdict == "confirmed"
    assert text.count("confirmed") >= 3
    assert "150 rows" in text
    fingerprint = Model.load(folder / "iris.model").fingerprint
    assert fingerprint is not None
    assert fingerprint.digest in text


def test_other_data_are_not_confirmed(page: Any, folder: Path) -> None:
    lines = (folder / "iris.csv").read_text().splitlines()
    other = folder / "other.csv"
    other.write_text("\n".join([*lines[:-30], *lines[1:31]]) + "\n")
    verdict, text = dropped(page, other)
    assert verdict == "refuted"
    assert "NOT the training data" in text


def test_an_error_names_the_line(page: Any, folder: Path) -> None:
    lines = (folder / "iris.csv").read_text().splitlines()
    lines[77] = lines[77].replace(lines[77].split(",")[1], "nan")
    broken = folder / "broken.csv"
    broken.write_text("\n".join(lines))
    verdict, text = dropped(page, broken)
    assert verdict == "error"
    assert "broken.csv, line 78" in text


def test_the_two_checkers_agree(page: Any, tmp_path: Path) -> None:
    words = [agree(page, tmp_path, seed) for seed in range(60)]
    assert {"confirmed", "refuted", "error"} <= set(words)


def test_a_forged_page_proves_nothing(page: Any, tmp_path: Path) -> None:
    X, y = np.array([[1.0], [-1.0]]), np.array([0, 1])
    clf = LinearSVC(store_dual=True, random_state=0).fit(X, y)
    honest = clf.to_model(X, y)
    save_libsvm(tmp_path / "data", X, y)
    honest.save(tmp_path / "a.model")
    content = (tmp_path / "a.model").read_bytes()
    for forged in (
        content.replace(honest.class_weight.tobytes(), np.array([1.0, -1.0]).tobytes()),
        content.replace(honest.coef.tobytes(), np.array([np.inf]).tobytes()),
    ):
        assert forged != content
        (tmp_path / "a.model").write_bytes(forged)
        found = checked(page, tmp_path / "a.model", tmp_path / "data")
        assert isinstance(found, str), found
        with pytest.raises(ValueError, match=r"data|a\.model"):
            verify_exactly(str(tmp_path / "a.model"), str(tmp_path / "data"))


def checked(page: Any, model: Path, data: Path) -> Any:
    """What the page finds about a model with its witness and data, or its message."""
    parts = [Path(f"{model}{end}") for end in ("", ".witness")]
    files = [b64encode(part.read_bytes()).decode() for part in parts]
    text = data.read_bytes().decode()
    return page.execute_async_script(_CALL, *files, text, data.name, {})


def agree(page: Any, folder: Path, seed: int) -> str:
    """Compare both checkers on a model and its data, or mutants of them; the worst verdict."""
    rng, model = np.random.default_rng(seed), folder / "a.model"
    n, d, k = int(rng.integers(6, 40)), int(rng.integers(1, 6)), int(rng.choice([2, 2, 3]))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3)
    X = np.rint(X) if rng.random() < 0.3 else X
    X[rng.random((n, d)) < 0.3] = 0.0
    y = np.r_[np.arange(k), rng.integers(k, size=n - k)]
    clf = LinearSVC(
        C=float(10.0 ** rng.uniform(-2, 2)), loss=str(rng.choice(["hinge", "squared_hinge"])),
        fit_intercept=bool(rng.random() < 0.7), penalize_intercept=bool(rng.random() < 0.6),
        intercept_scaling=float(rng.choice([1.0, 0.3])), store_dual=True, random_state=seed,
        class_weight="balanced" if rng.random() < 0.3 else None,
    ).fit(X, y)  # fmt: skip
    clf.to_model(X, y).save(model)
    table = rng.random() < 0.5
    data = folder / ("data.csv" if table else "data")
    if table:
        rows = [[*row, label] for row, label in zip(X.tolist(), y.tolist(), strict=True)]
        lines = [[*(f"f{j}" for j in range(d)), "label"], *rows]
        data.write_text("\n".join(",".join(map(str, line)) for line in lines))
    else:
        save_libsvm(data, X, y)
    if rng.random() < 0.5:
        data.write_bytes(mutant(data.read_text(), random.Random(seed)).encode())
    if rng.random() < 0.4:
        moved(model, rng)
    found = checked(page, model, data)
    if isinstance(found, str):
        with pytest.raises(ValueError, match="line"):
            verify_exactly(str(model), str(data))
        return "error"
    verdicts, read = verify_exactly(str(model), str(data))
    about = [read["rows"], read["digest"], read["same data"]]
    assert found == [[v["verdict"] for v in verdicts], *about], seed
    return "refuted" if "refuted" in found[0] else "confirmed"


def mutant(text: str, rng: random.Random) -> str:
    """Text with a place or two that are wrong, or unusual."""
    pieces = [
        "nan", "inf", "1e999", "-", "2:3", "1:1 1:2", "99:1", ":", '"', "\n", " ", "", "#", ",",
        "0x1", "1_0", "+1", "1.", ".5", "1e-400", "é", "7", "\x00", "-0", "\r",
    ]  # fmt: skip
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(pieces) + text[at + rng.randint(0, 2) :]
    return text


def moved(model: Path, rng: np.random.Generator) -> None:
    """Change a claim in the model file in the last place or further."""
    read = Model.load(model, witness=True)
    name = str(rng.choice(["primal", "dual"]))
    first, *others = read.certificates
    (bits,) = struct.unpack("<q", struct.pack("<d", getattr(first, name)))
    bits += int(rng.choice([-1, 1, -(2**30), 2**30]))
    (value,) = struct.unpack("<d", struct.pack("<q", bits))
    replace(read, certificates=(replace(first, **{name: value}), *others)).save(model)
