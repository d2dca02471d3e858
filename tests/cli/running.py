"""Running the real command on real files."""

import contextlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from click.testing import CliRunner

from certsvm.cli.app import app
from certsvm.files import save_libsvm


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def split(words: tuple[object, ...]) -> list[str]:
    """The words of a command, which may also be a single text."""
    return str(words[0]).split() if len(words) == 1 else [*map(str, words)]


def arguments(*words: object) -> list[str]:
    return [sys.executable, "-m", "certsvm.cli", *split(words)]


def run_process(*words: object, cwd: Path, stdin: bytes | None = None, preexec: Any = None) -> Ran:
    """Run the command as a process of its own."""
    done = subprocess.run(
        arguments(*words), cwd=cwd, input=stdin, capture_output=True, timeout=300, check=False,
        preexec_fn=preexec,
    )  # fmt: skip
    # Lines end as Python's do, on every system.
    out, err = (said.decode().replace(os.linesep, "\n") for said in (done.stdout, done.stderr))
    return Ran(done.returncode, out, err)


def limited(size: int, kind: str = "RLIMIT_FSIZE") -> Callable[[], None]:
    """To be run before a command.

    Python ignores SIGXFSZ, so that a write beyond the limit fails as it does on a full disk.
    """
    import resource

    return lambda: resource.setrlimit(getattr(resource, kind), (size, size))


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal; True where the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    return bool(int(status.split("SigCgt:")[1].split()[0], 16) >> (number - 1) & 1)


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)


def run(*words: object, cwd: Path, stdin: bytes | None = None) -> Ran:
    """Run the command in this process, or in another one if it reads standard input.

    An error that is not foreseen is raised.
    """
    if stdin is not None:
        return run_process(*words, cwd=cwd, stdin=stdin)
    line = split(words)
    if line[0] == "convert" and "--memory" not in line:
        # This process holds more than a command: what all tests before have loaded.
        line += ["--memory", "8G"]
    with contextlib.chdir(cwd), warnings.catch_warnings():
        done = CliRunner().invoke(app, line)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Ran(done.exit_code, done.stdout, done.stderr)


def succeed(*words: object, cwd: Path) -> Ran:
    """Run the command, which is to reach its end."""
    done = run(*words, cwd=cwd)
    assert done.code == 0, done.err
    return done


def refuse(message: str, *words: object, cwd: Path) -> None:
    """Run the command, which is to end with a message about bad usage or input."""
    refused = run(*words, cwd=cwd)
    assert refused.code == 2, refused.out
    assert message in " ".join(refused.err.split())
    assert "Traceback" not in refused.err


def noisy(n_rows: int = 300, n_columns: int = 20, seed: int = 0, n_classes: int = 2) -> Any:
    """Sparse rows whose classes overlap, so that there is something to optimise."""
    rng = np.random.default_rng(seed)
    X = sp.random(n_rows, n_columns, density=0.4, format="csr", random_state=rng)
    scores = X @ rng.standard_normal((n_columns, n_classes))
    y = (scores + 0.3 * rng.standard_normal(scores.shape)).argmax(axis=1)
    return X, np.where(y == 0, -1, y) if n_classes == 2 else y


def write(path: Path, **shape: Any) -> Path:
    save_libsvm(path, *noisy(**shape))
    return path
