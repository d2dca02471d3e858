"""The key of a user's checkpoints: made once, private, and refused if it is not."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from certsvm.storage.container import ModelFileError, read_container, write_container
from certsvm.storage.keys import VARIABLE, KeyFileError, key_file, user_key
from tests.platforms import posix


@pytest.fixture(autouse=True)
def own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "folder" / "key"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@posix
def test_the_key_is_made_once_and_private(own_key: Path) -> None:
    key = user_key()
    assert len(key) == 32
    assert user_key() == key == own_key.read_bytes()
    assert stat.S_IMODE(own_key.stat().st_mode) == 0o600
    assert os.listdir(own_key.parent) == ["key"]


def test_processes_that_make_it_at_the_same_time_agree(own_key: Path) -> None:
    code = "from certsvm.storage.keys import user_key; print(user_key().hex())"
    runs = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert {run.communicate()[0].strip() for run in runs} == {own_key.read_bytes().hex()}


def test_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE)
    variable = "LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME"
    monkeypatch.setenv(variable, str(tmp_path))
    assert key_file() == tmp_path / "certsvm" / "key"
    monkeypatch.delenv(variable)
    assert key_file() == Path.home() / ".local" / "state" / "certsvm" / "key"


@posix
def test_without_a_home_there_is_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user without a name and a folder, as in some containers: none is made in this one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(KeyFileError, match=f"no home folder .* Set {VARIABLE}"):
        user_key()
    assert not os.listdir(tmp_path)


def test_a_file_that_is_no_key_is_refused(own_key: Path) -> None:
    own_key.parent.mkdir()
    own_key.touch(mode=0o600)
    with pytest.raises(KeyFileError, match="is not a key of certsvm: it has 0 bytes"):
        user_key()


@posix
@pytest.mark.parametrize("mode", [0o640, 0o602, 0o666])
def test_a_key_that_others_may_use_is_refused(own_key: Path, mode: int) -> None:
    user_key()
    own_key.chmod(mode)
    with pytest.raises(KeyFileError, match="chmod 600"):
        user_key()


def test_a_key_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file" / "key"))
    with pytest.raises(KeyFileError, match=f"neither read nor made .* Set {VARIABLE}"):
        user_key()


def test_a_file_is_read_with_its_own_key_only(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_container(path, "example", {"C": 1.0}, {}, b"one")
    assert read_container(path, "example", b"one").content == {"C": 1.0}
    for key in (None, b"two", b""):
        with pytest.raises(ModelFileError, match="is damaged"):
            read_container(path, "example", key)
    write_container(path, "example", {"C": 1.0}, {})
    with pytest.raises(ModelFileError, match="changed or written by someone else"):
        read_container(path, "example", b"one")
