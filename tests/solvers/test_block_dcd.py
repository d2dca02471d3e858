"""Block DCD: a handful of passes over a stream, at any C and for any number of columns."""

import functools
import itertools
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from certsvm import LinearSVC, Model, fit_stream, train, verify_model
from certsvm.files.batch import Batch
from certsvm.files.block_file import Summary, write_blocks
from certsvm.files.streams import BlockStream
from certsvm.kernels.losses import LOSSES
from certsvm.problem.base import Objective
from certsvm.problem.problems import StreamedProblem
from certsvm.solvers import BlockDCD, Solver, Start
from certsvm.training.settings import Result
from tests.cli.running import run
from tests.problems import Case, cases, exact, exact_objective, optimum

Blocks = list[tuple[Any, Any]]


def cut(X: Any, y: Any, n_blocks: int) -> Blocks:
    edges = np.arange(n_blocks + 1) * len(y) // n_blocks
    return [(X[a:b], y[a:b]) for a, b in itertools.pairwise(edges)]


def fit(blocks: Blocks, solver: str | Solver = "block-dcd", **how: Any) -> Result:
    C, cache = how.pop("C", 1.0), how.pop("cache_bytes", None)
    stream = BlockStream(lambda: blocks, cache_bytes=cache)
    return train(StreamedProblem(stream, 1, Objective(C)), solver, seed=0, **how)


@functools.cache
def text(n: int = 3000, d: int = 4000) -> tuple[Any, Any]:
    """Sparse rows with more columns than rows, and some wrong labels."""
    rng = np.random.default_rng(0)
    X = sp.random(n, d, density=0.01, format="csr", random_state=rng)
    noise = 0.3 * rng.standard_normal(n)
    return X, np.where(X @ rng.standard_normal(d) + noise > 0, 1, -1)


def separable(name: str) -> tuple[Any, Any]:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X, (y == 0).astype(int)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 300)) + (3.0 if name == "far from zero" else 0.0)
    return X, (rng.random(600) < 0.1).astype(int)


@pytest.mark.parametrize("name", ["digits", "random labels", "far from zero"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["auto", "block-dcd"])
def test_separable_classes_at_any_C(name: str, loss: str, solver: str) -> None:
    X, y = separable(name)
    for C in (1.0, 100.0, 1e4):
        model = fit_stream(cut(X, y, 3), C=C, loss=loss, solver=solver, witness=True)
        (certificate,) = model.certificates
        assert certificate.met, (C, certificate)
        assert verify_model(model, [(X, y)]).verdict == "confirmed"
        other = LinearSVC(C=C, loss=loss).fit(X, y).certificate_
        assert certificate.dual - certificate.dual_rounding <= other.primal + other.primal_rounding
        assert other.dual - other.dual_rounding <= certificate.primal + certificate.primal_rounding


@pytest.mark.parametrize(("C", "passes"), [(1.0, 6), (100.0, 10)])
def test_a_handful_of_passes(C: float, passes: int) -> None:
    blocks = cut(*text(), 10)
    assert fit(blocks, C=C, tol=0.01, max_iter=passes).certificate.met


def test_it_takes_less_with_a_cache() -> None:
    blocks, how = cut(*text(), 10), {"C": 10.0, "tol": 0.01, "max_iter": 200}
    with_cache, without = (fit(blocks, BlockDCD(cache=c), **how).passes for c in (1.0, 0.0))
    assert 2 * with_cache < without


def test_without_memory_numbers_of_rows_are_in_a_file() -> None:
    blocks = cut(*text(), 10)
    result = fit(blocks, cache_bytes=0, tol=0.05, keep_alpha=True)
    assert result.certificate.met
    X, y = text()
    assert result.alpha is not None
    v = X.T @ (y * result.alpha)
    assert result.alpha.sum() - 0.5 * v @ v == pytest.approx(result.certificate.dual, rel=1e-9)


@pytest.mark.parametrize("with_alpha", [True, False])
def test_it_goes_on_from_a_start(with_alpha: bool) -> None:
    blocks = cut(*text(), 5)
    first = fit(blocks, tol=1e-3, keep_alpha=True)
    start = Start(first.w, alpha=first.alpha if with_alpha else None)
    again = fit(blocks, tol=1e-2, start=start)
    assert again.passes <= 2 < fit(blocks, tol=1e-2).passes


@pytest.mark.parametrize("solver", ["auto", "block-dcd"])
def test_a_checkpoint_holds_the_dual_point(solver: str, tmp_path: Path) -> None:
    blocks, path = cut(*text(), 5), tmp_path / "run"
    how: dict[str, Any] = {"C": 10.0, "tol": 1e-3}
    part = fit(blocks, solver, max_iter=4, checkpoint=path, **how)
    assert not part.certificate.met
    rest = fit(blocks, solver, checkpoint=path, **how)
    assert rest.certificate.met
    assert rest.history[0].passes == 4
    assert rest.history[0].dual == pytest.approx(part.certificate.dual, rel=1e-9)


def test_auto_goes_on_with_the_other_one() -> None:
    rng = np.random.default_rng(0)
    # Coordinate descent is slow at large C; Newton is not.
    X = rng.standard_normal((4000, 20)) + 1.0
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(4000) > 0, 1, -1)
    overlapping = fit(cut(X, y, 4), "auto", C=1e4, tol=1e-4)
    assert overlapping.solver == "block-dcd, then smoothed-newton"
    assert overlapping.certificate.met
    # Newton is slow if classes are separable.
    X = rng.standard_normal((6000, 5))
    X = X[abs(X[:, 0]) > 0.1]
    blocks = cut(X, np.where(X[:, 0] > 0.0, 1, -1), 4)
    apart = fit(blocks, "auto", C=1e4, tol=1e-3)
    assert (apart.solver, apart.certificate.met) == ("smoothed-newton, then block-dcd", True)
    assert apart.passes < fit(blocks, "smoothed-newton", C=1e4, tol=1e-3).passes


