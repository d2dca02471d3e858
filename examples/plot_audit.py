"""
What a tolerance of scikit-learn means
======================================

scikit-learn's ``LinearSVC`` has a parameter ``tol``, 1e-4 by default. It is a threshold for the
gradient or for the violation of optimality conditions, inside liblinear. How far from the optimum
the result is depends on the data, and nobody is told.

``bound`` tells. It takes any fitted linear classifier, recognises what it minimised, and returns a
certificate for it.
"""

# %%
# An audit
# --------
#
# Three sets of data, six tolerances, both algorithms of liblinear. The models are scikit-learn's,
# with its default loss, the squared hinge. Only the proof is ours.

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from certsvm import bound, demo

cancer, malignant = load_breast_cancer(return_X_y=True)
digits, digit = load_digits(return_X_y=True)
problems = {
    "breast cancer, scaled": (StandardScaler().fit_transform(cancer), malignant),
    "digits, 8 or not, unscaled": (digits, digit == 8),
    "like text": demo.text_like(n_documents=4_000, n_words=4_000, length=40),
}
# Where we no longer look.
FINEST = 1e-7
tols = [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5]


def audit(X, y, tol, dual):
    """A certificate of scikit-learn's answer, and whether it warned that it had not converged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        clf = LinearSVC(C=1.0, tol=tol, dual=dual, random_state=0).fit(X, y)
    return bound(clf, X, y, tol=FINEST, max_iter=1000), bool(caught)


gaps, warned = {}, {}
for name, (X, y) in problems.items():
    audits = {(tol, dual): audit(X, y, tol, dual) for dual in (True, False) for tol in tols}
    # A lower bound belongs to the problem and not to a model, so the best one is good for all.
    L = max(certificate.dual for certificate, _ in audits.values())
    for key, (certificate, warning) in audits.items():
        gaps[name, *key] = max(certificate.primal / L - 1, FINEST)
        warned[name, *key] = warning
    print(f"{name}: tol=1e-4 is {gaps[name, 1e-4, True]:.0e}, or with dual=False "
          f"{gaps[name, 1e-4, False]:.0e}")  # fmt: skip

# %%
# One number, many meanings
# -------------------------
#
# If the tolerance were a relative accuracy, all lines would be on the dotted one. They are orders
# of magnitude above it, or below. A cross is where scikit-learn warns that 1000 passes were not
# enough: on unscaled digits the warning is to be taken seriously, on scaled data it is a false
# alarm. Without a bound there is no telling one from the other.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True)
for ax, dual in zip(axes, (True, False), strict=True):
    for name, marker in zip(problems, "os^", strict=True):
        ax.plot(tols, [100 * gaps[name, tol, dual] for tol in tols], marker=marker, label=name)
        for tol in tols:
            if warned[name, tol, dual]:
                ax.plot(tol, 100 * gaps[name, tol, dual], "x", color="black", markersize=12)
    ax.plot(tols, [100 * tol for tol in tols], color="0.5", linestyle=":")
    ax.axvline(1e-4, color="0.4", linestyle="--", linewidth=0.8)
    ax.text(9e-5, 900, "default", color="0.3", verticalalignment="top")
    ax.set(xscale="log", yscale="log", ylim=(5e-6, 1000), xlabel="tol of scikit-learn")
    ax.set_title(f"liblinear with dual={dual}")
    ax.invert_xaxis()
axes[0].set_ylabel("distance from the optimum, per cent")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
