"""How to train: ``Settings``."""

from certsvm.training.settings import Settings

__all__ = ["Settings"]