@pytest.mark.parametrize("door", ["fit_stream", "command"])
@given(case=cases(losses=tuple(LOSSES)), size=st.integers(1, 5), tol=st.sampled_from([0.1, 1e-6]))
def test_exact_arithmetic_agrees(door: str, case: Case, size: int, tol: float) -> None:
    """J of the model, and L of its witness in the file, without rounding."""
    assume(case.labels.min() < case.labels.max() and len(set(case.labels * case.row_weights())) > 1)
    X, weights = case.matrix(), case.row_weights()
    assume(all(weights[case.labels == sign].any() for sign in (-1.0, 1.0)))
    spans = [slice(i, i + size) for i in range(0, len(weights), size)]
    blocks = [Batch(X[part], case.labels[part], weights[part]) for part in spans]
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "model"
        if door == "fit_stream":
            fit_stream(
                blocks, C=case.C, loss=case.loss, tol=tol, witness=True, max_iter=30,
                solver="block-dcd", fit_intercept=case.intercept_scaling > 0,
                intercept_scaling=case.intercept_scaling or 1.0,
            ).save(saved)  # fmt: skip
        else:
            summary = Summary(len(weights), X.shape[1], int(X.size), shuffled=False)
            with (Path(folder) / "blocks.arrow").open("wb") as file:
                write_blocks(file, summary, blocks)
            done = run(
                "train", "blocks.arrow", "--stream", "-c", case.C, "--loss", case.loss, "--tol",
                tol, "--witness", "--max-iter", 30, "--solver", "block-dcd", "-o", "model", "-q",
                *(("-B", case.intercept_scaling) if case.intercept_scaling else ()),
                cwd=Path(folder),
            )  # fmt: skip
            assert done.code in (0, 3)
            assert run("verify", "model", "blocks.arrow", cwd=Path(folder)).code == 0
        model = Model.load(saved, witness=True)
    (certificate,) = model.certificates
    w = [exact(v) for v in model.coef[0]]
    if case.intercept_scaling:
        w.append(exact(model.intercept[0]) / exact(case.intercept_scaling))
    J = exact_objective(case, w)
    rounding = Fraction(certificate.primal_rounding) + J / 10**14
    assert abs(J - Fraction(certificate.primal)) <= rounding
    low, high = optimum(case)
    assert exact(certificate.dual) - exact(certificate.dual_rounding) <= high
    assert exact(low) * (1 - Fraction(1, 10**12)) <= J


@pytest.mark.parametrize("height", [1e-3, 1.0, 1e3, None])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_an_intercept_takes_few_passes_more(height: float | None, loss: str) -> None:
    """Of any height, and without a penalty (None)."""
    X, y = text()
    y = np.where(X @ np.ones(X.shape[1]) > np.median(X @ np.ones(X.shape[1])) + 0.5, y, -1)
    how: dict[str, Any] = {
        "loss": loss, "intercept_scaling": height or 1.0, "penalize_intercept": height is not None
    }  # fmt: skip
    for C in (1.0, 100.0):
        model = fit_stream(cut(X, y, 10), C=C, tol=1e-4, witness=True, max_iter=30, **how)
        assert model.parameters["solver"] == "block-dcd"
        (certificate,) = model.certificates
        assert certificate.met, (C, certificate)
        assert verify_model(model, [(X, y)]).verdict == "confirmed"
        other = LinearSVC(C=C, **how).fit(X, y).certificate_
        assert certificate.dual - certificate.dual_rounding <= other.primal + other.primal_rounding
        assert other.dual - other.dual_rounding <= certificate.primal + certificate.primal_rounding


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_separable_classes_with_a_free_intercept(C: float) -> None:
    X, y = separable("far from zero")
    model = fit_stream(cut(X, y, 3), C=C, penalize_intercept=False, witness=True)
    assert model.certificates[0].met
    assert verify_model(model, [(X, y)]).verdict == "confirmed"


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_witness_is_confirmed(loss: str) -> None:
    X, y = text()
    blocks = cut(X, y, 10)
    assert fit_stream(blocks, loss=loss, C=10.0).witness is None
    model = fit_stream(blocks, loss=loss, C=10.0, witness=True)
    assert model.certificates[0].met
    assert verify_model(model, blocks).verdict == "confirmed"
