"""
C chosen with proof
===================

Cross-validation over a grid finds the best C *of the grid*. With ``certify=0.005``,
``LinearSVCCV`` proves that the error of its choice is at most half a percentage point above that of
*any* C in a range, fitted or not. What makes it possible is the certificate: a model and its gap
bound the scores of the exact optimum at every C nearby, hence the number of rows held out that it
gets wrong.
"""

# %%
# A coarse search and a fine one
# ------------------------------
#
# The search begins with a fit for each decade and adds fits where the best might still hide. The
# less is asked of it, the sooner it ends.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from certsvm import LinearSVCCV

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
searches = {}
for certify in (0.015, 0.005):
    search = LinearSVCCV(C_range=(1e-3, 1.0), cv=5, certify=certify, random_state=0).fit(X, y)
    searches[certify] = search
    error, least = 1 - search.best_score_, search.error_bound_
    print(f"certify={certify}: C = {search.C_:.3g}, error {error:.2%}; no C is below {least:.2%}")

# %%
# The band
# --------
#
# ``curve_`` has what is proved. For every C, the error of the exact optima lies in the band. Where
# the band is entirely above the choice, there is nothing to be found, and the search wastes no fit
# on narrowing it. The dashed line is the least error that any C can have; the star is within
# ``certify`` of it.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True)
for ax, (certify, search) in zip(axes, searches.items(), strict=True):
    curve = search.curve_
    band = {"fill": True, "color": "C0", "alpha": 0.25, "linewidth": 0}
    ax.stairs(
        curve.upper * 100,
        curve.edges,
        baseline=curve.lower * 100,
        label="proved, for every C",
        **band,
    )
    ax.plot(curve.Cs, curve.errors * 100, ".", color="C0", label="fits")
    error = (1 - search.best_score_) * 100
    ax.plot(search.C_, error, "*", color="C3", markersize=15, label="the choice")
    ax.axhline(curve.bound * 100, color="0.3", linestyle="--", label="nothing is below")
    ax.set(xscale="log", xlabel="C", ylim=(0, 8))
    ax.set_title(f"certify={certify}: {curve.Cs.size} fits, C = {search.C_:.2g}")
axes[0].set_ylabel("error of cross-validation, per cent")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
plt.show()
