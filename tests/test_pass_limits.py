"""Limits of passes."""

import threading

import pytest

from certsvm.resources import PassCutError, pass_limits, require_time


def test_limits_hold_inside_and_not_afterwards() -> None:
    stop = threading.Event()
    with pass_limits(60.0, stop):
        require_time()
        stop.set()
        with pytest.raises(PassCutError):
            require_time()
    require_time()
