"""Classes in scikit-learn's form."""

from certsvm.estimators.linear_svc import LinearSVC
from certsvm.estimators.path import fit_path

__all__ = ["LinearSVC", "fit_path"]
