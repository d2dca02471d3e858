"""
The paper's solvers, side by side
=================================

Panagiotakopoulos and Tsampouka (2013) compare their SGD with the solvers of the time. certsvm has
them all, rebuilt from their publications, in one loop with one clock: their differences are those
of the algorithms, and not of the programs.
"""

# %%
# A comparison
# ------------
#
# ``compare`` runs each solver until it has proved 0.1 %. Four of them have no lower bound and
# cannot know when they are done, so they run until a limit. ``accuracy`` in the table measures all
# of them against the best bound that any solver found.

import matplotlib.pyplot as plt

from certsvm import compare, demo

X, y = demo.text_like(n_documents=10_000, n_words=10_000, length=40)
names = ["sgd-s", "sgd-m", "dcd", "mpu", "ocas", "svmperf", "sgd-r", "pegasos", "svmsgd", "sgd-qn"]
comparison = compare(X, y, solvers=names, C=1.0, tol=0.001, max_iter=200)
print(comparison)

# %%
# J and L of each
# ---------------
#
# Red is J, blue is L, both as distances from the optimum. Dual coordinate descent (``dcd``) and the
# perceptron with unlearning (``mpu``) keep a number for each row and close the gap in few passes.
# Cutting planes (``ocas``, ``svmperf``) begin far below. SGD with certificates (``sgd-s``,
# ``sgd-m``) stores nothing for a row. The last four have a red line only: it may be good, and
# nothing says so.

optimum = (comparison.primal + comparison.dual) / 2
fig, axes = plt.subplots(2, 5, figsize=(10, 5), sharex=True, sharey=True)
for ax, (name, result) in zip(axes.flat, comparison.results.items(), strict=True):
    history = result.history.to_frame()
    passes = history["passes"]
    above = (history["primal"].cummin().ffill() / optimum - 1) * 100
    ax.plot(passes, above, color="C3", linewidth=2)
    if (history["dual"] > 0).any():
        below = (history["dual"] / optimum - 1) * 100
        ax.plot(passes, below, color="C0", linewidth=2)
        ax.fill_between(passes, below, above, color="C0", alpha=0.15, linewidth=0)
        ax.set_title(f"{name}, {len(history)} passes", fontsize=11)
    else:
        ax.set_title(f"{name}, no bound", fontsize=11, color="0.4")
    ax.axhline(0, color="0.4", linewidth=0.6)
    ax.set(xscale="log", ylim=(-30, 30))
fig.supxlabel("passes over the data")
fig.supylabel("per cent from the optimum")
plt.show()
