"""
The squared hinge, and a free intercept
=======================================

"Linear SVM" is four problems. The loss of a row is the hinge or its square, and the intercept is
part of the penalty or not. liblinear and scikit-learn's ``LinearSVC`` penalise it, and
``SGDClassifier`` and ``SVC`` do not. certsvm solves all four, with the same certificate:
``loss="squared_hinge"`` and ``penalize_intercept=False``.

It hardly matters if the data are centred and the classes of one size. We look at data for which it
does.
"""

# %%
# A few positives, far from the origin
# ------------------------------------
#
# One row in ten is positive, and the rows lie around a point at a distance of 2.5 from the origin.
# The line between the classes needs an intercept, and a penalty pulls it towards zero. Where rows
# are few, giving them up is cheaper: the line moves into the smaller class.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import balanced_accuracy_score

from certsvm import LinearSVC

rng = np.random.default_rng(0)
y = np.repeat([1, -1], [60, 540])
clouds = rng.standard_normal((600, 2)) * [0.8, 1.0]
clouds[:, 0] += 1.25 * y


def at(distance):
    return clouds + np.array([distance, 0])


def fit(X, loss, free, C=0.05):
    return LinearSVC(
        C=C, loss=loss, penalize_intercept=not free, tol=1e-6, random_state=0
    ).fit(X, y)  # fmt: skip


kinds = {
    "hinge, penalised": ("hinge", False, "C0", "-"),
    "hinge, free": ("hinge", True, "C0", "--"),
    "squared hinge, penalised": ("squared_hinge", False, "C3", "-"),
    "squared hinge, free": ("squared_hinge", True, "C3", "--"),
}
X = at(2.5)
for name, (loss, free, _, _) in kinds.items():
    clf = fit(X, loss, free)
    print(f"{name:25} intercept {clf.intercept_[0]:6.2f}, {clf.certificate_.proved_gap:.0e} proved")

# %%
# Moving the data
# ---------------
#
# Where the origin is should not matter for a sensible classifier. With a free intercept it does
# not: moving all rows moves the line with them, and the dashed lines on the right are flat. With a
# penalty, data at a distance of 8 are all called negative. The squared hinge gives up later than
# the hinge, since a large error costs it more.

distances = np.linspace(0, 12, 13)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.4))
left.scatter(*X.T, c=np.where(y > 0, "0.2", "0.75"), s=8)
ends = np.array([-4.0, 4.0])
for name, (loss, free, colour, style) in kinds.items():
    clf = fit(X, loss, free)
    (a, b), c = clf.coef_[0], clf.intercept_[0]
    left.plot(-(c + b * ends) / a, ends, style, color=colour, linewidth=2, label=name)
    models = [fit(at(d), loss, free) for d in distances]
    accuracy = [
        balanced_accuracy_score(y, model.predict(at(d)))
        for model, d in zip(models, distances, strict=True)
    ]
    right.plot(distances, np.array(accuracy) * 100, style, color=colour, linewidth=2)
left.set(xlim=(-1, 7), ylim=(-4, 4), xlabel="first column", ylabel="second column")
left.set_title("Four lines between two classes")
right.set(xlabel="distance of the data from the origin", ylabel="balanced accuracy, per cent")
right.set_title("Only a free intercept moves with the data")
fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()
