"""Settings by keywords, as users give them."""

from typing import Any

from certsvm.kernels.losses import loss_named
from certsvm.problem.base import Objective
from certsvm.training.settings import Settings


def settings_of(
    *, C: float = 1.0, loss: str = "hinge", penalize_intercept: bool = True, **others: Any
) -> Settings:
    return Settings(Objective(C, loss_named(loss), penalize_intercept), **others)
