"""Makes the golden files: ``python -m tests.files.golden.make FOLDER``.

They are never made anew for a format that has been released: a version that cannot read them, or
that writes other bytes for the same content, has changed the format and needs a new number.
"""

import math
import sys
from pathlib import Path

import numpy as np

from certsvm.certificates.certificate import Certificate
from certsvm.files import Model, Witness
from certsvm.verification.evidence import Fingerprint


def certificate(primal: float, dual: float, target: float = 0.01) -> Certificate:
    return Certificate(
        primal=primal, dual=dual, target=target, bound="an example", scale=1.5,
        primal_rounding=1e-13, dual_rounding=2e-13, C=0.1, intercept_scaling=1.0,
        loss="squared_hinge", penalize_intercept=False,
    )  # fmt: skip


MODEL = Model(
    coef=np.array([[0.1, -0.2, 0.3], [1.0 / 3.0, 2.0, -0.0], [1e-300, 5e-324, -1e300]]),
    intercept=np.array([0.25, -1.0, 0.1 + 0.2]),
    classes=np.array(["blue", "green", "röd"]),
    class_weight=np.array([1.0, 2.0, 0.5]),
    certificates=(certificate(1.005, 1.0), certificate(2.5, 2.25), certificate(0.3, 0.0, math.inf)),
    parameters={"C": 0.1, "solver": "dcd", "seed": None},
    feature_names=("height", "width", "Größe"),
    fingerprint=Fingerprint(4, 3, 5, "0123456789abcdef" * 4),
    witness=Witness(
        np.array([[0, 1, 65535, 2], [65535, 0, 0, 7], [9, 8, 7, 6]], dtype=np.uint16),
        np.array([1.0, 0.5, 3.0]),
    ),
    history=np.array([[0.0, 1.0, math.inf, 0.5], [0.0, 2.0, 1.005, 1.0]]),
    certsvm_version="0.1.0",
)


if __name__ == "__main__":
    MODEL.save(Path(sys.argv[1]) / "example.model")
