"""
A file larger than memory
=========================

``fit_stream`` reads the data a block at a time, again in each pass, and keeps two blocks and a few
weight vectors. The certificate is the one of training in memory: it is about all rows, and each
pass is checked to have read the same ones.
"""

# %%
# Files of growing size
# ---------------------
#
# The rows are in a plain file of float32 numbers here; ``certsvm.files`` has readers for libsvm
# text, Arrow, Parquet and CSV. We train on the first part of the file, then on more of it, as a
# stream and in memory, and let Python count the bytes that are in use at the most.

import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from certsvm import LinearSVC, fit_stream

BLOCK, COLUMNS = 20_000, 50
folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "rows.bin")
rng = np.random.default_rng(0)
direction = rng.standard_normal(COLUMNS)
with path.open("wb") as file:
    for _ in range(16):
        X = rng.standard_normal((BLOCK, COLUMNS + 1))
        X[:, -1] = np.sign(X[:, :-1] @ direction + 6 * X[:, -1])
        file.write(X.astype(np.float32).tobytes())


def block(i):
    start, size = i * BLOCK, BLOCK * (COLUMNS + 1)
    rows = np.fromfile(path, np.float32, size, offset=4 * start * (COLUMNS + 1))
    rows = rows.reshape(BLOCK, -1)
    return rows[:, :-1].copy(), rows[:, -1].copy()


def in_memory(n):
    X, y = np.empty((n * BLOCK, COLUMNS), np.float32), np.empty(n * BLOCK)
    for i in range(n):
        X[i * BLOCK : (i + 1) * BLOCK], y[i * BLOCK : (i + 1) * BLOCK] = block(i)
    return LinearSVC(C=0.01, tol=1e-4, fit_intercept=False, random_state=0).fit(X, y)


def as_stream(n):
    return fit_stream(lambda: map(block, range(n)), C=0.01, tol=1e-4)


def peak(train, n):
    tracemalloc.start()
    train(n)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


numbers = [2, 4, 8, 12, 16]
sizes = [n * BLOCK * (COLUMNS + 1) * 4 / 1e6 for n in numbers]
model = as_stream(16)
held = [peak(in_memory, n) for n in numbers]
streamed = [peak(as_stream, n) for n in numbers]
folder.cleanup()
print(model.certificates[0])

# %%
# Memory and passes
# -----------------
#
# The memory of the stream is that of its blocks, whatever the size of the file. It reads the file
# a few times instead: up to some thousands of columns the solver is Newton's method, which needs
# few passes.

_, passes, primal, dual = model.history.T
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2))
left.plot(sizes, held, "o-", color="C3", label="in memory")
left.plot(sizes, streamed, "o-", color="C0", label="as a stream")
left.set(xlabel="size of the file, MB", ylabel="memory at most, MB", ylim=(0, None))
left.set_title("The stream's memory does not grow")
left.legend()
right.plot(passes, (primal / dual - 1) * 100, "o-", color="C0")
right.axhline(0.01, color="0.4", linestyle="--", linewidth=0.8)
right.text(1, 0.012, "asked for", color="0.3")
right.set(yscale="log", xlabel="passes over the file", ylabel="proved gap, per cent")
right.set_title(f"{sizes[-1]:.0f} MB, {len(passes)} passes")
plt.show()
