"""
Text classification, and which words are certain
================================================

Which library does a docstring belong to? The texts are on every machine that runs certsvm: the
docstrings of NumPy, SciPy and scikit-learn. A linear classifier gives each word a weight, and a
certificate tells how far that weight may be from the one of the exact optimum.
"""

# %%
# The corpus
# ----------
#
# We parse the sources instead of importing them, leave out lines of code, and let the names of the
# libraries be stop words, since they would be too easy.

import ast
import importlib.util
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from certsvm import LinearSVC

PACKAGES = {"NumPy": "numpy", "SciPy": "scipy", "scikit-learn": "sklearn"}
DOCUMENTED = (ast.FunctionDef, ast.ClassDef)


def docstrings(package):
    folder = Path(importlib.util.find_spec(package).origin).parent
    for path in sorted(folder.rglob("*.py")):
        if {"tests", "externals", "_lib", "f2py"}.isdisjoint(path.parts):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                text = isinstance(node, DOCUMENTED) and ast.get_docstring(node)
                if text and len(text) > 300:
                    lines = text.splitlines()
                    yield " ".join(
                        line for line in lines if ">>>" not in line and "..." not in line
                    )


texts = {name: list(dict.fromkeys(docstrings(package))) for name, package in PACKAGES.items()}
documents = [text for found in texts.values() for text in found]
y = np.repeat(list(texts), [len(found) for found in texts.values()])
print({name: len(found) for name, found in texts.items()})

# %%
# A certified model
# -----------------
#
# Tf-idf of words, then one problem for each library against the others. At ``tol=0.01`` training
# takes a moment, and the predictions are as good as they get. That they are those of the exact
# optimum takes a smaller gap to prove.

names = ["numpy", "np", "scipy", "sklearn", "scikit", "learn", "see", "also"]
vectorizer = TfidfVectorizer(
    token_pattern=r"[a-z]{2,}", min_df=5, sublinear_tf=True, stop_words=names
)
train, test, y_train, y_test = train_test_split(documents, y, test_size=0.3, random_state=0)
X_train, X_test = vectorizer.fit_transform(train), vectorizer.transform(test)
models = {}
for tol in (1e-2, 1e-4, 1e-6):
    clf = models[tol] = LinearSVC(C=1.0, tol=tol, random_state=0).fit(X_train, y_train)
    print(f"tol={tol:g}: accuracy {clf.score(X_test, y_test):.3f}; proved to be the answer of the")
    print(f"    exact optimum: {clf.stability(X_test):.1%} of the predictions")

# %%
# Top words with intervals
# ------------------------
#
# ``coef_interval`` contains the weights of the exact optimum. At one per cent the intervals are
# wide: enough to predict, too little to say which word comes first. A hundredth of the gap makes
# them a tenth as wide. Whoever reads meaning into weights should train that far.

words = vectorizer.get_feature_names_out()
fig, axes = plt.subplots(1, 3, figsize=(9, 4.6), sharex=True)
for i, (ax, name) in enumerate(zip(axes, clf.classes_, strict=True)):
    top = np.argsort(clf.coef_[i])[-12:]
    rows = np.arange(top.size)
    for tol, colour in ((1e-2, "0.87"), (1e-4, "#9ecae1")):
        low, high = (ends[i, top] for ends in models[tol].coef_interval())
        ax.hlines(rows, low, high, color=colour, linewidth=10, label=f"{100 * tol:g} %")
    # These intervals are narrower than the line.
    ax.plot(clf.coef_[i, top], rows, "|", color="C3", markersize=10, mew=2, label="0.0001 %")
    ax.axvline(0, color="0.4", linewidth=0.8)
    ax.set_yticks(rows, words[top])
    ax.set(title=name, xlabel="weight")
    ax.grid(axis="y", visible=False)
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3,
           title="Where the exact optimum's weight is, if the proved gap is at most")  # fmt: skip
plt.show()
