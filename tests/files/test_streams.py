"""Streams prove what data in memory proves, and nothing about data that changed."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from certsvm.certificates.dual import dual_bound, dual_point
from certsvm.certificates.primal import primal_bound
from certsvm.files.batch import Batch
from certsvm.files.block_file import BlockFile, Summary, write_blocks
from certsvm.files.streams import BlockStream, DataChangedError, Reader
from certsvm.problem.base import Objective
from certsvm.problem.problems import StreamedProblem
from certsvm.solvers import make_solver
from certsvm.training.loop import train
from certsvm.training.settings import INTERRUPTED, Result
from tests.platforms import posix
from tests.problems import Case, cases, exact_dual, exact_objective, optimum, require_proof

STREAMING = ["block-dcd", "sgd-s", "sgd-m", "newton", "smoothed-newton", "auto"]
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=25)
# A case, and where its rows are cut.
Cut = tuple[Case, list[int]]


def blocks_of(case: Case, cuts: list[int]) -> list[tuple[Any, ...]]:
    """The case's rows, cut before some of them; a cut twice makes an empty block."""
    X, n = case.matrix(), len(case.labels)
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    weights = case.weights
    return [
        (X[a:b], case.labels[a:b], None if weights is None else weights[a:b])
        for a, b in itertools.pairwise(edges)
    ]


def streamed(case: Case, cuts: list[int]) -> StreamedProblem:
    blocks = blocks_of(case, cuts)
    return problem_on(case, lambda: blocks)


def problem_on(case: Case, source: Any) -> StreamedProblem:
    rho = case.intercept_scaling
    stream = BlockStream(source, intercept_scaling=rho)
    positive = int(np.searchsorted(stream.classes, 1.0))
    return StreamedProblem(stream, positive, Objective(C=case.C))


@st.composite
def cut_cases(draw: st.DrawFn) -> Cut:
    case = draw(cases())
    assume((case.labels > 0).any())
    return case, draw(st.lists(st.integers(0, len(case.labels)), max_size=5))


def no_thread_is_left() -> bool:
    """Every reading thread waits for work, and reads nothing."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        frames = sys._current_frames()
        readers = [t for t in threading.enumerate() if t.name.startswith("certsvm-read")]
        at_work = [frames.get(t.ident or 0) for t in readers]
        if all(frame and frame.f_code.co_name == "_run_all" for frame in at_work):
            return True
        time.sleep(0.001)
    return False


@few
@given(cut_cases(), seeds, st.floats(1e-6, 1e6))
def test_bounds_are_within_their_allowances(cut: Cut, seed: int, size: float) -> None:
    case, cuts = cut
    problem, rng = streamed(case, cuts), np.random.default_rng(seed)
    w = size * rng.standard_normal(problem.dimension)
    bound = primal_bound(problem, w)
    assert abs(Fraction(bound.value) - exact_objective(case, w)) <= Fraction(bound.rounding)
    assert bound.rounding <= 1e-12 * (bound.value + size)
    alpha = case.C * case.row_weights() * rng.random(len(case.labels))
    bound, _ = dual_bound(dual_point(problem, alpha, "a test"), scaled=False)
    exact = exact_dual(case, [Fraction(float(a)) for a in alpha])
    assert abs(Fraction(bound.value) - exact) <= Fraction(bound.rounding)
    assert bound.rounding <= 1e-12 * (float(alpha.sum()) + abs(bound.value) + 1)


def test_many_blocks_stay_within_the_allowance() -> None:
    """A part's sum is rounded once more when it is added: that must be paid for."""
    rng = np.random.default_rng(0)
    case = Case(rng.standard_normal((3000, 2)) * 1e3, rng.choice([-1.0, 1.0], 3000),
                rng.random(3000), 1.0, 0.3, "dense-float64-int32")  # fmt: skip
    problem = streamed(case, list(range(1, 3000)))
    assert problem.stream.n_blocks == 3000
    alpha = rng.random(3000) * problem.weights
    point = dual_point(problem, alpha, "a test")
    error = Fraction(0)
    for j in range(3):
        exact = sum(
            (Fraction(float(a)) * Fraction(float(y))
             for a, y in zip(alpha, case.patterns()[:, j], strict=True)), Fraction(0),
        )  # fmt: skip
        error += (Fraction(float(point.w[j])) - exact) ** 2
    assert 0 < error <= Fraction(point.w_rounding) ** 2
    w = rng.standard_normal(3)
    bound = primal_bound(problem, w)
    assert abs(Fraction(bound.value) - exact_objective(case, w)) <= Fraction(bound.rounding)


