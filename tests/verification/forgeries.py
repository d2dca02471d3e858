"""Forged certificates, and whether verdicts about them are true, in rational arithmetic.

python -m tests.verification.forgeries --count 100000
"""

import argparse
import itertools
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from certsvm.certificates.certificate import Certificate
from certsvm.files import Witness
from certsvm.verification import verify

Array = NDArray[np.float64]
ERROR = "error"

EXTREMES = (1e16, 2.0**53, 2.0**53 + 2, 1e8, 1e30, 1e154, 1e200, 1e300, 1.5e308, 1e-8, 1e-16,
            1e-154, 1e-300, 5e-324, 2.2e-308)  # fmt: skip
WRONG = (math.nan, math.inf, -math.inf)


@dataclass
class Case:
    """Data, model, dual point and claims of one verification; labels are 0, 1, ..."""

    X: Array
    labels: NDArray[np.int64]
    weights: Array | None
    class_weight: Array
    C: float
    rho: float
    coef: Array
    intercept: Array
    alphas: Array | None = None
    witness: Witness | None = None
    form: str = "float64"
    cuts: tuple[int, ...] = ()
    squared: bool = False
    free: bool = False
    claims: list[Certificate] = field(default_factory=list)

    @property
    def loss(self) -> str:
        return "squared_hinge" if self.squared else "hinge"

    @property
    def positives(self) -> list[int]:
        return [1] if self.class_weight.size == 2 else list(range(self.class_weight.size))

    def signs(self, i: int) -> Array:
        return np.where(self.labels == self.positives[i], 1.0, -1.0)

    def row_weights(self, i: int) -> Array:
        """s_k: the product in float64, by definition."""
        weights = self.class_weight[self.labels]
        if self.class_weight.size > 2:
            weights = np.where(self.signs(i) > 0, weights, 1.0)
        with np.errstate(over="ignore"):
            return weights if self.weights is None else weights * self.weights

    def weights_of_problems(self) -> Array:
        return np.array([self.row_weights(i) for i in range(len(self.positives))])

    def matrix(self) -> Any:
        return sp.csr_matrix(self.X) if self.form == "csr" else self.X.astype(self.form)

    def verified(self, *, exact: bool = False) -> verify.VerificationReport:
        """The report of ``verify`` or, with a witness, of ``verify_model``."""
        classes, X = np.arange(self.class_weight.size), self.matrix()
        if self.witness is None:
            clf = SimpleNamespace(
                coef_=self.coef, intercept_=self.intercept, classes_=classes,
                class_weight_=self.class_weight, certificates_=self.claims,
            )  # fmt: skip
            if self.alphas is not None:
                clf.dual_coef_ = self.alphas
            return verify.verify(clf, X, self.labels, self.weights, exact=exact)
        model = SimpleNamespace(
            coef=self.coef, intercept=self.intercept, classes=classes,
            class_weight=self.class_weight, certificates=self.claims, witness=self.witness,
            fingerprint=None,
        )  # fmt: skip
        edges = [0, *sorted(self.cuts), len(self.labels)]
        blocks = [
            (X[a:b], self.labels[a:b], None if self.weights is None else self.weights[a:b])
            for a, b in itertools.pairwise(edges)
        ]
        return verify.verify_model(model, blocks, exact=exact)


# What is true.


def exact(values: Any) -> list[Fraction]:
    return [Fraction(float(v)) for v in np.asarray(values).ravel()]


def patterns(case: Case, i: int) -> list[list[Fraction]]:
    signs = case.signs(i).astype(int).tolist()
    rho = [Fraction(case.rho)] if case.rho else []
    values = np.asarray(case.matrix().todense() if case.form == "csr" else case.matrix())
    return [[s * v for v in exact(x) + rho] for x, s in zip(values, signs, strict=True)]


