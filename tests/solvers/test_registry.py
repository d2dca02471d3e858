"""The registry of solvers."""

import pickle

import pytest

from certsvm.solvers import SOLVERS, Auto, SGDm, SGDs, make_solver


@pytest.mark.parametrize("name", SOLVERS)
def test_by_name(name: str) -> None:
    solver = make_solver(name)
    assert solver.name == name
    assert pickle.loads(pickle.dumps(solver)) == solver


def test_auto() -> None:
    assert make_solver("auto") == Auto()


def test_a_configured_object_is_itself() -> None:
    solver = SGDs(f=3.0)
    assert make_solver(solver) is solver


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown solver 'sgd': use 'auto', 'sgd-r', 'sgd-s'"):
        make_solver("sgd")


def test_solvers_are_immutable() -> None:
    with pytest.raises(AttributeError):
        SGDm().f = 2.0  # type: ignore[misc]