@few
@given(cut_cases(), seeds, st.integers(1, 12), st.sampled_from(STREAMING))
def test_certificates_from_streams_are_true(cut: Cut, seed: int, passes: int, name: str) -> None:
    case, problem = cut[0], streamed(*cut)
    low, high = optimum(case)
    solver = make_solver(name)
    result = train(problem, solver, tol=0.0, max_iter=passes, seed=seed, keep_alpha=True)
    certificate = result.certificate
    assert certificate.dual - certificate.dual_rounding <= high
    assert certificate.primal + certificate.primal_rounding >= low
    assert (result.history["dual"] <= high * (1 + 1e-9) + 1e-9).all()
    require_proof(case, result)


def same(a: Result, b: Result) -> None:
    assert a.w.tobytes() == b.w.tobytes()
    assert a.certificate == b.certificate
    assert (a.passes, a.epochs, a.reason) == (b.passes, b.epochs, b.reason)


@few
@given(cut_cases(), st.sampled_from(STREAMING))
def test_all_sources_give_the_same_bits(
    tmp_path_factory: pytest.TempPathFactory, cut: Cut, name: str
) -> None:
    case, cuts = cut
    blocks = blocks_of(case, cuts)
    path = tmp_path_factory.mktemp("blocks") / "rows.arrow"
    X = case.matrix()
    n_values = X.nnz if sp.issparse(X) else X.size
    summary = Summary(int(X.shape[0]), int(X.shape[1]), n_values, shuffled=False)
    with path.open("wb") as file:
        write_blocks(file, summary, [Batch(*block) for block in blocks if len(block[1])])

    def generated() -> Iterator[tuple[Any, ...]]:
        yield from blocks

    sources: list[Callable[[], Any]] = [lambda: blocks, generated, BlockFile(path)]
    results, prints = [], set()
    for source in [*sources, generated]:
        problem = problem_on(case, source)
        results.append(train(problem, make_solver(name), tol=1e-9, max_iter=4, seed=1))
        prints.add(problem.stream.fingerprint)
    assert len(prints) == 1
    for other in results[1:]:
        same(results[0], other)


# Sources that do not keep their word.


def separable(n_blocks: int = 4, rows: int = 30) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    blocks = []
    for _ in range(n_blocks):
        X = rng.standard_normal((rows, 3))
        y = np.where(X[:, 0] + 0.5 * rng.standard_normal(rows) > 0, "yes", "no")
        blocks.append((X, y, rng.random(rows) + 0.5))
    return blocks


CHANGES: dict[str, Callable[[Any, Any, Any], tuple[Any, ...]]] = {
    "a value": lambda X, y, weights: (np.nextafter(X, X + (X.max() == X)), y, weights),
    "labels": lambda X, y, weights: (X, y[::-1], weights),
    "a weight": lambda X, y, weights: (X, y, np.nextafter(weights, 2)),
    "without weights": lambda X, y, weights: (X, y),
    "single precision": lambda X, y, weights: (X.astype(np.float32), y, weights),
    "an unknown label": lambda X, y, weights: (X, np.full(len(y), "perhaps"), weights),
}


@pytest.mark.parametrize(("name", "passes"), [("sgd-s", 1), ("newton", 3), ("block-dcd", 3)])
@pytest.mark.parametrize("change", [*CHANGES, "a block more", "a block fewer", "another order"])
def test_data_that_changes_is_not_certified(change: str, name: str, passes: int) -> None:
    blocks, begun = separable(), itertools.count()

    def source() -> Iterator[tuple[Any, ...]]:
        changed = [*blocks, blocks[0]] if change == "a block more" else blocks[::-1]
        if change == "a block fewer":
            changed = blocks[:-1]
        if change in CHANGES:
            changed = [*blocks[:2], CHANGES[change](*blocks[2]), *blocks[3:]]
        yield from blocks if next(begun) < passes else changed

    problem = StreamedProblem(BlockStream(source), 1)
    with pytest.raises(DataChangedError, match="Nothing is certified"):
        train(problem, make_solver(name), tol=0.0, max_iter=50, seed=0)
    assert no_thread_is_left()


