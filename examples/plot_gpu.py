"""
Embeddings on a GPU
===================

Embeddings are often in the memory of a GPU already, as tensors of half precision. ``LinearSVC``
trains on them where they are, and proves what it says in float64 all the same: a half-precision
number is an exact input, and only the sums have to be made with care.
"""

# %%
# Training on the card
# --------------------
#
# A million rows of 512 columns, with a common mean and most of their length in few directions, as
# embeddings have. This part runs where PyTorch finds CUDA, and is left out elsewhere.

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from certsvm import LinearSVC

try:
    import torch

    device = "cuda" if torch.cuda.is_available() else None
except ImportError:
    device = None


def embeddings(n_rows, n_columns):
    torch.manual_seed(0)
    lengths = 1 / torch.arange(1, n_columns + 1, device=device)
    X = torch.randn(n_rows, n_columns, device=device)
    y = (X @ torch.randn(n_columns, device=device) > 0) ^ (torch.rand(n_rows, device=device) < 0.05)
    X = (X + torch.randn(n_columns, device=device)) * lengths
    return (X / X.norm(dim=1, keepdim=True)).bfloat16(), y.long()


if device:
    X, y = embeddings(1_000_000, 512)
    LinearSVC(C=1.0, tol=0.01).fit(X, y)  # Compiles the kernels.
    fig, ax = plt.subplots()
    for C in (0.1, 1.0, 10.0):
        clf = LinearSVC(C=C, tol=1e-5).fit(X, y)
        print(clf.certificate_)
        gaps = np.maximum(clf.history_["relative_gap"], 1e-7) * 100
        ax.plot(clf.history_["seconds"] * 1e3, gaps, "o-", label=f"C = {C:g}")
    ax.axhline(1e-3, color="0.4", linestyle="--", linewidth=0.8)
    ax.set(yscale="log", xlabel="milliseconds", ylabel="proved gap, per cent")
    ax.set_title(f"{X.shape[0]:,} x {X.shape[1]}, bfloat16, {torch.cuda.get_device_name()}")
    ax.legend()
    plt.show()
else:
    print("There is no GPU here: see what was measured on one.")

# %%
# What was measured on an H200
# ----------------------------
#
# This picture is stored, and was drawn from the figures in ``benchmarks/results/gpu.json``. The
# optimisers of PyTorch had the same objective and the same card. They have no stopping rule, so
# they were told the optimum and stopped there; certsvm also had to prove it. On rows that point in
# all directions alike, L-BFGS is about as fast, or faster. On rows like embeddings, second-order
# steps pay.

folders = [Path.cwd(), *Path.cwd().parents]
stored = (folder / "docs" / "_static" / "gpu.png" for folder in folders)
found = next((path for path in stored if path.exists()), None)
if found is None:
    raise SystemExit("The picture is in the repository: docs/_static/gpu.png")
picture = plt.imread(found)
fig = plt.figure(figsize=(9, 9 * picture.shape[0] / picture.shape[1]), layout="none")
ax = fig.add_axes((0, 0, 1, 1))
ax.imshow(picture)
ax.set_axis_off()
plt.show()
