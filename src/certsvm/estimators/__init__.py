"""Classes in scikit-learn's form."""

from certsvm.estimators.linear_svc import LinearSVC

__all__ = ["LinearSVC"]
