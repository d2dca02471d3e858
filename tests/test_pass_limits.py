"""Limits of passes."""

import sys
import threading
from typing import Any

import pytest

from certsvm.pass_limits import PassCutError, pass_limits, require_time


def test_limits_hold_inside_and_not_afterwards() -> None:
    stop = threading.Event()
    with pass_limits(60.0, stop):
        require_time()
        stop.set()
        with pytest.raises(PassCutError):
            require_time()
    require_time()


def test_an_interrupt_at_any_line_before_a_pass_leaves_no_limits_behind() -> None:
    before, outcomes = sys.gettrace(), list[str]()
    while outcomes[-1:] != ["done"]:
        lines = iter(range(1000))

        def interrupt(
            frame: Any, event: str, _: Any, lines: Any = lines, last: int = len(outcomes)
        ) -> Any:
            if frame.f_code is not pass_limits.__wrapped__.__code__:  # type: ignore[attr-defined]
                return None
            if event == "line" and next(lines) == last:
                raise KeyboardInterrupt
            return interrupt

        def begin_pass(trace: Any = interrupt) -> None:
            sys.settrace(trace)
            try:
                with pass_limits(0.0):
                    sys.settrace(before)
            finally:
                sys.settrace(before)

        try:
            begin_pass()
            outcomes.append("done")
        except KeyboardInterrupt:
            outcomes.append("interrupted")
        require_time()
    assert len(outcomes) > 3
