import io

import numpy as np

from certsvm.training.history import Record
from certsvm.training.progress import PrintProgress
from certsvm.training.result import Progress


def test_lines_come_at_intervals() -> None:
    out = io.StringIO()
    printer = PrintProgress(interval=3600, label="class a: ", stream=out)
    for passes in (1, 2, 3):
        printer(Progress(Record(0.1, passes, passes, 5), w=lambda: np.zeros(1)))
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().startswith("class a: pass     1")
    assert "gap none yet" in out.getvalue()
    assert "primal none yet" in out.getvalue()


def test_interval_zero_prints_every_pass() -> None:
    out = io.StringIO()
    printer = PrintProgress(interval=0, stream=out)
    for passes in (1, 2, 3):
        printer(
            Progress(
                Record(0.1, passes, passes, 5, dual=9.0, gap=1.0, relative_gap=1 / 9),
                w=lambda: np.zeros(1),
            )
        )
    assert out.getvalue().count("gap 11.2 %") == 3
