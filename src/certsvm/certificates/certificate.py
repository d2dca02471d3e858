"""The certificate: the statement that training ends with.

    L(alpha) = sum_k alpha_k - 1/2 |sum_k alpha_k y_k|^2 <= J_opt <= J(w)

for any w and any alpha in the box 0 <= alpha_k <= C s_k. (For the squared hinge, the box has no
upper end, and L loses sum_k alpha_k^2 / (4 C s_k); for a free intercept, sum_k label_k alpha_k must
be zero.) Hence J(w) exceeds the optimum by at most the factor J/L. Only this module draws that
conclusion:

* L <= 0 proves nothing: the relative gap is then infinite, whatever J / L - 1 would say.
* J and L come with allowances for rounding (``primal``, ``dual``). A target counts as met only if
  it is met with both allowances counted against it.
* J >= L holds for the exact numbers. Where the computed ones say otherwise by no more than the
  allowances, the gap is reported as zero: it is smaller than rounding. This clipping proves
  nothing, and no target is met by it. A lower bound above the upper one by more than that is a
  contradiction, and its gap is reported as computed, negative.
* Gaps are printed rounded up.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certsvm.markup import statement, table
from certsvm.scalars import set_plain_numbers

DEFAULT_TOL = 1e-4
"""The relative accuracy that training proves unless another is asked for."""
COARSE_TOL = 0.01
"""The same for every C in a range, and for streams and clusters, whose passes are expensive."""

PRIMAL_ONLY = "primal only"
LEAST_GAP = 2.0**-52
"""The least relative gap that float64 tells from zero, which has no place on logarithmic axes."""

HINGE_NAME, SQUARED_HINGE_NAME = LOSS_NAMES = "hinge", "squared_hinge"
"""The names of the losses that certificates are about."""

# Control characters, and what else begins a line.
_CONTROLS = {"Cc", "Zl", "Zp"}


@dataclass(frozen=True)
class Certificate:
    """A true statement about how close to the optimum a weight vector is.

    Attributes
    ----------
    primal : float
        J(w), computed over all rows.
    dual : float
        A lower bound on the optimum. Zero, which alpha = 0 gives, if nothing better is known.
    target : float
        The relative accuracy asked for.
    bound : str
        How the dual bound was obtained; ``"primal only"`` if the solver has none.
    scale : float
        The factor by which the feasible dual point was multiplied; at most 1 for the hinge.
    primal_rounding, dual_rounding : float
        Allowances: the exact values of ``primal`` and ``dual`` differ from the computed ones
        by no more than these.
    C, intercept_scaling : float
        The certified problem: the weight of the loss, and the augmentation rho.
    loss : str
        The certified loss: ``"hinge"`` or ``"squared_hinge"``.
    penalize_intercept : bool
        Whether the regulariser of the certified problem contains the intercept.

    Examples
    --------
    >>> certificate = Certificate(primal=101.0, dual=100.0, target=0.02, bound="an example")
    >>> certificate.relative_gap <= 0.02, certificate.met
    (True, True)
    >>> print(certificate)
    primal 101, dual 100: within 1 % of the optimum, proved; target 2 % met
    """

    primal: float
    dual: float
    target: float
    bound: str = PRIMAL_ONLY
    scale: float = 1.0
    primal_rounding: float = 0.0
    dual_rounding: float = 0.0
    C: float = 1.0
    intercept_scaling: float = 0.0
    loss: str = HINGE_NAME
    penalize_intercept: bool = True

    def __post_init__(self) -> None:
        set_plain_numbers(self)

    @property
    def free_intercept(self) -> bool:
        """Whether there is an intercept, and the regulariser does not contain it."""
        return self.intercept_scaling > 0.0 and not self.penalize_intercept

    @property
    def squared(self) -> bool:
        """Whether the loss is the squared hinge."""
        return self.loss == SQUARED_HINGE_NAME

    @property
    def problem(self) -> str:
        """The certified problem, in words.

        Examples
        --------
        >>> Certificate(2.0, 1.0, 0.01, C=0.5, intercept_scaling=1.0).problem
        'C = 0.5, hinge loss, intercept in the penalty (scaled by 1)'
        """
        return f"C = {self.C:g}, {self.objective}"

    @property
    def objective(self) -> str:
        """What is minimised at any C, in words."""
        intercept = "no intercept"
        if self.intercept_scaling > 0.0:
            intercept = f"intercept in the penalty (scaled by {self.intercept_scaling:g})"
        if self.free_intercept:
            intercept = "intercept without penalty"
        return f"{self.loss.replace('_', ' ')} loss, {intercept}"

    @property
    def gap(self) -> float:
        """J - L, as computed; zero if it is negative within the rounding allowances."""
        gap = self.primal - self.dual
        return 0.0 if gap < 0.0 <= self.proved_gap else gap

    @property
    def relative_gap(self) -> float:
        """J / L - 1, as computed, for reports and plots: J / J_opt - 1 is no more, up to rounding.

        Infinite when L <= 0. Zero means below the level of rounding: J and L are the same numbers,
        or J was computed to be less than L by no more than the allowances. Negative only if the
        certificate contradicts itself. What is certain is ``proved_gap``, which decides whether the
        target is ``met``.
        """
        gap = relative_gap(self.primal, self.dual)
        return 0.0 if gap < 0.0 <= self.proved_gap else gap

    @property
    def proved_gap(self) -> float:
        """The relative gap with both rounding allowances counted against it: what is proved.

        It is computed exactly and rounded up. Negative if the certificate contradicts itself.
        """
        gap = relative_gap(self.primal + self.primal_rounding, self.dual - self.dual_rounding)
        if not (math.isfinite(gap) and math.isfinite(self.dual - self.dual_rounding)):
            return gap
        low, high = self._exact_bounds()
        exact = high / low - 1
        try:
            nearest = float(exact)
        except OverflowError:
            return math.inf
        return nearest if nearest >= exact else math.nextafter(nearest, math.inf)

    @property
    def met(self) -> bool:
        """Whether the target is proved to be met.

        A lower bound above the upper one is a contradiction, which meets no target.
        """
        gap = self.proved_gap
        if not (0.0 <= gap <= self.target and math.isfinite(gap)):
            return False
        low, high = self._exact_bounds()
        return low <= high

    def _exact_bounds(self) -> tuple[Fraction, Fraction]:
        """L and J without rounding, the allowances counted against them."""
        low = Fraction(float(self.dual)) - Fraction(float(self.dual_rounding))
        return low, Fraction(float(self.primal)) + Fraction(float(self.primal_rounding))

    def _repr_html_(self) -> str:
        """For notebooks: the sentence, and the bounds."""
        return statement(
            self.met, str(self), f"problem {self.problem}",
            f"J, upper bound {self.primal:.10g}",
            f"L, lower bound {self.dual:.10g} ({printable(self.bound)})",
            f"rounding, at most {self.primal_rounding + self.dual_rounding:.1e}",
        )  # fmt: skip

    def __str__(self) -> str:
        numbers = f"primal {self.primal:.6g}, dual {self.dual:.6g}"
        if math.isinf(self.proved_gap):
            return f"{numbers}: nothing is proved about the distance to the optimum"
        if self.proved_gap < 0.0:
            return f"{numbers}: a contradiction, the lower bound exceeds the upper"
        verdict = "met" if self.met else "not met"
        return (
            f"{numbers}: within {percent(self.proved_gap)} of the optimum, proved; "
            f"target {self.target * 100:.6g} % {verdict}"
        )

    __repr__ = __str__


class Certificates(list[Certificate]):
    """The certificates of several binary problems, in the order of the classes.

    Parameters
    ----------
    certificates : iterable of Certificate
        One for each problem.
    labels : sequence
        The positive class of each problem.

    Examples
    --------
    >>> Certificates([Certificate(primal=101.0, dual=100.0, target=0.02)], ["spam"])
    class spam: primal 101, dual 100: within 1 % of the optimum, proved; target 2 % met
    """

    def __init__(self, certificates: Iterable[Certificate], labels: Iterable[Any]) -> None:
        super().__init__(certificates)
        self.labels = [tidy(label) for label in labels]

    def __repr__(self) -> str:
        pairs = zip(self.labels, self, strict=False)
        return "\n".join(f"class {label}: {certificate}" for label, certificate in pairs)

    def _repr_html_(self) -> str:
        """For notebooks: a row for each class."""
        rows = [
            [
                label, f"{c.primal:.6g}", f"{c.dual:.6g}", percent(c.proved_gap),
                f"{c.target * 100:.6g} % {'met' if c.met else 'not met'}", printable(c.bound),
            ]
            for label, c in zip(self.labels, self, strict=False)
        ]  # fmt: skip
        return table(["class", "J", "L", "gap, proved", "target", "origin of L"], rows)


def tidy(label: object) -> str:
    r"""A label as text, on one line and without a superfluous ".0": 1, not 1.0.

    Examples
    --------
    >>> tidy(1.0), tidy(-2.5), tidy("spam"), tidy("two" + chr(10) + "lines")
    ('1', '-2.5', 'spam', 'two\\nlines')
    """
    # isinstance holds for NumPy's float64, too.
    if isinstance(label, float) and label.is_integer():
        return str(int(label))
    return printable(str(label))


def printable(text: str, keep: str = "") -> str:
    r"""The text with control characters escaped, except those to ``keep``.

    A string from a file could otherwise move the cursor of a terminal, or forge a line.

    Examples
    --------
    >>> printable("spam" + chr(27) + "[2K")
    'spam\\x1b[2K'
    """
    if text.isprintable():
        return text
    return "".join(
        repr(c)[1:-1] if c not in keep and unicodedata.category(c) in _CONTROLS else c for c in text
    )


def percent(fraction: float) -> str:
    """A fraction as a percentage with three significant digits, rounded up.

    Examples
    --------
    >>> percent(0.0095001), percent(0.5), percent(11.731), percent(-1e-17)
    ('0.951 %', '50 %', '1,180 %', '-1e-15 %')
    """
    scaled = fraction * 100.0
    if scaled == 0.0 or not math.isfinite(scaled):
        return f"{scaled:g} %"
    unit = 10.0 ** (math.floor(math.log10(abs(scaled))) - 2)
    shown = float(f"{scaled:.3g}")
    # If formatting rounded down, one unit in the last place is added.
    shown = shown if shown >= scaled else shown + unit
    return f"{shown:,.0f} %" if 1e3 <= shown < 1e9 else f"{shown:.3g} %"


def percentage_points(difference: float) -> str:
    """A difference of percentages with three significant digits, rounded up.

    Examples
    --------
    >>> percentage_points(0.01), percentage_points(0.02)
    ('1 percentage point', '2 percentage points')
    """
    number = percent(difference).removesuffix(" %")
    return f"{number} percentage point{'' if number == '1' else 's'}"


def relative_gap(primal: float, dual: float) -> float:
    """J / L - 1; infinite when L <= 0, which proves nothing.

    Examples
    --------
    >>> relative_gap(3.0, 2.0), relative_gap(3.0, -2.0)
    (0.5, inf)
    """
    if not (dual > 0.0 and math.isfinite(primal)):
        return math.inf
    return primal / dual - 1.0