def exact_primal(case: Case, i: int, w: list[Fraction]) -> Fraction:
    losses = [
        max(Fraction(0), 1 - sum((a * b for a, b in zip(w, y, strict=True)), Fraction(0)))
        for y in patterns(case, i)
    ]
    if case.squared:
        losses = [loss * loss for loss in losses]
    weighted = [s * v for s, v in zip(exact(case.row_weights(i)), losses, strict=True)]
    penalised = w[:-1] if case.free and case.rho else w
    return sum((v * v for v in penalised), Fraction(0)) / 2 + Fraction(case.C) * sum(weighted)


def weight_vector(case: Case, i: int) -> list[Fraction] | None:
    """The weight vector of problem i; None if it is none of the problem."""
    if not (np.isfinite(case.coef[i]).all() and math.isfinite(case.intercept[i])):
        return None
    if case.rho:
        return [*exact(case.coef[i]), Fraction(float(case.intercept[i])) / Fraction(case.rho)]
    return None if case.intercept[i] else exact(case.coef[i])


def exact_alpha(case: Case, i: int) -> list[Fraction] | None:
    """The feasible point that the case is about; None if it is not feasible."""
    alpha = alpha_in_box(case, i)
    if alpha is None or not (case.free and case.rho):
        return alpha
    signs = case.signs(i).tolist()
    up, down = (
        sum((a for a, s in zip(alpha, signs, strict=True) if s == side), Fraction(0))
        for side in (1.0, -1.0)
    )
    least = min(up, down)
    factors = {1.0: least / up if up else Fraction(0), -1.0: least / down if down else Fraction(0)}
    return [factors[s] * a for a, s in zip(alpha, signs, strict=True)]


def alpha_in_box(case: Case, i: int) -> list[Fraction] | None:
    """The same before it is balanced."""
    weights = case.row_weights(i)
    box = [Fraction(case.C) * s for s in exact(weights)]
    if case.witness is not None:
        given = case.witness.alpha(i, case.C * weights)
    else:
        assert case.alphas is not None
        given = case.alphas[i]
    end = np.where(weights > 0, sys.float_info.max, 0.0) if case.squared else case.C * weights
    if not ((given >= 0) & (given <= end)).all():
        return None
    if not case.squared:
        beyond = [a > top for a, top in zip(exact(given), box, strict=True)]
        given = np.where(beyond, np.nextafter(given, 0.0), given)
    return exact(given)


def combination(case: Case, i: int, alpha: list[Fraction]) -> list[Fraction]:
    columns = zip(*patterns(case, i), strict=True)
    return [sum((a * y for a, y in zip(alpha, x, strict=True)), Fraction(0)) for x in columns]


def exact_dual(case: Case, i: int, alpha: list[Fraction], w: list[Fraction]) -> Fraction:
    linear, penalty = sum(alpha, Fraction(0)), exact_penalty(case, i, alpha)
    return linear - penalty - sum((v * v for v in w), Fraction(0)) / 2


def exact_penalty(case: Case, i: int, alpha: list[Fraction]) -> Fraction:
    if not case.squared:
        return Fraction(0)
    pairs = zip(alpha, exact(case.row_weights(i)), strict=True)
    return sum((a * a / (4 * Fraction(case.C) * s) for a, s in pairs if a), Fraction(0))


