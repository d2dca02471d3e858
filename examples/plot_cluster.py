"""
A cluster that loses a worker
=============================

On a cluster, machines fail. ``certsvm.dask.LinearSVC`` keeps nothing on the workers that could not
be computed again, and each bound of a certificate is a sum over all rows of one round. So a worker
that dies costs time, and cannot make the certificate wrong.

We start a cluster of three processes, and kill one of them in the middle of training.
"""

# %%
# Training, with and without an accident
# --------------------------------------
#
# ``SubprocessCluster`` starts a scheduler and workers of its own. The block functions make the rows
# where they are used. A thread waits until training has begun and ends the process of a worker, as
# the operating system would if its memory were full.

import logging
import os
import threading
import time

import dask
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client
from distributed.deploy.subprocess import SubprocessCluster

from certsvm.dask import LinearSVC

t0=time.time()
cluster = SubprocessCluster(n_workers=3, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL)
client = Client(cluster)
print(time.time()-t0)
@dask.delayed(nout=2)
def block(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((10_000, 100))
    return X, np.where(X[:, 0] + X[:, 1] + rng.standard_normal(10_000) > 0, 1, -1)

blocks = [block(seed) for seed in range(12)]
rows, labels = [b[0] for b in blocks], [b[1] for b in blocks]
for tol in (1e-2,1e-5, 1e-5):
    t0=time.time()
    clf = LinearSVC(C=1.0, tol=tol).fit(rows, labels)
    print(time.time()-t0, clf.certificate_, clf.n_iter_)
    print(clf.history_.to_frame())
print(client.run(os.getpid))
client.close(); cluster.close()
