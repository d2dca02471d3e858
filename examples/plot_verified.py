"""
A model that a third party verifies
===================================

Someone sends a model and claims that it is within one per cent of the optimum. Whoever has the data
can check the claim without training anything, and without trusting the sender: the file comes with
a *witness*, from which the lower bound is recomputed.
"""

# %%
# The sender
# ----------
#
# The sender trains with ``witness=True`` and writes two files. The witness is a byte for each row
# here: dual variables, rounded as much as the claim allows.

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt

from certsvm import Model, demo, fit_stream
from certsvm.files import save_libsvm

folder = TemporaryDirectory()
data, honest = Path(folder.name, "data.txt"), Path(folder.name, "honest.model")
X, y = demo.text_like(n_documents=3_000, n_words=2_000, length=30)
save_libsvm(data, X, y)
fit_stream(data, C=1.0, solver="sgd-s", witness=True).save(honest)
for path in sorted(honest.parent.iterdir()):
    print(f"{path.name:22} {path.stat().st_size:8,} bytes")

# %%
# Forgers
# -------
#
# A changed byte in a file is noticed at once. So these forgers write new files, with valid
# checksums: one changes digits of L, one those of J, and one the weights.

model = Model.load(honest, witness=True)
(claim,) = model.certificates
forgeries = {
    "larger L": {"certificates": (replace(claim, dual=claim.dual + 0.6 * claim.gap),)},
    "smaller J": {"certificates": (replace(claim, primal=claim.primal - 0.6 * claim.gap),)},
    "other weights": {"coef": model.coef * 1.05},
}
for name, change in forgeries.items():
    replace(model, **change).save(Path(folder.name, f"{name}.model"))

# %%
# The third party
# ---------------
#
# The third party is another process, with the data and the file. The command ``certsvm verify``
# recomputes J and L in NumPy, with bounds on its own rounding errors, and shares no code with
# training.

verdicts = {}
for name in ("honest", *forgeries):
    command = [sys.executable, "-m", "certsvm.cli", "verify", f"{name}.model", "data.txt", "--json"]
    done = subprocess.run(command, cwd=folder.name, capture_output=True, text=True, check=False)
    verdicts[name] = json.loads(done.stdout)
    print(f"{name}: {verdicts[name]['verdict']}, exit code {done.returncode}")
folder.cleanup()

# %%
# What was claimed, and what is true
# ----------------------------------
#
# The bars are claims, from L to J. The marks are the intervals that the third party computed, far
# narrower than a line. An honest claim ends at both marks. A claim that does not is refuted, and
# this verdict is a proof, too.

colours = {"confirmed": "C2", "refuted": "C3"}
fig, ax = plt.subplots(figsize=(8.5, 3.6))
for row, report in enumerate(verdicts.values()):
    (problem,) = report["problems"]
    colour = colours[report["verdict"]]
    claimed = problem["claimed_dual"], problem["claimed_primal"]
    ax.plot(claimed, [row, row], color=colour, alpha=0.4, linewidth=14, solid_capstyle="butt")
    for letter in ("dual", "primal"):
        ax.vlines(problem[f"{letter}_interval"], row - 0.3, row + 0.3, color="black")
    ax.text(1.02, row, report["verdict"], color=colour, transform=ax.get_yaxis_transform(),
            verticalalignment="center", fontweight="bold")  # fmt: skip
(true,) = verdicts["honest"]["problems"]
ax.text(true["dual"], -0.45, "L", horizontalalignment="center")
ax.text(true["primal"], -0.45, "J", horizontalalignment="center")
ax.set_yticks(range(len(verdicts)), verdicts)
ax.set(xlabel="objective", ylim=(3.6, -0.8), title="Bars: claimed. Marks: recomputed.")
ax.grid(axis="y", visible=False)
plt.show()