@pytest.mark.parametrize("passes", [1, 3])
def test_errors_in_the_source_reach_the_caller(passes: int) -> None:
    blocks, begun = separable(), itertools.count()

    def source() -> Iterator[tuple[Any, ...]]:
        this = next(begun)
        yield blocks[0]
        if this == passes:
            raise OSError("the disk is gone")
        yield from blocks[1:]

    problem = StreamedProblem(BlockStream(source), 1)
    with pytest.raises(OSError, match="the disk is gone"):
        train(problem, make_solver("sgd-s"), tol=0.0, max_iter=50)
    assert no_thread_is_left()


def test_a_pass_that_is_left_early_leaves_nothing_running() -> None:
    open_now: list[int] = []

    def source() -> Iterator[tuple[Any, ...]]:
        open_now.append(1)
        try:
            yield from separable()
        finally:
            open_now.pop()

    stream = BlockStream(source)
    assert not open_now
    for taken in range(4):
        blocks = stream.blocks()
        for _ in range(taken + 1):
            next(blocks)
        assert open_now or taken == 3
        blocks.close()
        assert not open_now
        assert no_thread_is_left()


@pytest.mark.parametrize("name", ["sgd-s", "smoothed-newton", "block-dcd"])
def test_an_interrupt_keeps_what_was_proved(name: str) -> None:
    """The source is interrupted in the midst of a pass."""
    blocks, begun = separable(), itertools.count()

    def source() -> Iterator[tuple[Any, ...]]:
        this = next(begun)
        yield from blocks[:2]
        if this == 6:
            raise KeyboardInterrupt
        yield from blocks[2:]

    problem = StreamedProblem(BlockStream(source), 1)
    result = train(problem, make_solver(name), tol=0.0, max_iter=50, seed=0)
    assert result.reason == INTERRUPTED
    reference = StreamedProblem(BlockStream(lambda: blocks), 1)
    truth = train(reference, make_solver("newton"), tol=1e-8, max_iter=200).certificate
    found = result.certificate
    assert 0 < found.dual - found.dual_rounding <= truth.primal + truth.primal_rounding
    assert abs(primal_bound(reference, result.w).value - found.primal) <= 2 * found.primal_rounding
    assert no_thread_is_left()


INTERRUPTED_PROCESS = """
import signal, sys, threading, time
import numpy as np
from certsvm.solvers import make_solver
from certsvm.files.streams import BlockStream
from certsvm.problem.problems import StreamedProblem
from certsvm.training.loop import train
rng = np.random.default_rng(0)
X = rng.standard_normal((40, 3)); y = np.where(X[:, 0] + rng.standard_normal(40) > 0, 1, -1)
begun = []
def source():
    begun.append(1)
    for i in range(4):
        if len(begun) == 8 and i == 2:
            print("reading", flush=True)
            time.sleep(1.0)
        yield X[10 * i:10 * i + 10], y[10 * i:10 * i + 10]
problem = StreamedProblem(BlockStream(source), 1)
def threads():
    time.sleep(0.05)
    frames = sys._current_frames()
    others = [t for t in threading.enumerate() if t is not threading.main_thread()]
    return [t.name for t in others if frames[t.ident].f_code.co_name != "_run_all"]
"""

IN_A_PASS = """
result = train(problem, make_solver("sgd-s"), tol=0.0, max_iter=10**6)
print(result.reason, threads(), result.certificate.dual > 0)
"""

AS_A_PASS_BEGINS = """
def interrupt(*_): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
outcomes = set()
for delay in np.linspace(1e-5, 4e-4, 80):
    def later(progress):
        if progress.record.passes == 1: signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        outcomes.add(train(problem, make_solver("sgd-s"), tol=0.0, max_iter=100,
                           callbacks=[later]).reason)
    except BaseException as error:
        outcomes.add(repr(error))
print(*outcomes, threads())
"""


