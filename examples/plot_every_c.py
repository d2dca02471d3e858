"""
Every C at once
===============

A grid of values of C leaves gaps between them. ``fit_path`` with a range leaves none: it proves
that every C in the range, fitted or not, has a model whose objective is within ``tol`` of the
optimum at that C. It takes a handful of fits, since a model and its dual point also prove something
about their neighbours.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from certsvm import LinearSVC, fit_path

X, y = load_breast_cancer(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)

path = fit_path(LinearSVC(random_state=0), X, y, C_range=(1e-4, 1e2), tol=0.05)
print(path)

# %%
# What is proved between the fits
# -------------------------------
#
# Six decades of C, to five per cent. Each dot is a fit. The curve is the proved gap of the
# interpolated model between them, known without looking at the data again; it nowhere exceeds what
# was asked for.

Cs = np.geomspace(*path.C_range, 600)
gaps = np.array([path.certificate(C).proved_gap for C in Cs])
fitted = [(C, path.certificate(C).proved_gap) for C in path.Cs]

fig, ax = plt.subplots()
ax.fill_between(Cs, 0, gaps * 100, color="C0", alpha=0.15, linewidth=0)
ax.plot(Cs, gaps * 100, color="C0", label="proved, for every C")
ax.plot(*np.transpose(fitted) * [[1], [100]], "o", color="C3", label=f"{len(path)} fits")
ax.axhline(path.tol * 100, color="0.4", linestyle="--", linewidth=0.8, label="asked for")
ax.set(xscale="log", xlabel="C", ylabel="per cent above the optimum, at most", ylim=(0, 7))
ax.set_title(f"A certified model for every C from {path.C_range[0]:g} to {path.C_range[1]:g}")
ax.legend(loc="upper center", ncols=3)
plt.show()

# %%
# The whole path of weights
# -------------------------
#
# ``path.model(C)`` is a fitted ``LinearSVC`` with its certificate, at any C. So the weights, the
# number of errors, or anything else can be drawn as a function of C without another fit.

models = [path.model(C) for C in Cs[::6]]
weights = np.array([model.coef_[0] for model in models])
errors = [1 - model.score(X_test, y_test) for model in models]

fig, (top, bottom) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, height_ratios=(2, 1))
top.plot(Cs[::6], weights, linewidth=0.9)
top.set(ylabel="weights", yscale="symlog", title="30 weights, and the error on rows held out")
bottom.plot(Cs[::6], np.array(errors) * 100, color="C3")
bottom.set(xscale="log", xlabel="C", ylabel="error, per cent", ylim=(0, None))
plt.show()
