"""
A certificate closing in
========================

Training has two halves. One makes the objective J(w) smaller. The other makes a lower bound L
larger, which no weight vector whatever can get below. The optimum lies between them, and training
ends when they are so close that the answer is good enough. This is what a certificate is.

We watch both halves on text-like data: 20,000 rows of unit length, 20,000 columns, one label in
twenty flipped.
"""

# %%
# One solver
# ----------
#
# ``sgd-s`` is stochastic gradient descent in complete passes, after Panagiotakopoulos and Tsampouka
# (2013). ``history_`` has a record of each pass. J is an extra pass over the data, so it is
# computed only when it may matter, and is missing (NaN) elsewhere; what counts is the best so far.

import matplotlib.pyplot as plt

from certsvm import LinearSVC, demo

X, y = demo.text_like(n_documents=20_000, n_words=20_000, length=60)
clf = LinearSVC(C=1.0, tol=0.001, solver="sgd-s", fit_intercept=False, random_state=0).fit(X, y)
print(clf.certificate_)

history = clf.history_.to_frame()
history["best primal"] = history["primal"].cummin().ffill()
proved = history[history["relative_gap"] <= 0.01].iloc[0]

fig, ax = plt.subplots(figsize=(8.5, 4.6))
passes = history["passes"]
ax.fill_between(
    passes,
    history["dual"],
    history["best primal"],
    step="post",
    color="C0",
    alpha=0.15,
    linewidth=0,
)
ax.step(passes, history["best primal"], where="post", color="C3", label="J(w), the best so far")
ax.step(passes, history["dual"], where="post", color="C0", label="L, nothing is below")
ax.text(1.08, 9_800, "the optimum\nis in here", color="0.25")
ax.annotate(
    f"1 % proved\nafter {proved['passes']:.0f} passes",
    xy=(proved["passes"], proved["best primal"]),
    xytext=(proved["passes"], 11_500),
    arrowprops={"arrowstyle": "->", "color": "0.4"},
    horizontalalignment="center",
    color="0.25",
)
ax.set(xscale="log", ylim=(7_000, 14_000), xlabel="passes over the data", ylabel="objective")
ax.set_title("The objective comes down, the bound comes up")
ax.legend(loc="upper right")
plt.show()

# %%
# Several solvers
# ---------------
#
# Every solver closes in on the same optimum. ``compare`` runs them on one problem, in one loop,
# with one clock. Dual coordinate descent (``dcd``) keeps a number per row and needs few passes; SGD
# keeps none and needs many; cutting planes (``ocas``) lie between. The picture shows the distance
# of either bound from the optimum, as a share of it.

from certsvm import compare

names = ["sgd-s", "dcd", "ocas"]
comparison = compare(X, y, solvers=names, C=1.0, tol=0.001)
print(comparison)

optimum = (comparison.primal + comparison.dual) / 2
fig, axes = plt.subplots(1, 3, figsize=(10, 3.8), sharey=True)
for ax, (name, run) in zip(axes, comparison.histories.items(), strict=True):
    frame = run.to_frame()
    above = (frame["primal"].cummin().ffill() / optimum - 1) * 100
    below = (frame["dual"] / optimum - 1) * 100
    ax.fill_between(frame["passes"], below, above, step="post", color="C0", alpha=0.15, linewidth=0)
    ax.step(frame["passes"], above, where="post", color="C3")
    ax.step(frame["passes"], below, where="post", color="C0")
    ax.axhline(0, color="0.4", linewidth=0.6)
    ax.set(xscale="log", ylim=(-25, 25), xlabel="passes", title=f"{name}, {len(frame)} passes")
axes[0].set_ylabel("per cent from the optimum")
plt.show()

# %%
# The red lines are what an ordinary solver knows about itself. How far they are from zero only the
# blue ones can tell.
