"""What ``make dist`` refuses to publish."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools import dist, smoke
from tools.dist import DistError, require_same, require_sdist, require_wheel

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
    with pytest.raises(DistError, match=r"more than the library: \['tests'\]"):
        require_wheel(wheel(tmp_path, (*GOOD, "tests/test_a.py")))


@pytest.mark.parametrize(
    "missing",
    ["certsvm/__init__.py", "certsvm/py.typed", "certsvm/report/static/report.js", GOOD[-1]],
)
def test_a_wheel_lacks_nothing(missing: str, tmp_path: Path) -> None:
    names = tuple(name for name in GOOD if name != missing)
    with pytest.raises(DistError, match="the wheel has no"):
        require_wheel(wheel(tmp_path, names))


def test_a_description_has_no_links_to_files(tmp_path: Path) -> None:
    with pytest.raises(DistError, match="which PyPI does not have"):
        require_wheel(wheel(tmp_path, GOOD, "see [usage](docs/usage.md)"))


def test_an_sdist_has_what_tests_need(tmp_path: Path) -> None:
    require_sdist(sdist(tmp_path, dist.IN_SDIST))
    with pytest.raises(DistError, match=r"lacks \['CITATION.cff'\]"):
        require_sdist(sdist(tmp_path, dist.IN_SDIST[:-1]))


def test_what_an_sdist_must_have_is_here() -> None:
    assert all((dist.ROOT / name).exists() for name in dist.IN_SDIST)


def test_other_bytes_and_other_names_are_not_the_same(tmp_path: Path) -> None:
    for name, content in (("a", b"1"), ("b", b"1"), ("c/a", b"1"), ("d/a", b"2")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    require_same(tmp_path / "a", tmp_path / "c" / "a")
    for other in ("b", "d/a"):
        with pytest.raises(DistError, match="not reproducible"):
            require_same(tmp_path / "a", tmp_path / other)


def test_the_time_is_the_one_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert dist.epoch() == "1700000000"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert int(dist.epoch()) >= 315532800


def test_the_smoke_test_works_for_the_checkout(tmp_path: Path) -> None:
    """Without the list of installed files, which is that of an editable installation here."""
    smoke.on_the_command_line(tmp_path)
    code = (
        "from tools import smoke; import os, sys; os.chdir(sys.argv[1]);"
        "smoke.in_python(smoke.Path())"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=dist.ROOT, check=True)


def test_the_smoke_test_refuses_a_checkout() -> None:
    code = "from tools import smoke; smoke.in_python(smoke.Path())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=dist.ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(dist.ROOT / "src")},
    )  # fmt: skip
    assert "this is the checkout's certsvm" in done.stderr
