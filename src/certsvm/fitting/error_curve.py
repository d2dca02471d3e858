"""The error of cross-validation as a function of C: measured, and bounded for every C."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.problem.rows import Vector
from certsvm.report.plots import plot_curve

DEFAULT_RANGE = (1e-3, 1e2)
_DEFAULT_VALUES = 20


def values_in(C_range: tuple[float, float], n: int | None = None, *, certify: bool) -> list[float]:
    """Values of C to fit in a range, of equal ratio.

    Parameters
    ----------
    C_range : tuple of float
        The lowest and the highest.
    n : int, default=None
        Their number; None means 20, or, to begin a proof with, one for each power of ten.
    certify : bool
        Whether a proof begins with them.

    Returns
    -------
    Cs : list of float
        Ascending.

    Examples
    --------
    >>> [round(C, 9) for C in values_in((0.01, 10.0), certify=True)]
    [0.01, 0.1, 1.0, 10.0]
    """
    low, high = C_range
    if n is None:
        decades = math.ceil(math.log10(high) - math.log10(low) - 1e-9)
        n = 1 + max(1, decades) if certify else _DEFAULT_VALUES
    return [low, *np.geomspace(low, high, n)[1:-1].clip(low, high).tolist(), high]


@dataclass(frozen=True)
class Pieces:
    """Bounds on the mean error, for every C in each of several adjacent pieces.

    Attributes
    ----------
    edges : ndarray of shape (n_pieces + 1,)
        The values of C at which the pieces begin and end.
    low, high : ndarray of shape (n_pieces,)
        For every C in the piece, the mean error of the exact optima is between these.
    """

    edges: Vector
    low: Vector
    high: Vector

    @property
    def bound(self) -> float:
        """No C has a mean error below this."""
        return float(self.low.min())

    def within(self, around: Pieces) -> Pieces:
        """The same pieces, cut at the edges of others around them, with the better bounds of both.

        Examples
        --------
        >>> new = Pieces(np.array([1.0, 3.0]), np.array([0.1]), np.array([0.4]))
        >>> old = Pieces(np.array([0.0, 2.0, 4.0]), np.array([0.0, 0.2]), np.array([0.3, 1.0]))
        >>> both = new.within(old)
        >>> both.edges.tolist(), both.low.tolist(), both.high.tolist()
        ([1.0, 2.0, 3.0], [0.1, 0.2], [0.3, 0.4])
        """
        inside = around.edges[(around.edges > self.edges[0]) & (around.edges < self.edges[-1])]
        edges = np.union1d(self.edges, inside)
        mine, theirs = (
            np.minimum(
                np.searchsorted(pieces.edges, edges[:-1], side="right") - 1, pieces.low.size - 1
            )
            for pieces in (self, around)
        )
        low = np.maximum(self.low[mine], around.low[theirs])
        return Pieces(edges, low, np.minimum(self.high[mine], around.high[theirs]))


@dataclass(frozen=True, repr=False)
class Curve:
    """The error of cross-validation against C: what was measured, and what is proved.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        The values of C that were fitted, ascending.
    errors : ndarray of shape (n_Cs,)
        Their mean errors.
    edges : ndarray of shape (n_pieces + 1,)
        The values of C at which pieces begin and end, ascending.
    lower, upper : ndarray of shape (n_pieces,)
        For every C in the piece, the mean error of the exact optima is between these. Without a
        proof, there are no pieces.
    C : float
        The choice.
    """

    Cs: NDArray[np.float64]
    errors: NDArray[np.float64]
    edges: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    C: float

    def __repr__(self) -> str:
        proved = f", no C below {self.bound:.4g}" if self.lower.size else ""
        return f"<Curve of {self.Cs.size} values of C: the choice is {self.C:.4g}{proved}>"

    @property
    def bound(self) -> float:
        """No C in the range has a mean error below this; zero if nothing is proved."""
        return float(self.lower.min(initial=math.inf)) if self.lower.size else 0.0

    def plot(self, path: str | None = None) -> Any:
        """Plot the error against C, with all that is proved.

        Parameters
        ----------
        path : str, default=None
            File to save the plot to.

        Returns
        -------
        figure : matplotlib.figure.Figure
            The plot: the band of each C, the line that nothing is below, a dot for each value that
            was fitted, and a star for the choice.
        """
        return plot_curve(self, path)
