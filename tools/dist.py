"""Builds the sdist and the wheel, and tries them: ``python -m tools.dist`` (``make dist``).

1. Both are built twice, and must have the same bytes.
2. The wheel that the sdist builds must have the bytes of the wheel that the checkout builds.
3. The wheel holds the library and nothing else, the sdist all that the tests need.
4. The wheel is installed into a new environment outside of the checkout, which runs ``smoke.py``.

The times in the archives are those of the last commit, or SOURCE_DATE_EPOCH if it is set.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
IN_SDIST = ("pyproject.toml", "LICENSE", "Makefile", "conftest.py", "tests/conftest.py",
            "tests/report/browser.py", "docs/conf.py", "examples/plot_closing_in.py",
            "tools/dist.py", "src/certsvm/report/static/report.css", "CHANGELOG.md",
            "CITATION.cff")  # fmt: skip
LIBRARY = Path("src") / "certsvm"


class DistError(Exception):
    """What was built is not fit to be published."""


def epoch() -> str:
    """Seconds for the times in archives."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return given
    try:
        return _output("git", "log", "-1", "--format=%ct").strip()
    except (OSError, subprocess.CalledProcessError):
        # An unpacked sdist: the first moment that a zip archive can name.
        return "315532800"


def build(source: Path, target: Path, kind: str) -> Path:
    """The "sdist" or "wheel" of the sources, in the empty folder ``target``."""
    _run(sys.executable, "-m", "build", f"--{kind}", "--outdir", target, source,
         SOURCE_DATE_EPOCH=epoch())  # fmt: skip
    (archive,) = target.iterdir()
    return archive


def require_same(first: Path, second: Path) -> None:
    """Raise unless the two have the same name and bytes."""
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, second)]
    if first.name != second.name or digests[0] != digests[1]:
        raise DistError(f"{first.name} is not reproducible: {digests[0]} and {digests[1]}")


def require_wheel(path: Path) -> None:
    """Raise unless the wheel has the library, its licence, a description, and nothing else."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        about = "".join(
            archive.read(name).decode() for name in names if name.endswith(".dist-info/METADATA")
        )
    tops = {name.split("/")[0] for name in names}
    strangers = {top for top in tops if top != "certsvm" and not top.endswith(".dist-info")}
    if strangers:
        raise DistError(f"the wheel has more than the library: {sorted(strangers)}")
    missing = sorted(library_files() - set(names))
    if missing:
        raise DistError(f"the wheel has no {', '.join(missing)}")
    if re.search(r"\]\((?!https?://|#)", about):
        raise DistError("the description has links to files, which PyPI does not have")
    if not any(name.endswith("LICENSE") for name in names):
        raise DistError("the wheel has no licence")


def library_files() -> set[str]:
    """The files of the library, as they are called in a wheel."""
    source = ROOT / LIBRARY
    return {
        f"certsvm/{path.relative_to(source).as_posix()}"
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def require_sdist(path: Path) -> None:
    """Raise unless the sdist has what is needed to build and to test."""
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    missing = [name for name in IN_SDIST if name not in names]
    if missing:
        raise DistError(f"the sdist lacks {missing}")


def smoke(wheel: Path, folder: Path) -> None:
    """Install the wheel into an environment of its own and try it there."""
    _run(sys.executable, "-m", "venv", folder / "environment")
    scripts = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         f"certsvm[cli] @ {wheel.resolve().as_uri()}")  # fmt: skip
    shutil.copy(ROOT / "tools" / "smoke.py", folder)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    _run(python, folder / "smoke.py", cwd=elsewhere, PYTHONPATH="")


def main(arguments: list[str] | None = None) -> None:
    """Build into a folder, and raise unless all is well."""
    parser = argparse.ArgumentParser(description="Builds sdist and wheel, and tries them.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for the archives")
    parser.add_argument("--no-smoke", action="store_true", help="do not install the wheel")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, sdist = (build(ROOT, folder / kind, kind) for kind in ("wheel", "sdist"))
        require_same(wheel, build(ROOT, folder / "second wheel", "wheel"))
        require_same(sdist, build(ROOT, folder / "second sdist", "sdist"))
        with tarfile.open(sdist) as archive:
            archive.extractall(folder / "unpacked", filter="data")
        (unpacked,) = (folder / "unpacked").iterdir()
        require_same(wheel, build(unpacked, folder / "wheel of the sdist", "wheel"))
        require_wheel(wheel)
        require_sdist(sdist)
        if not options.no_smoke:
            smoke(wheel, folder)
        options.out.mkdir(exist_ok=True)
        for old in options.out.glob("certsvm-*"):
            old.unlink()
        for path in (wheel, sdist):
            shutil.copy(path, options.out)
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            print(f"{options.out / path.name}  sha256:{digest}")


def _run(*words: object, cwd: Path = ROOT, **variables: str) -> None:
    subprocess.run([str(word) for word in words], cwd=cwd, env=os.environ | variables, check=True,
                   stdout=sys.stderr)  # fmt: skip


def _output(*words: str) -> str:
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    try:
        main()
    except DistError as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd)} failed with status {error.returncode}")
