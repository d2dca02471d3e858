"""What counts as a tensor; answers to tensors are tested in tests/torch."""

from __future__ import annotations

import pytest

from certsvm.estimators.tensors import are_tensors


class OnADevice:
    """Something like an array of CuPy's."""

    def __init__(self, kind: int) -> None:
        self._kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._kind, 0


def test_what_is_on_a_device_can_be_made_one() -> None:
    pytest.importorskip("torch")
    assert are_tensors(OnADevice(2))
    assert not are_tensors(OnADevice(1))
