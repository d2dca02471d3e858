import os
import shutil
import subprocess
import sys
from pathlib import Path

import certsvm


def test_it_works_where_nothing_can_be_cached(tmp_path: Path) -> None:
    """A container without a home and with a read-only installation, say."""
    package = tmp_path / "certsvm"
    shutil.copytree(
        Path(certsvm.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    # A file where the folder would go: not even root can make it then.
    for folder in (package, *(path for path in package.rglob("*") if path.is_dir())):
        (folder / "__pycache__").touch()
    code = (
        "import numpy as np; from certsvm.problem.rows import Rows;"
        "print(Rows(np.eye(2)).squared_norms)"
    )
    environment = os.environ | {
        "HOME": os.devnull,
        "XDG_CACHE_HOME": os.devnull,
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    del environment["NUMBA_CACHE_DIR"]
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[1. 1.]", done.stderr
