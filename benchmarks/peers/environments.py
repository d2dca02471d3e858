"""A virtual environment for each peer, since some have modules of the same name."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.peers.adapters import ADAPTERS, Ours


def python_for(name: str, folder: Path | None) -> Path:
    """The interpreter of the system's environment in ``folder``; this one if there is none."""
    if folder is not None and name != Ours.name:
        python = interpreter(folder / ADAPTERS[name].package)
        if python.exists():
            return python
    return Path(sys.executable)


def install(names: list[str], folder: Path) -> None:
    """Make the missing environments; packages that cannot be installed are left out."""
    for package in dict.fromkeys(ADAPTERS[name].package for name in names if name != Ours.name):
        python = interpreter(folder / package)
        if not python.exists():
            print(f"making an environment for {package}", file=sys.stderr, flush=True)
            venv.create(folder / package, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*command, "numpy", "scipy", package], check=False)
        if done.returncode:
            print(f"{package} could not be installed", file=sys.stderr)


def interpreter(environment: Path) -> Path:
    """The interpreter of a virtual environment, on Windows or elsewhere."""
    # Absolute but not resolved: the place of the link makes it an environment.
    places = (environment / "bin" / "python", environment / "Scripts" / "python.exe")
    return next((p for p in places if p.exists()), places[0]).absolute()
