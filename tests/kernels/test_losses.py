"""What makes a loss one: the properties that solvers and certificates rely on."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm import Problem, Rows
from certsvm.kernels.losses import (
    HINGE,
    LOSSES,
    Loss,
    box_end,
    coordinate_step,
    dual_gradient,
    dual_penalty,
    loss_value,
    response,
    steepness,
)

margins = st.one_of(st.sampled_from([-1.0, 0.0, 1.0]), st.floats(-20, 20))
sizes = st.sampled_from([0.01, 0.5, 1.0, 3.0, 40.0])
shares = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
losses = st.sampled_from(list(LOSSES.values()))


def dual_value(loss: Loss, alpha: float, C: float, weight: float) -> float:
    """D(a)."""
    return alpha - dual_penalty(loss, alpha, C, weight)


def in_box(loss: Loss, share: float, C: float, weight: float) -> float:
    """A feasible alpha; where there is no end, one up to a multiple of C s."""
    return share * min(box_end(loss, C, weight), 10.0 * C * weight)


def clipped(loss: Loss, alpha: float, C: float, weight: float) -> float:
    return min(max(alpha, 0.0), box_end(loss, C, weight))


@given(losses, margins, margins, st.floats(0, 1))
def test_the_value_is_convex_and_falls_to_zero(loss: Loss, m: float, n: float, t: float) -> None:
    between = loss_value(loss, (1 - t) * m + t * n)
    assert between <= (1 - t) * loss_value(loss, m) + t * loss_value(loss, n) + 1e-12
    assert loss_value(loss, min(m, n)) >= loss_value(loss, max(m, n)) >= 0.0
    assert loss_value(loss, 1.0 + abs(m)) == 0.0
    assert loss_value(loss, 1.0 - abs(m)) >= 0.0


@given(losses, margins, margins)
def test_steepness_bounds_what_an_error_in_the_margin_does(loss: Loss, m: float, n: float) -> None:
    change = abs(loss_value(loss, m) - loss_value(loss, n))
    assert change <= steepness(loss, min(m, n)) * abs(m - n) + 1e-12


@given(losses, margins, shares, sizes, sizes)
def test_fenchel_and_young(loss: Loss, m: float, share: float, C: float, s: float) -> None:
    alpha = in_box(loss, share, C, s)
    terms = np.array([C * s * loss_value(loss, m), alpha * m, -dual_value(loss, alpha, C, s)])
    assert terms.sum() >= -1e-12 * np.abs(terms).sum()
    assert dual_value(loss, 0.0, C, s) == 0.0


@given(losses, margins, shares, shares, sizes, sizes)
def test_the_dual_gradient_is_one(
    loss: Loss, m: float, share: float, other: float, C: float, s: float
) -> None:
    """D lies below its tangents, and their slope is m - G."""
    a, b = in_box(loss, share, C, s), in_box(loss, other, C, s)
    slope = m - dual_gradient(loss, m, a, C, s)
    tangent = dual_value(loss, a, C, s) + slope * (b - a)
    assert dual_value(loss, b, C, s) <= tangent + 1e-12 * C * s * (1 + abs(m))


@given(losses, margins, shares, sizes, sizes, st.sampled_from([0.0, 1e-3, 1.0, 7.0]))
def test_a_step_goes_to_the_maximum_in_its_box(
    loss: Loss, m: float, share: float, C: float, s: float, squared_norm: float
) -> None:
    alpha = in_box(loss, share, C, s)
    if squared_norm == 0.0:
        # An empty row has the margin zero.
        m = 0.0
    G = dual_gradient(loss, m, alpha, C, s)
    new = coordinate_step(loss, alpha, G, squared_norm, C, s, 1.0)
    assert 0.0 <= new <= box_end(loss, C, s)

    def gain(b: float) -> float:
        step = b - alpha
        quadratic = step * m + 0.5 * squared_norm * step * step
        return dual_value(loss, b, C, s) - dual_value(loss, alpha, C, s) - quadratic

    scale = C * s * (1 + abs(m) + squared_norm * C * s)
    for b in np.linspace(0.0, in_box(loss, 1.0, C, s), 9):
        assert gain(float(b)) <= gain(new) + 1e-12 * scale
    # There the inequality of Fenchel and Young is an equality: the row's part of the gap is zero.
    then = m + squared_norm * (new - alpha)
    part = C * s * loss_value(loss, then) + new * then - dual_value(loss, new, C, s)
    assert part == pytest.approx(0.0, abs=1e-11 * scale)


@given(losses, margins, margins, shares, st.sampled_from([0.1, 1.0, 30.0]), sizes, sizes)
def test_the_response_is_the_gradient_of_the_smoothed_loss(
    loss: Loss, m: float, n: float, share: float, sigma: float, C: float, s: float
) -> None:
    alpha_hat = in_box(loss, share, C, s)

    def value(alpha: float, margin: float) -> float:
        distance = alpha - alpha_hat
        smoothing = 0.0 if loss.is_smooth else distance**2 / (2 * sigma * s)
        return dual_value(loss, alpha, C, s) - alpha * margin - smoothing

    def alpha_at(margin: float) -> float:
        return clipped(loss, response(loss, margin, alpha_hat, sigma, C, s), C, s)

    alpha = alpha_at(m)
    scale = C * s * (1 + abs(m) + abs(n) + C / sigma)
    for b in np.linspace(0.0, in_box(loss, 1.0, C, s), 9):
        assert value(float(b), m) <= value(alpha, m) + 1e-12 * scale
    # The smoothed loss lies above its tangent, whose slope is minus the response.
    smoothed_m, smoothed_n = value(alpha, m), value(alpha_at(n), n)
    assert smoothed_n >= smoothed_m - alpha * (n - m) - 1e-12 * scale


def test_a_problem_has_a_loss_and_takes_no_other() -> None:
    class Absolute(NamedTuple):
        """Not one of ours."""

    rows, labels = Rows(np.eye(4)), [1, -1, 1, -1]
    problem = Problem(rows, labels)
    assert problem.loss == HINGE
    assert problem.sample(np.array([0, 3])).loss is problem.loss
    for other in ("hinge", None, (), Absolute()):
        with pytest.raises(TypeError, match="loss must be one of certsvm"):
            Problem(rows, labels, loss=other)
