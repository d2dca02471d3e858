"""Every row comes out once, in an order that is random, whatever the memory."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certsvm.files.batch import Batch, joined
from certsvm.files.shuffle import Bucket, shuffled


def as_tuples(rows: Batch) -> list[tuple[Any, ...]]:
    """Batch by their bits: stored columns and values, label, weight."""
    found = []
    for k in range(len(rows.y)):
        if sp.issparse(rows.X):
            part = slice(rows.X.indptr[k], rows.X.indptr[k + 1])
            row: Any = tuple(rows.X.indices[part].tolist()), rows.X.data[part].tobytes()
        else:
            row = rows.X[k].tobytes()
        weight = None if rows.weights is None else rows.weights[k].tobytes()
        found.append((row, rows.y[k].item(), weight))
    return found


@st.composite
def pieces(draw: st.DrawFn) -> list[Batch]:
    """Batch, some of them stored zeros, cut anywhere; sparse pieces as wide as they need to be."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 60))
    sparse, weighted = draw(st.booleans()), draw(st.booleans())
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    X = rng.choice([0.0, -0.0, 0.1, 1.5, -7.25], (n, 5)).astype(dtype)
    y = rng.choice(["a", "bb", "ccc"], n) if draw(st.booleans()) else rng.integers(-3, 3, n)
    weights = rng.random(n) if weighted else None
    cuts = sorted({0, n, *draw(st.lists(st.integers(0, n), max_size=5))})
    result = []
    for a, b in itertools.pairwise(cuts):
        part: Any = X[a:b]
        if sparse:
            part = sp.csr_matrix(part)
            width = int(part.indices.max(initial=-1)) + 1
            part = sp.csr_matrix((part.data, part.indices, part.indptr), shape=(b - a, width))
        result.append(Batch(part, y[a:b], None if weights is None else weights[a:b]))
    return result


@given(pieces(), st.integers(150, 5000), st.sampled_from([0, 1000, 10**15]), st.integers(0, 9))
def test_every_row_comes_out_once(
    tmp_path_factory: pytest.TempPathFactory,
    given_pieces: list[Batch],
    most: int,
    expected: int,
    seed: int,
) -> None:
    folder = tmp_path_factory.mktemp("buckets")
    runs = list(shuffled(given_pieces, folder, most, expected, np.random.default_rng(seed)))
    before = Counter(t for piece in given_pieces for t in as_tuples(piece))
    assert Counter(t for run in runs for t in as_tuples(run)) == before
    assert not any(folder.iterdir())
    again = list(shuffled(given_pieces, folder, most, expected, np.random.default_rng(seed)))
    assert [as_tuples(run) for run in runs] == [as_tuples(run) for run in again]
    for run in runs:
        assert run.X.dtype == given_pieces[0].X.dtype
        # Pieces cost a little more than the whole.
        assert run.nbytes <= most


def test_buckets_that_are_too_large_are_split_again(tmp_path: Path) -> None:
    """A guess that is far too low puts all rows in one bucket at first."""
    most_files = 0

    rng = np.random.default_rng(0)
    rows = Batch(rng.standard_normal((5000, 4)), np.arange(5000), None)
    out: list[int] = []
    for run in shuffled([rows], tmp_path, 2000, 1, rng):
        assert run.nbytes <= 2000
        most_files = max(most_files, len(list(tmp_path.iterdir())))
        out += run.y.tolist()
    assert sorted(out) == list(range(5000))
    assert out != sorted(out)
    assert most_files > 100


@pytest.mark.parametrize("n", [1, 5])
def test_a_row_larger_than_the_memory(n: int, tmp_path: Path) -> None:
    rows = Batch(np.ones((n, 100)), np.arange(n), None)
    runs = list(shuffled([rows], tmp_path, 500, rows.nbytes, np.random.default_rng(0)))
    assert sorted(label for run in runs for label in run.y.tolist()) == list(range(n))


@pytest.mark.parametrize("most", [150, 10**6])
def test_all_orders_are_equally_likely(most: int, tmp_path: Path) -> None:
    """Chi-square over the 24 orders of four rows; the seed is fixed, so is the verdict."""
    rng = np.random.default_rng(1)
    trials = 960
    counts: Counter[tuple[int, ...]] = Counter()
    rows = Batch(np.ones((4, 8)), np.arange(4), None)
    expected = rows.nbytes
    for _ in range(trials):
        runs = shuffled([rows.take(np.arange(2)), rows.take(np.arange(2, 4))], tmp_path, most,
                        expected, rng)  # fmt: skip
        counts[tuple(label for run in runs for label in run.y.tolist())] += 1
    assert len(counts) == math.factorial(4)
    mean = trials / 24
    chi_square = sum((count - mean) ** 2 / mean for count in counts.values())
    # 23 degrees of freedom: 49.7 has a probability of 0.1 %.
    assert chi_square < 49.7


def test_where_a_row_ends_up_does_not_depend_on_where_it_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    n, trials = 8, 480
    places = np.zeros((n, n))
    rows = Batch(sp.csr_matrix(np.eye(n)), np.arange(n), None)
    for _ in range(trials):
        order = [label for run in shuffled([rows], tmp_path, 200, 1, rng) for label in run.y]
        places[order, np.arange(n)] += 1
    mean = trials / n
    chi_square = float(((places - mean) ** 2 / mean).sum())
    # 49 degrees of freedom: 85.4 has a probability of 0.1 %.
    assert chi_square < 85.4


@given(pieces())
def test_a_bucket_gives_back_its_pieces(
    tmp_path_factory: pytest.TempPathFactory, given_pieces: list[Batch]
) -> None:
    bucket = Bucket(tmp_path_factory.mktemp("bucket") / "rows")
    for piece in given_pieces:
        bucket.put(piece)
    sparse, weighted = sp.issparse(given_pieces[0].X), given_pieces[0].weights is not None
    out = list(bucket.batches(sparse=sparse, weighted=weighted))
    assert [as_tuples(piece) for piece in out] == [as_tuples(piece) for piece in given_pieces]
    assert as_tuples(joined(out)) == [t for piece in given_pieces for t in as_tuples(piece)]


def test_errors_of_the_source_reach_the_caller(tmp_path: Path) -> None:
    def source() -> Any:
        yield Batch(np.ones((2, 2)), np.arange(2), None)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(shuffled(source(), tmp_path, 100, 100, np.random.default_rng(0)))
