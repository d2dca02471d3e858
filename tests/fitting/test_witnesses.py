"""Witnesses: coarse dual points that prove what the certificates say."""

import itertools
import sys
from typing import Any

import numpy as np
import pytest

from certsvm import verify_model
from certsvm.fitting.fit_classes import fit_classes
from certsvm.fitting.fit_model import fit_model, witnessed
from certsvm.fitting.sources import MemorySource
from certsvm.training.settings import NOT_KEPT, TARGET_MET
from tests.settings import settings_of


def test_a_witness_too_coarse_for_the_target_does_not_meet_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 32 bits, that takes a target near the limit of double precision."""
    monkeypatch.setattr("certsvm.fitting.fit_model._BITS", (8,))
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    y = X[:, 0] + rng.standard_normal(200) > 0.0
    source = MemorySource(X, y, intercept_scaling=1.0)
    settings = settings_of(
        solver="newton", tol=1e-8, penalize_intercept=False, keep_alpha=True, keep_vector=True
    )
    (fine,) = fit_classes(source, settings)
    (coarse,) = fit_classes(source, settings, finish=witnessed)
    assert fine.certificate.met
    assert fine.reason == TARGET_MET
    assert not coarse.certificate.met
    assert coarse.reason == NOT_KEPT
    assert coarse.vector is None


def test_an_interrupt_never_parts_a_witness_from_its_certificate() -> None:
    """Ctrl-C at every line that runs while the witness is made."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + rng.standard_normal(60) > 0.0
    source, settings = MemorySource(X, y), settings_of(C=0.1, solver="dcd", seed=0)
    before, verdicts = sys.gettrace(), list[str]()
    while "confirmed" not in verdicts[-1:]:
        lines = itertools.count()

        def interrupt(
            frame: Any, event: str, _: Any, lines: Any = lines, last: int = len(verdicts)
        ) -> Any:
            making = frame.f_code.co_name in ("needs_alpha", "witnessed", "proof", "joined")
            if not (making or frame.f_code.co_name == "fit_class"):
                return None
            if event != "call" and making and next(lines) == last:
                raise KeyboardInterrupt
            return interrupt

        sys.settrace(interrupt)
        try:
            fit = fit_model(source, settings, witness=True)
        except KeyboardInterrupt:
            # Outside of the training, nothing is returned.
            verdicts.append("none")
            continue
        finally:
            sys.settrace(before)
        verdicts.append(verify_model(fit.model, [(X, y)]).verdict)
    assert set(verdicts) == {"none", "half confirmed", "confirmed"}