def falsehoods(case: Case, i: int, v: verify.Verification) -> list[str]:
    """What is wrong with a verdict."""
    c, found = v.claimed, []
    numbers = (c.primal, c.dual, c.primal_rounding, c.dual_rounding)
    if not (all(map(math.isfinite, numbers)) and min(numbers[2:]) >= 0):
        return [] if v.verdict == verify.REFUTED else [f"{v.verdict}: {c}"]
    primal, dual, up, down = map(Fraction, numbers)
    w, half = weight_vector(case, i), v.L is None
    J = None if w is None else exact_primal(case, i, w)
    contradicted = True
    if J is not None:
        contradicted = abs(J - primal) > up or dual - down > J
        if not v.J.low <= J <= v.J.high:
            found.append(f"J = {float(J)!r} is not in {v.J!r}")
    if not half:
        alpha = exact_alpha(case, i)
        if alpha is None:
            contradicted = True
        else:
            w_alpha = combination(case, i, alpha)
            L = exact_dual(case, i, alpha, w_alpha)
            assert v.L is not None
            if not v.L.low <= L <= v.L.high:
                found.append(f"L = {float(L)!r} is not in {v.L!r}")
            contradicted = contradicted or abs(L - dual) > down
            # Not by weak duality alone, but at points that anyone can compute.
            zero = [Fraction(0)] * len(w_alpha)
            others = [exact_primal(case, i, point) for point in (zero, w_alpha)]
            contradicted = contradicted or dual - down > min(others)
    if v.verdict in (verify.CONFIRMED, verify.HALF_CONFIRMED) and contradicted:
        found.append(f"{v.verdict}, but false")
    if v.verdict == verify.REFUTED and not contradicted:
        found.append("refuted, but true")
    if v.verdict == (verify.CONFIRMED if half else verify.HALF_CONFIRMED):
        found.append(f"{v.verdict} is the wrong half")
    return found


# What is forged.


def honest(r: random.Random, *, extreme: float = 0.0) -> Case:
    """A case with true claims; a share of its numbers are extreme."""

    def number() -> float:
        if r.random() < extreme:
            return r.choice([-1, 1]) * r.choice(EXTREMES) * r.choice([1.0, 1.0, r.random()])
        return r.choice([float(r.randint(-3, 3)), r.uniform(-3, 3)])

    def numbers(*shape: int) -> Array:
        return np.array([number() for _ in range(math.prod(shape))]).reshape(shape)

    n, d, n_classes = r.randint(1, 7), r.randint(1, 4), r.choice([2, 2, 3])
    n_problems = 1 if n_classes == 2 else n_classes
    rho = r.choice([0.0, 1.0, 0.3])
    case = Case(
        X=numbers(n, d), labels=np.array([r.randrange(n_classes) for _ in range(n)]),
        weights=np.abs(numbers(n)) if r.random() < 0.5 else None,
        class_weight=np.ones(n_classes) if r.random() < 0.7 else np.abs(numbers(n_classes)),
        C=abs(number()) or 1.0, rho=rho, coef=numbers(n_problems, d),
        intercept=numbers(n_problems) if rho else np.zeros(n_problems),
        form=r.choice(["float64", "csr"]),
        cuts=tuple(r.randint(0, n) for _ in range(r.randint(0, 2))),
        squared=r.random() < 0.5, free=r.random() < 0.5,
    )  # fmt: skip
    if not np.isfinite(case.weights_of_problems()).all():
        case.weights = None
    if r.random() < 0.2:
        with np.errstate(over="ignore"):
            small = case.X.astype(np.float32)
        if np.isfinite(small).all():
            case.X, case.form = small.astype(np.float64), "float32"
    if r.random() < 0.3 and n > 1:
        # Duplicates, which may cancel.
        case.X[r.randrange(n)] = r.choice([-1, 1]) * case.X[r.randrange(n)]
    set_dual_point(case, r)
    claim_truth(case)
    return case


def set_dual_point(case: Case, r: random.Random) -> None:
    n_problems, n = len(case.positives), len(case.labels)
    with np.errstate(over="ignore"):
        box = case.C * case.weights_of_problems()
        representable = np.isfinite(100.0 * box if case.squared else box).all()
    kind = r.choice(["alphas", "8", "16", "32", "none"])
    if not representable:
        kind = "none"
    fractions = np.array([r.choice([0.0, 1.0, r.random()]) for _ in range(n_problems * n)])
    fractions = fractions.reshape(n_problems, n)
    case.alphas, case.witness = None, None
    # Without an upper end, alpha may be any multiple.
    multiples = [2.0, r.uniform(1, 100)] if case.squared else []
    if kind == "alphas":
        case.alphas = np.minimum(fractions * box, box) * r.choice([1.0, *multiples])
    elif kind != "none":
        codes = np.rint(fractions * (2 ** int(kind) - 1)).astype(f"u{int(kind) // 8}")
        scale = np.array([r.choice([1.0, 0.5, 0.7, *multiples]) for _ in range(n_problems)])
        case.witness = Witness(codes, scale)


