"""Witnesses: compact dual points, from which dual bounds are recomputed.

Any alpha in the box 0 <= alpha_k <= C s_k proves the bound L(alpha) <= J_opt, whatever its origin.
So alpha need not be stored exactly: a rounded alpha in the box proves almost the same bound. The
box of the squared hinge has no upper end. If the intercept is free, verification balances alpha.

A witness stores each alpha_k as a multiple of C s_k, in 8, 16 or 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsvm.matrices import read_only
from certsvm.verification.interval_arithmetic import Vector

_CODES = {8: np.uint8, 16: np.uint16, 32: np.uint32}


@dataclass(frozen=True, eq=False)
class Witness:
    """alpha, quantised: alpha_k = scale * C s_k * code_k / (2**bits - 1).

    With a scale of at most 1, alpha never leaves the box of the hinge: code / (2**bits - 1) and its
    product with the scale are at most 1, exactly, since rounding keeps order and 1 is a float64.
    The same holds for the product of that with C s_k.

    Attributes
    ----------
    codes : ndarray of shape (n_problems, n_rows)
        Of type uint8, uint16 or uint32.
    scale : ndarray of shape (n_problems,)
        Finite and > 0; for the hinge, at most 1. A multiple s alpha is feasible too, and may prove
        more.

    Examples
    --------
    >>> box = np.array([0.5, 0.5, 2.0])
    >>> witness = Witness.quantise(np.array([0.0, 0.5, 0.7]), box, bits=8)
    >>> witness.codes.tolist(), witness.alpha(0, box).round(3).tolist()
    ([[0, 255, 89]], [0.0, 0.5, 0.698])
    """

    codes: NDArray[np.unsignedinteger[Any]]
    scale: Vector

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        scale = np.asarray(self.scale, dtype=np.float64)
        if codes.ndim != 2 or codes.dtype not in (np.uint8, np.uint16, np.uint32):
            raise ValueError(
                "codes must be a matrix of uint8, uint16 or uint32, one row per problem; got "
                f"{codes.dtype} of shape {codes.shape}"
            )
        if scale.shape != (codes.shape[0],):
            raise ValueError(f"{codes.shape[0]} problems need as many scales, not {scale.shape}")
        # NaN must fail, so the comparisons are not negated.
        if not ((scale > 0) & (scale < np.inf)).all():
            raise ValueError(f"scales must be finite and > 0, got {scale}")
        object.__setattr__(self, "codes", read_only(codes))
        object.__setattr__(self, "scale", read_only(scale))

    def __repr__(self) -> str:
        sizes = f"{self.n_rows} rows and {self.n_problems} problems, {self.bits} bits each"
        return f"<Witness of {sizes}>"

    @classmethod
    def quantise(cls, alpha: Vector, box: Vector, bits: int = 8, *, scale: float = 1.0) -> Witness:
        """Round each alpha_k of one problem to the nearest of 2**bits levels.

        Zero stays zero, exactly, and so does C s_k with a scale of 1.

        Parameters
        ----------
        alpha : ndarray of shape (n_rows,)
            In the box; zero where C s_k is.
        box : ndarray of shape (n_rows,)
            C s_k.
        bits : {8, 16, 32}, default=8
            Bits for each alpha_k.
        scale : float, default=1.0
            The highest level, as a multiple of C s_k. With the squared hinge, alpha may exceed
            C s_k.

        Returns
        -------
        witness : Witness
            With this scale.
        """
        if bits not in _CODES:
            raise ValueError(f"bits must be 8, 16 or 32, got {bits!r}")
        multiple = np.divide(alpha, box, out=np.zeros(alpha.size), where=box > 0.0)
        inside = (multiple >= 0.0) & (multiple <= scale) & ((alpha == 0.0) | (box > 0.0))
        if not (inside.all() and np.isfinite(box).all()):
            raise ValueError("alpha leaves its box, or C s_k is infinite")
        codes = np.rint(multiple / scale * (2**bits - 1)).astype(_CODES[bits])
        return cls(codes[np.newaxis], np.array([scale]))

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return int(self.codes.shape[0])

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])

    @property
    def bits(self) -> int:
        """Bits for each alpha_k."""
        return 8 * self.codes.dtype.itemsize

    def alpha(self, i: int, box: Vector, first: int = 0) -> Vector:
        """The i-th problem's alpha of some rows.

        Parameters
        ----------
        i : int
            Index of the problem.
        box : ndarray of shape (n_block,)
            C s_k of the rows.
        first : int, default=0
            Number of rows before them.

        Returns
        -------
        alpha : ndarray of shape (n_block,)
            In the box of the hinge if the scale is at most 1.
        """
        codes = self.codes[i, first : first + box.size]
        if codes.size != box.size:
            raise ValueError(f"the witness is about {self.n_rows} rows, the data has more")
        with np.errstate(over="ignore", invalid="ignore"):
            alpha: Vector = box * (self.scale[i] * (codes / float(2**self.bits - 1)))
        return alpha
