"""
A cluster that loses a worker
=============================

On a cluster, machines fail. ``certsvm.dask.LinearSVC`` keeps nothing on the workers that could not
be computed again, and each bound of a certificate is a sum over all rows in one round. So a worker
that dies costs time, and cannot make the certificate wrong.
"""

# %%
# A small cluster
# ---------------
#
# Three processes of this machine stand for three machines. The rows are made where they are used,
# in twelve blocks, and never come here.

import logging
import os

import dask
import matplotlib.pyplot as plt
import numpy as np
import psutil
from distributed import Client
from distributed.deploy.subprocess import SubprocessCluster

from certsvm.dask import LinearSVC

cluster = SubprocessCluster(
    n_workers=3,
    threads_per_worker=1,
    dashboard_address=None,
    worker_kwargs={"silence_logs": "ERROR"},
)
client = Client(cluster)


@dask.delayed(nout=2)
def block(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((10_000, 100))
    return X, np.where(X[:, 0] + X[:, 1] + rng.standard_normal(10_000) > 0, 1, -1)


def fit():
    rows, labels = zip(*map(block, range(12)), strict=True)
    return LinearSVC(C=1.0, tol=1e-5).fit(list(rows), list(labels))


fit()  # Let the workers compile their kernels.
calm = fit()

# %%
# An accident
# -----------
#
# The log has a line for each round. After six rounds of the same training, its handler ends the
# process of a worker, as an operating system does when memory is full. Dask notices, makes the lost
# blocks on the other workers, and the round goes on.

ROUNDS = 6


class Accident(logging.Handler):
    rounds, victim = 0, next(iter(client.run(os.getpid).values()))

    def emit(self, record):
        self.rounds += 1
        if self.rounds == ROUNDS:
            psutil.Process(self.victim).kill()


log, accident = logging.getLogger("certsvm"), Accident()
log.setLevel(logging.DEBUG)
log.addHandler(accident)
hit = fit()
log.removeHandler(accident)
client.close()
cluster.close()
for name, clf in (("calm", calm), ("with an accident", hit)):
    print(f"{name}: {clf.certificate_}")

# %%
# What it cost
# ------------
#
# Round for round, both close the same gap. The long step is the time it took to notice the loss and
# to make the blocks again. Before ``fit`` returns, other code computes the certificate a second
# time, on the workers that are left.

fig, ax = plt.subplots()
for name, clf, colour in (("calm", calm, "C0"), ("one worker lost", hit, "C3")):
    seconds, gaps = clf.history_["seconds"], clf.history_["relative_gap"] * 100
    ax.plot(seconds, gaps, ".-", color=colour, label=name)
ax.plot(seconds[ROUNDS - 1], gaps[ROUNDS - 1], "X", color="C3", markersize=10)
pause = seconds[ROUNDS] - seconds[ROUNDS - 1]
note = f"killed here; {pause:.1f} s to recover"
box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8}
ax.text(seconds[ROUNDS - 1], 4 * gaps[ROUNDS - 1], note, color="C3", bbox=box)
ax.axhline(1e-3, color="0.4", linestyle="--", linewidth=0.8, label="asked for")
ax.set(yscale="log", xlabel="seconds of training", ylabel="proved gap, per cent")
ax.set_title("A lost worker costs time, and nothing else")
ax.legend()
plt.show()
