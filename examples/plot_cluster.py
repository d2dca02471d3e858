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

import os
import threading
import time

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
start = time.perf_counter()
calm = fit()
duration = time.perf_counter() - start

# %%
# An accident
# -----------
#
# Half-way through the same training, we end the process of a worker, as an operating system does
# when memory is full. Dask notices, makes the lost blocks on the others, and the round is repeated.

victim = psutil.Process(next(iter(client.run(os.getpid).values())))
timer = threading.Timer(0.5 * duration, victim.kill)
timer.start()
hit = fit()
timer.join()
client.close()
cluster.close()
for name, clf in (("calm", calm), ("with an accident", hit)):
    print(f"{name}: {clf.certificate_}")

# %%
# What it cost
# ------------
#
# Round for round, both close the same gap. The longest step is the time it took to notice the loss
# and to make the blocks again. Before ``fit`` returns, other code computes the certificate a second
# time, on the workers that are left.

fig, ax = plt.subplots()
for name, clf, colour in (("calm", calm, "C0"), ("one worker lost", hit, "C3")):
    history = clf.history_.to_frame()
    ax.plot(history["seconds"], history["relative_gap"] * 100, ".-", color=colour, label=name)
pause = np.diff(history["seconds"]).argmax()
times, gap = history["seconds"][pause : pause + 2], history["relative_gap"][pause] * 100
ax.annotate(f"{np.diff(times)[0]:.1f} s to recover", (times.mean(), gap), xytext=(0, 14),
            textcoords="offset points", horizontalalignment="center", color="C3")  # fmt: skip
ax.axhline(1e-3, color="0.4", linestyle="--", linewidth=0.8, label="asked for")
ax.set(yscale="log", xlabel="seconds of training", ylabel="proved gap, per cent")
ax.set_title("A lost worker costs time, and nothing else")
ax.legend()
plt.show()