@posix
def test_ctrl_c_in_a_pass_ends_it_cleanly() -> None:
    code = INTERRUPTED_PROCESS + IN_A_PASS
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reading\n"
        os.kill(process.pid, signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(60) == 0
    assert rest == "interrupted [] True\n"


@posix
def test_ctrl_c_as_a_pass_begins_ends_it_cleanly() -> None:
    code = INTERRUPTED_PROCESS.replace("        yield", "        time.sleep(0.002)\n        yield")
    code = code.replace("len(begun) == 8", "False") + AS_A_PASS_BEGINS
    out = subprocess.check_output([sys.executable, "-c", code], text=True, timeout=120)
    assert out == "interrupted []\n"


@pytest.mark.parametrize("sparse", [False, True])
def test_a_source_that_reuses_its_buffer_is_right_or_refused(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((12, 50, 3))
    labels = np.where(data[:, :, 0] > 0, 1.0, -1.0)
    X = sp.csr_matrix(data[0]) if sparse else np.empty((50, 3))
    y = np.empty(50)

    def source() -> Iterator[tuple[Any, ...]]:
        for i in range(12):
            (X.data if sparse else X.ravel())[:] = data[i].ravel()
            y[:] = labels[i]
            yield X, y

    try:
        stream = BlockStream(source)
        result = train(StreamedProblem(stream, 1), make_solver("newton"), tol=1e-3, max_iter=20)
    except DataChangedError:
        return
    whole = StreamedProblem(BlockStream(lambda: zip(data, labels, strict=True)), 1)
    found = result.certificate
    assert abs(primal_bound(whole, result.w).value - found.primal) <= 1e-9 * found.primal
    assert stream.fingerprint == whole.stream.fingerprint


# What a stream takes, and what not.


X2, y2 = np.eye(2), np.array([1, -1])


BAD_BLOCKS: list[Any] = [
    (X2, "a block must be .* got ndarray"),
    ((X2, y2[:1]), r"X of shape \(2, 2\) and y of shape \(1,\)"),
    ((X2, np.array([1.0, np.nan])), "labels that are not finite"),
    ((X2, y2, [1.0, -1.0]), "row weights must be finite and not negative"),
    ((X2 * np.nan, y2), r"block 2 of the data \(after 2 rows\): .* NaN"),
    ((np.eye(2, 3), y2), "block 2 has 3 columns, those before it 2"),
    ((X2, np.array(["a", "b"])), "some labels are numbers and others strings"),
    ((X2 * 1j, y2), "block 2 .* real numbers"),
]


@pytest.mark.parametrize(("block", "message"), BAD_BLOCKS)
def test_blocks_that_are_none(block: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BlockStream(lambda: [(X2, y2), block])
    assert no_thread_is_left()


def test_rows_without_values() -> None:
    """Also a block that stores nothing, and one in which no row has a weight."""
    X, empty = sp.csr_matrix(X2), sp.csr_matrix((2, 2))
    stream = BlockStream(lambda: [(X, y2), (empty, y2), (X, y2, np.zeros(2))])
    result = train(StreamedProblem(stream, 1), make_solver("newton"), tol=1e-6)
    assert result.certificate.met
    assert result.certificate.primal == pytest.approx(1.0 + 2.0, rel=1e-6)


def test_one_item_ahead_and_no_further() -> None:
    read: list[int] = []
    third, closed_in = threading.Event(), []

    def items() -> Generator[int, None, None]:
        try:
            for i in range(10):
                read.append(i)
                if i == 2:
                    third.set()
                yield i
        finally:
            closed_in.append(threading.current_thread())

    reader = Reader()
    ahead = reader.one_ahead(items())
    assert [next(ahead), next(ahead)] == [0, 1]
    # Item 2 is read while item 1 is in use, and item 3 is not.
    assert third.wait(10)
    time.sleep(0.02)
    assert read == [0, 1, 2]
    ahead.close()
    assert [thread.name for thread in closed_in] == ["certsvm-read"]
    two = reader.one_ahead(i for i in range(3)), reader.one_ahead(c for c in "abc")
    assert list(zip(*two, strict=True)) == [(0, "a"), (1, "b"), (2, "c")]


def test_the_thread_ends_with_its_stream_and_with_the_process() -> None:
    code = (
        "import gc, threading, numpy as np\n"
        "from certsvm.files.streams import BlockStream\n"
        "blocks = [(np.eye(2), [1, -1])] * 9\n"
        "stream = BlockStream(lambda: blocks)\n"
        "before = threading.active_count()\n"
        "del stream; gc.collect()\n"
        "while threading.active_count() == before: pass\n"
        "a_pass = BlockStream(lambda: blocks).blocks()\n"
        "print(next(a_pass).first)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
