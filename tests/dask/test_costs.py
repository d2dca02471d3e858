"""The cost model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certsvm.dask.costs import Network, Shape, cocoa_round, newton_is_cheaper, newton_round

SHAPES = st.builds(
    Shape,
    rows=st.floats(1e3, 1e9),
    stored=st.floats(1e4, 1e12),
    columns=st.floats(1, 1e6),
    groups=st.integers(1, 1000),
)


@pytest.mark.parametrize(
    ("groups", "levels"), [(1, 0), (2, 1), (8, 1), (9, 2), (64, 2), (65, 3), (512, 3)]
)
def test_levels_of_adding(groups: int, levels: int) -> None:
    assert Shape(1.0, 1.0, 1.0, groups).levels == levels


@given(SHAPES, st.sampled_from([newton_round, cocoa_round]))
def test_more_columns_or_a_slower_network_cost_more(shape: Shape, cost: Any) -> None:
    network = Network()
    usual = cost(shape, network)
    assert 0.0 < usual <= cost(replace(shape, columns=2.0 * shape.columns), network)
    assert usual <= cost(shape, replace(network, bandwidth=0.5 * network.bandwidth))
    assert usual <= cost(shape, replace(network, latency=2.0 * network.latency))


@given(SHAPES)
def test_newton_is_for_few_columns(shape: Shape) -> None:
    """If it is cheaper at all, then also with fewer columns."""
    if newton_is_cheaper(shape):
        assert newton_is_cheaper(replace(shape, columns=0.5 * shape.columns))