def nearest(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def claim_truth(case: Case) -> None:
    """Claim the exact values, rounded once, with an allowance for that."""
    case.claims = []
    for i in range(len(case.positives)):
        w = weight_vector(case, i)
        primal = nearest(Fraction(1) if w is None else exact_primal(case, i, w))
        # A margin is known to as many digits as its size has.
        with np.errstate(all="ignore"):
            sizes = 1.0 + abs(case.X) @ abs(case.coef[i]) + abs(case.intercept[i])
            spread = case.C * float(case.row_weights(i) @ sizes ** (2 if case.squared else 1))
        spread = (abs(primal) + spread) * 1e-14 if math.isfinite(spread) else abs(primal) * 1e-15
        dual = size = 0.0
        if case.alphas is not None or case.witness is not None:
            alpha = exact_alpha(case, i)
            if alpha is not None:
                w_alpha = combination(case, i, alpha)
                dual = nearest(exact_dual(case, i, alpha, w_alpha))
                squares = sum((v * v for v in w_alpha), exact_penalty(case, i, alpha))
                size = nearest(sum(alpha, Fraction(0)) + squares)
        case.claims.append(
            Certificate(
                primal=primal, dual=dual, target=0.01, bound="forged", C=case.C,
                intercept_scaling=case.rho, loss=case.loss,
                penalize_intercept=not case.free,
                primal_rounding=spread, dual_rounding=size * 1e-14,
            )
        )  # fmt: skip


def naive_claims(case: Case, r: random.Random) -> None:
    """Claim what plain float64 computes, in which large terms absorb small ones.

    If the intercept is free, alpha is taken for balanced, whether it is or not.
    """
    with np.errstate(all="ignore"):
        for i, claimed in enumerate(case.claims):
            s, signs, X = case.row_weights(i), case.signs(i), case.X
            margins = signs * (X @ case.coef[i] + case.intercept[i])
            bias = case.intercept[i] / case.rho if case.rho and not case.free else 0.0
            square = case.coef[i] @ case.coef[i] + bias * bias
            losses = np.maximum(0.0, 1.0 - margins) ** (2 if case.squared else 1)
            primal = 0.5 * square + case.C * float(s @ losses)
            dual = claimed.dual
            alpha = case.alphas[i] if case.alphas is not None else None
            if case.witness is not None:
                alpha = case.witness.alpha(i, case.C * s)
            if alpha is not None:
                w = X.T @ (signs * alpha)
                bias = 0.0 if case.free else case.rho * float((signs * alpha).sum())
                dual = float(alpha.sum() - 0.5 * (w @ w + bias * bias))
                if case.squared:
                    penalties = alpha[alpha > 0] ** 2 / (4.0 * case.C * s[alpha > 0])
                    dual -= float(penalties.sum())
            case.claims[i] = replace(
                claimed, primal=float(primal), dual=dual,
                primal_rounding=abs(float(primal)) * 1e-14, dual_rounding=abs(dual) * 1e-14,
            )  # fmt: skip


def forge_absorbed(r: random.Random) -> Case:
    """Rows of both signs so large that they absorb what lies between them."""
    case = honest(r)
    huge = r.choice([1e15, 1e16, 1e17, 1e30, 1e100, 1e160, 1e308]) * r.choice([1.0, r.random()])
    row = np.array([huge * r.choice([-1, 0, 1]) for _ in range(case.X.shape[1])])
    case.X = np.vstack([row, case.X, -row])
    label = r.randrange(case.class_weight.size)
    case.labels = np.concatenate([[label], case.labels, [label]])
    if case.weights is not None:
        case.weights = np.concatenate([[1.0], case.weights, [1.0]])
    case.form = "csr" if case.form == "csr" else "float64"
    if r.random() < 0.5:
        case.coef, case.intercept = np.zeros_like(case.coef), np.zeros_like(case.intercept)
    set_dual_point(case, r)
    claim_truth(case)
    naive_claims(case, r)
    return case


def forge_extreme(r: random.Random) -> Case:
    case = honest(r, extreme=r.choice([0.1, 0.5, 1.0]))
    if r.random() < 0.6:
        naive_claims(case, r)
    return case


def forge_perturbed(r: random.Random) -> Case:
    """Claims that are off by a little, or by about as much as is tolerated."""
    case = honest(r, extreme=r.choice([0.0, 0.0, 0.1]))
    for i, claimed in enumerate(case.claims):
        change = 1.0 + r.choice([-1, 1]) * r.choice([1e-15, 1e-12, 9.9e-10, 1.1e-9, 1e-6, 0.1, 1.0])
        allowance = r.choice([0.0, 1e-15, 1e-9, 1e-4, 1e-2, 1.0, 1e300])
        name = r.choice(["primal", "dual"])
        value = getattr(claimed, name) * change
        changes = {name: value, f"{name}_rounding": allowance * abs(value)}
        case.claims[i] = replace(claimed, **changes)
    return case


def forge_not_a_number(r: random.Random) -> Case:
    case, wrong = honest(r), r.choice(WRONG)
    place = r.choice(["X", "weights", "class_weight", "coef", "intercept", "alphas", "claims"])
    if place == "claims":
        name = r.choice(["primal", "dual", "primal_rounding", "dual_rounding"])
        case.claims[0] = replace(case.claims[0], **{name: wrong})
    elif getattr(case, place) is not None:
        array = getattr(case, place).copy()
        array.flat[r.randrange(array.size)] = wrong
        setattr(case, place, array)
        if place == "X":
            case.form = "csr" if case.form == "csr" else "float64"
    return case


def forge_infeasible(r: random.Random) -> Case:
    case = honest(r)
    case.witness, n = None, len(case.labels)
    case.alphas = case.C * case.weights_of_problems()
    k = r.randrange(n)
    wrong = [-5e-324, -1.0, math.nan]
    if not case.squared:
        top = case.alphas[0, k]
        wrong += [math.nextafter(top, math.inf), top * 2 + 1e-9]
    elif r.random() < 0.5:
        # A row without weight has no alpha.
        case.weights = np.ones(n) if case.weights is None else case.weights
        case.weights[k] = 0.0
        case.alphas[:, k] = 0.0
        wrong += [1e-300, 1.0]
    case.alphas[0, k] = r.choice([*wrong, math.inf])
    claim_truth(case)
    naive_claims(case, r)
    return case


def forge_other_data(r: random.Random) -> Case:
    """Rows in another order, other weights or labels, a row changed, after the claims were made."""
    case = honest(r)
    n, kind = len(case.labels), r.choice(["permuted", "weights", "labels", "row", "model"])
    if kind == "permuted":
        case.X = case.X[np.array(r.sample(range(n), n))]
    elif kind == "weights":
        weights = np.ones(n) if case.weights is None else case.weights.copy()
        weights[r.randrange(n)] *= r.choice([0.0, 1.0 + 2.0**-52, 1.5, 1e16])
        case.weights = weights
    elif kind == "labels":
        case.labels = case.labels.copy()
        case.labels[r.randrange(n)] = r.randrange(case.class_weight.size)
    elif kind == "row":
        case.X = case.X.copy()
        case.X[r.randrange(n)] *= r.choice([-1.0, 1e-3, 1.0 + 2.0**-40])
        case.form = "csr" if case.form == "csr" else "float64"
    else:
        case.coef = case.coef * r.choice([1.0 + 2.0**-52, 1.0 + 1e-9, 2.0, 1e16])
    return case


def forge_other_problem(r: random.Random) -> Case:
    """Claims about another loss or intercept than those that they were computed for."""
    case = honest(r)
    kind = r.choice(["loss", "penalty", "both", "scale", "unknown"])
    if kind in ("loss", "both"):
        case.squared = not case.squared
    if kind in ("penalty", "both"):
        case.free = not case.free
    changes: dict[str, Any] = {"loss": case.loss, "penalize_intercept": not case.free}
    if kind == "scale" and case.witness is not None:
        scale = case.witness.scale * r.choice([1.0 + 2.0**-52, 2.0, 1e300])
        case.witness = replace(case.witness, scale=scale)
    elif kind == "unknown":
        changes |= r.choice([{"loss": "hinges"}, {"loss": None}, {"penalize_intercept": 1}])
    case.claims = [replace(c, **changes) for c in case.claims]
    return case


def forge_unbalanced(r: random.Random) -> Case:
    """L of an alpha that is not balanced, for a free intercept, claimed as a bound."""
    case = honest(r)
    case.free, case.rho, case.witness = True, case.rho or 1.0, None
    kind: Any = {"intercept_scaling": case.rho, "penalize_intercept": False}
    case.claims = [replace(claimed, **kind) for claimed in case.claims]
    with np.errstate(over="ignore"):
        case.alphas = case.C * case.weights_of_problems()
    naive_claims(case, r)
    return case


def forge_truncated(r: random.Random) -> Case:
    """A dual point of another length, or of another number of classes."""
    case = honest(r)
    n, n_problems = len(case.labels), len(case.positives)
    shape = r.choice([(n_problems, n - 1), (n_problems, n + 1), (n_problems + 1, n), (0, n), (0,)])
    if r.random() < 0.5 or len(shape) < 2:
        case.alphas, case.witness = np.zeros(shape), None
    else:
        case.alphas, case.witness = None, Witness(np.ones(shape, np.uint8), np.ones(shape[0]))
    return case


def forge_outside(r: random.Random) -> Case:
    """An intercept in a problem that has none."""
    case = honest(r)
    case.rho, case.witness = 0.0, None
    case.intercept = case.intercept + r.choice([1e-300, 1e-3, 1.0])
    case.claims = [replace(c, intercept_scaling=0.0) for c in case.claims]
    naive_claims(case, r)
    return case


KINDS: dict[str, Callable[[random.Random], Case]] = {
    forge.__name__.removeprefix("forge_").replace("_", " "): forge
    for forge in (
        honest, forge_absorbed, forge_extreme, forge_perturbed, forge_not_a_number,
        forge_infeasible, forge_other_data, forge_other_problem, forge_unbalanced,
        forge_truncated, forge_outside,
    )
}  # fmt: skip


def judge(case: Case) -> tuple[str, list[str]]:
    """The verdict on a case, and what is wrong with it."""
    try:
        with np.errstate(all="ignore"):
            report = case.verified()
    except ValueError:
        return ERROR, []
    found = [text for i, v in enumerate(report) for text in falsehoods(case, i, v)]
    return report.verdict, found


def main() -> None:
    """Count the verdicts about random forgeries; stop at the first that is false."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    began = time.perf_counter()
    for k in range(arguments.count):
        kind = list(KINDS)[k % len(KINDS)]
        case = KINDS[kind](random.Random(f"{arguments.seed} {k}"))
        verdict, found = judge(case)
        if found:
            raise SystemExit(f"number {k}, {kind}: {found}\n{case}")
        counts[kind][verdict] += 1
    columns = [verify.CONFIRMED, verify.HALF_CONFIRMED, verify.UNDECIDED, verify.REFUTED, ERROR]
    print("| forgery | " + " | ".join(columns) + " |\n|" + " --- |" * (len(columns) + 1))
    for kind, of_kind in counts.items():
        print(f"| {kind} | " + " | ".join(str(of_kind[name]) for name in columns) + " |")
    seconds = time.perf_counter() - began
    print(f"\n{arguments.count} cases in {seconds:.0f} s, no false verdict")


if __name__ == "__main__":
    main()
