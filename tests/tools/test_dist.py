"""What ``make dist`` refuses to publish."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools import dist, smoke
from tools.dist import DistError, require_sdist, require_wheel

GOOD = (*sorted(dist.library_files()), "certsvm-0.1.0.dist-info/licenses/LICENSE")


def wheel(folder: Path, names: tuple[str, ...], about: str = "[a](#b) [c](https://d)") -> Path:
    path = folder / "certsvm-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("certsvm-0.1.0.dist-info/METADATA", about)
        for name in names:
            archive.writestr(name, "")
    return path


def sdist(folder: Path, names: tuple[str, ...]) -> Path:
    path = folder / "certsvm-0.1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"certsvm-0.1.0/{name}"), io.BytesIO())
    return path


def test_a_wheel_has_the_library_and_nothing_else(tmp_path: Path) -> None:
    require_wheel(wheel(tmp_path, GOOD))
    with pytest.raises(DistError, match="more than the library"):
        require_wheel(wheel(tmp_path, (*GOOD, "tests/test_a.py")))
    with pytest.raises(DistError, match="the wheel has no"):
        require_wheel(wheel(tmp_path, GOOD[1:]))


def test_an_sdist_has_what_tests_need(tmp_path: Path) -> None:
    require_sdist(sdist(tmp_path, dist.IN_SDIST))
    with pytest.raises(DistError, match=r"lacks \['CITATION.cff'\]"):
        require_sdist(sdist(tmp_path, dist.IN_SDIST[:-1]))


def test_the_smoke_test_works_for_the_checkout(tmp_path: Path) -> None:
    """Without the list of installed files, which is that of an editable installation here."""
    smoke.on_the_command_line(tmp_path)
    code = "import os; from tools import smoke; os.chdir({!r}); smoke.in_python(smoke.Path())"
    words = [sys.executable, "-c", code.format(str(tmp_path))]
    subprocess.run(words, cwd=dist.ROOT, check=True)
