"""A first look at an installed certsvm: ``python smoke.py``, outside of a checkout.

Fits, certifies and verifies in Python and on the command line. It imports nothing but what is
installed with ``certsvm[cli]``, so it can be copied anywhere.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sysconfig
import tempfile
from pathlib import Path

FOREIGN = ("tests", "benchmarks", "tools", "docs", "examples")
"""Folders of the repository that are no part of the library."""


def installed_files() -> None:
    """The types are declared, and tests and benchmarks stayed at home."""
    files = importlib.metadata.files("certsvm") or []
    names = [str(file).replace("\\", "/") for file in files]
    assert "certsvm/py.typed" in names, "py.typed is missing"
    strangers = [name for name in names if name.split("/")[0] in FOREIGN or "/test_" in name]
    assert not strangers, f"not part of the library: {strangers}"


def in_python(folder: Path) -> None:
    """A model meets its target, its certificate is confirmed, and it has a report."""
    import numpy as np

    import certsvm

    assert certsvm.__version__ == importlib.metadata.version("certsvm")
    here = Path.cwd().resolve()
    assert here not in Path(certsvm.__file__).resolve().parents, "this is the checkout's certsvm"
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 10))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(500) > 0, "yes", "no")
    clf = certsvm.LinearSVC(C=0.1, tol=0.01, store_dual=True, random_state=0).fit(X, y)
    assert clf.certificate_.met, str(clf.certificate_)
    assert certsvm.verify(clf, X, y).ok
    assert clf.score(X, y) > 0.8
    # A page has parts that are files of the package.
    clf.report(folder / "fit.html", X, y)
    assert "of the best possible value" in (folder / "fit.html").read_text(encoding="utf-8")


def on_the_command_line(folder: Path) -> None:
    """The same with files."""
    lines = [f"{1 if k % 3 else -1} 1:{k % 7} 2:{k % 5} 3:{k % 3}" for k in range(300)]
    (folder / "data").write_text("\n".join(lines) + "\n")
    trained = json.loads(_certsvm(folder, "train", "data", "--witness", "-o", "model", "--json"))
    assert isinstance(trained, dict)
    assert "confirmed" in _certsvm(folder, "verify", "model", "data")
    assert len(_certsvm(folder, "predict", "model", "data", "-o", "-").splitlines()) >= 300


def _certsvm(folder: Path, *words: str) -> str:
    program = Path(sysconfig.get_path("scripts")) / "certsvm"
    done = subprocess.run(
        [program, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"certsvm {' '.join(words)}: {done.returncode}\n{done.stderr}"
    return done.stdout


def main() -> None:
    """All of it."""
    installed_files()
    with tempfile.TemporaryDirectory() as folder:
        in_python(Path(folder))
        on_the_command_line(Path(folder))
    print(f"certsvm {importlib.metadata.version('certsvm')} fits, certifies and verifies")


if __name__ == "__main__":
    main()
