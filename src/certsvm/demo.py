"""A demonstration: train, verify, and bound the accuracy of other solvers.

python -m certsvm.demo
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import svm
from sklearn.linear_model import SGDClassifier

from certsvm import LinearSVC, Problem, Rows, verify
from certsvm.certificates.certificate import percent
from certsvm.certificates.primal import primal_bound


def text_like(
    n_documents: int = 100_000, n_words: int = 50_000, length: int = 85, seed: int = 0
) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
    """Random documents with word frequencies as in a language, and noisy labels.

    Word ranks follow a power law. Features are tf-idf with logarithmic counts and unit rows. Labels
    are the signs of random linear scores; one in twenty is flipped.
    """
    rng = np.random.default_rng(seed)
    words = (n_words ** rng.random((n_documents, length)) - 1).astype(np.int32)
    starts = np.arange(n_documents + 1, dtype=np.int64) * length
    X = sp.csr_matrix((np.ones(words.size), words.ravel(), starts), shape=(n_documents, n_words))
    X.sum_duplicates()
    frequency = np.bincount(X.indices, minlength=n_words)
    X.data = (1 + np.log(X.data)) * np.log((1 + n_documents) / (1 + frequency[X.indices]))
    norms = np.sqrt(np.bincount(np.repeat(np.arange(n_documents), np.diff(X.indptr)), X.data**2))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    score = X @ rng.standard_normal(n_words)
    labels = np.where(score > np.median(score), 1, -1)
    labels[rng.random(n_documents) < 0.05] *= -1
    return X, labels


def main() -> None:
    """Run the demonstration."""
    X, y = text_like()
    print(f"{X.shape[0]} rows, {X.shape[1]} columns, {X.nnz} nonzeros; C = 1, no intercept")
    how: dict[str, Any] = {"fit_intercept": False, "random_state": 0}
    ours: Any = LinearSVC(tol=1e-7, n_jobs=-1, store_dual=True, verbose=1, **how)
    ours.fit(X, y)
    report = verify(ours, X, y)
    print(f"Verified without compiled code:\n  {report}\n  certificate {report.verdict}\n")
    print("The same problem with scikit-learn's default tolerances, measured against these bounds:")
    problem, how = Problem(Rows(X), y), how | {"loss": "hinge"}
    for other in (svm.LinearSVC(**how), SGDClassifier(alpha=1 / X.shape[0], **how)):
        with warnings.catch_warnings(action="ignore"):
            other.fit(X, y)
        objective = primal_bound(problem, np.ascontiguousarray(other.coef_[0])).value
        most = percent(objective / ours.certificate_.dual - 1)
        print(f"  {type(other).__name__}: objective {objective:.6g}, within {most} of the optimum")


if __name__ == "__main__":
    main()
