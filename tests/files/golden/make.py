"""Makes the golden files: ``python -m tests.files.golden.make FOLDER``.

They are never made anew for a format that has been released: a version that cannot read them, or
that writes other bytes for the same content, has changed the format and needs a new number.

Those of format 1 were made when there were no other losses than the hinge and no free intercepts.
They contain the same, but for these and for scales beyond 1.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from certsvm.certificates.certificate import Certificate
from certsvm.files import Model, WeightsWitness, Witness, save_witness
from certsvm.verification.fingerprint import Fingerprint

FINGERPRINT = Fingerprint(4, 3, 5, "0123456789abcdef0123456789abcdef")
QUANTISED = Witness(
    np.array([[0, 1, 65535, 2], [65535, 0, 0, 7], [9, 8, 7, 6]], dtype=np.uint16),
    np.array([1.0, 0.5, 3.0]),
)
WEIGHTS = WeightsWitness(
    np.array([[0.1, -0.2, 0.3, 0.4], [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 5e-324]]),
    np.array([0.5, 0.0, 1e10]),
)


def certificate(primal: float, dual: float) -> Certificate:
    return Certificate(
        primal=primal, dual=dual, target=0.01, bound="an example", scale=1.5,
        primal_rounding=1e-13, dual_rounding=2e-13, C=0.1, intercept_scaling=1.0,
        loss="squared_hinge", penalize_intercept=False,
    )  # fmt: skip


MODEL = Model(
    coef=np.array([[0.1, -0.2, 0.3], [1.0 / 3.0, 2.0, -0.0], [1e-300, 5e-324, -1e300]]),
    intercept=np.array([0.25, -1.0, 0.1 + 0.2]),
    classes=np.array(["blue", "green", "röd"]),
    class_weight=np.array([1.0, 2.0, 0.5]),
    certificates=(certificate(1.005, 1.0), certificate(2.5, 2.25), certificate(0.3, 0.0)),
    parameters={
        "C": 0.1,
        "loss": "squared_hinge",
        "intercept_scaling": 1.0,
        "penalize_intercept": False,
        "solver": "dcd",
        "seed": None,
        "limits": [math.inf, 7],
    },
    feature_names=("height", "width", "Größe"),
    fingerprint=FINGERPRINT,
    certsvm_version="0.1.0",
)
NUMBERED = Model(
    coef=np.array([[0.5, -0.25]]),
    intercept=np.array([0.0]),
    classes=np.array([-1, 1]),
    class_weight=np.ones(2),
    certsvm_version="0.1.0",
)


def make(folder: Path) -> None:
    MODEL.save(folder / "model-2.safetensors")
    NUMBERED.save(folder / "numbered-2.safetensors")
    save_witness(folder / "quantised-2.witness", QUANTISED, FINGERPRINT)
    save_witness(folder / "weights-2.witness", WEIGHTS, FINGERPRINT)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
