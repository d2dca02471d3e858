"""
Windows against the published certificate
=========================================

Panagiotakopoulos and Tsampouka (2013) noticed that SGD proves something as it goes: the margin
errors of all passes, counted, are a point of the dual problem. Its objective is a lower bound L on
the optimum, and costs nothing. The first passes, when w was still far off, are in that count for
ever, and L comes up slowly.

certsvm keeps a few snapshots, so that it can count the errors of a *window* of late passes only.
"""

# %%
# The same weights, another proof
# -------------------------------
#
# ``SGDs(windows=0)`` has the dual points of the paper, ``SGDs()`` is the default. Both present the
# rows in the same order and pass through the same weights: windows change the proof and nothing
# else.

import matplotlib.pyplot as plt

from certsvm import LinearSVC, compare, demo
from certsvm.solvers import SGDs

X, y = demo.text_like(n_documents=8_000, n_words=10_000, length=50)
published, windows = SGDs(windows=0), SGDs()
both = [published, windows]
comparison = compare(X, y, solvers=both, C=0.5, tol=1e-4, max_iter=250, fit_intercept=False)
print(comparison)

# %%
# How far L is from the optimum
# -----------------------------
#
# To know the optimum itself, we let another solver close the gap to a ten-millionth. The published
# bound falls short of it by about 1 / T after T passes. The windows leave the early passes behind,
# and their bound by about 1 / T².

exact = LinearSVC(C=0.5, tol=1e-7, fit_intercept=False, random_state=0).fit(X, y)
optimum = exact.certificate_.primal

fig, ax = plt.subplots()
for solver, name, colour in ((published, "published", "0.5"), (windows, "with windows", "C0")):
    history = comparison.histories[solver.label].to_frame()
    missing = (1 - history["dual"] / optimum) * 100
    ax.plot(history["passes"], missing, color=colour, linewidth=2.5, label=name)
    reached = history["passes"][missing <= 0.1].iloc[0]
    ax.plot(reached, 0.1, "o", color=colour, markersize=7)
    ax.annotate(f"{reached} passes", (reached, 0.1), xytext=(8, 6), textcoords="offset points")
ax.axhline(0.1, color="0.4", linestyle="--", linewidth=0.8)
ax.set(xscale="log", yscale="log", xlabel="passes over the data")
ax.set_ylabel("L is below the optimum by, per cent")
ax.set_title("The lower bound of SGD, from all passes and from windows of late ones")
ax.legend(loc="lower left")
plt.show()

# %%
# Six snapshots of the weights are all that the windows cost. The certificate is as true as the
# published one: whatever passes are counted, the count is a point of the dual problem.
