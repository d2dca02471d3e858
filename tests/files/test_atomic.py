"""Real files, real failures: a file-size limit stands for the full disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from certsvm.files.atomic import WriteError, atomic_write
from tests.platforms import posix


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail() -> None:
        with atomic_write(path, "w") as file:
            file.write("new")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o755])
def test_permissions_are_handed_on(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    with atomic_write(path) as file:
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_honours_the_umask(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        with atomic_write(tmp_path / "file") as file:
            file.write(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with (
        pytest.raises(WriteError, match=r"could not write .*missing.* does not exist; the prev"),
        atomic_write(tmp_path / "missing" / "file"),
    ):
        pass
    with pytest.raises(WriteError, match="not a regular file"), atomic_write(tmp_path):
        pass
    assert os.listdir(tmp_path) == []


def test_the_callers_own_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "file"):
        (tmp_path / "not there").read_bytes()
    assert not isinstance(caught.value, WriteError)
