"""``coef_`` as a sparse matrix."""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from certsvm.certificates.weights import dense


class SparseCoefMixin:
    """``sparsify`` and ``densify``, as scikit-learn's linear classifiers have them.

    scikit-learn's own class is private, and its objects cannot learn until they are made dense.
    """

    coef_: NDArray[np.float64] | sp.csr_matrix

    def sparsify(self) -> Self:
        """Make ``coef_`` a sparse matrix, which takes less memory where most weights are zero.

        The weight of a column is zero if no row has a value there, which is common with hashed
        features, or if no support vector has. Where more than two thirds of the weights are not
        zero, the sparse matrix takes more memory than the array.

        Certificates stay valid, and all methods work as before; ``fit`` and ``partial_fit`` make
        ``coef_`` dense again.

        Returns
        -------
        self : LinearSVC
            With ``coef_`` as a CSR matrix.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from certsvm import LinearSVC
        >>> X = sp.csr_matrix(([1.0, 1.0], ([0, 1], [3, 700])), shape=(2, 1000))
        >>> clf = LinearSVC(random_state=0).fit(X, [0, 1]).sparsify()
        >>> clf.coef_.nnz, clf.predict(X).tolist()
        (2, [0, 1])
        """
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self

    def densify(self) -> Self:
        """Make ``coef_`` an array again, after ``sparsify``.

        Returns
        -------
        self : LinearSVC
            With ``coef_`` as an array.
        """
        check_is_fitted(self)
        self.coef_ = dense(self.coef_)
        return self
