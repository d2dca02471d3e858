"""The container: what goes in comes out, nothing else is taken for it; and atomic writes."""

import json
import os
import pickle
import stat
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from certsvm.files import container
from certsvm.files.atomic import WriteError, atomic_write
from certsvm.files.container import ModelFileError, read_container, write_container
from tests.platforms import linux, posix

DTYPES = ("f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", ">f8", ">i4")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3), max_leaves=9
)
names = texts.filter(lambda name: name != "__metadata__")
arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
)


@given(
    content=st.dictionaries(texts, values, max_size=4),
    stored=st.dictionaries(names, arrays, max_size=4),
)
def test_what_goes_in_comes_out(content: dict[str, Any], stored: dict[str, NDArray[Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write_container(path, "example", content, stored)
        found = read_container(path, "example")
        # repr tells 1 from 1.0 and True, and 0.0 from -0.0.
        assert repr(found.content) == repr(content)
        _check_same(found.arrays, stored)
        # A reader that knows nothing of certsvm sees the same arrays.
        with safe_open(path, framework="numpy") as file:
            _check_same({name: file.get_tensor(name) for name in file.keys()}, stored)  # noqa: SIM118
        before = path.read_bytes()
        write_container(path, "example", content, stored)
        assert path.read_bytes() == before
        assert container.kind_of_container(before[:128]) == "example"


def _check_same(arrays: dict[str, NDArray[Any]], stored: dict[str, NDArray[Any]]) -> None:
    assert arrays.keys() == stored.keys()
    for name, array in stored.items():
        assert arrays[name].dtype == array.dtype.newbyteorder("=")
        assert arrays[name].shape == array.shape
        assert np.array_equal(arrays[name], array, equal_nan=array.dtype.kind == "f")


GOOD = b'{"crc32":"' + b"0" * 8 + b'","format":1,"kind":"example","content":{}}'
TENSOR = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
BODY = struct.pack("<2d", 1.5, -2.0)


def _forge(path: Path, text: bytes = GOOD, tensors: Any = None, body: bytes = b"") -> Path:
    """A file whose length and checksum are right, and the rest as asked."""
    header = json.dumps({"__metadata__": {"certsvm": text.decode()}}, separators=(",", ":"))
    if tensors:
        more = tensors if isinstance(tensors, str) else json.dumps(tensors)[1:-1]
        header = f"{header[:-1]},{more}}}"
    data = bytearray(len(header.encode()).to_bytes(8, "little") + header.encode() + body)
    if len(data) >= container._DIGITS.stop:
        data[container._DIGITS] = container._checksum(bytes(data))
    path.write_bytes(data)
    return path


def test_the_forger_can_make_a_good_file(tmp_path: Path) -> None:
    path = _forge(tmp_path / "file", GOOD, {"a": TENSOR}, BODY)
    assert read_container(path, "example").arrays["a"].tolist() == [1.5, -2.0]
    assert container.kind_of_container(path.read_bytes()) == "example"


@pytest.mark.parametrize(
    "tensors",
    [
        {"a": TENSOR | change}
        for change in (
            {"shape": [2**40, 2**40]}, {"shape": [-2]}, {"shape": [True, 2]}, {"shape": 2},
            {"shape": [2**40], "data_offsets": [0, 2**43]}, {"shape": [1] * 70 + [2]},
            {"data_offsets": [16, 32]}, {"data_offsets": [-16, 0]}, {"data_offsets": [0]},
            {"shape": [1], "data_offsets": [0, 8]}, {"dtype": "O"}, {"dtype": "BF16", "shape": [8]},
        )
    ]
    + [
        {"a": TENSOR, "b": {"dtype": "F64", "shape": shape, "data_offsets": [16, 16]}}
        for shape in ([0, 2**62, 2**62], [0, 2**63], [0, 2**64 - 1])
    ]
    + [{"a": TENSOR, "b": TENSOR}, '"a":1', '"__metadata__":{}', '"a"'],
    ids=str,
)  # fmt: skip
def test_arrays_that_cannot_be(tmp_path: Path, tensors: Any) -> None:
    with pytest.raises(ModelFileError, match="truncated or damaged"):
        read_container(_forge(tmp_path / "file", GOOD, tensors, BODY), "example")


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"}}", rest)
        for rest in (
            b"", b"}", b"}} x", b'},"content":{}}', b'},"more":1}', b'"a":NaN}}', b'"a":1e}}',
            b'"a":' + b"1" * 5000 + b"}}", b'"a":"\\ud800"}}', b'"a": 1}}',
            b'"a":' + DEEP + b"}}", b'"a":1,"a":2}}',
        )
    ]
    + [(b"{}", b"[]"), (b'"format":1,', b""), (b',"content":{}', b""), (b'"kind"', b'"name"')],
    ids=lambda part: repr(part)[:30],
)  # fmt: skip
def test_metadata_that_is_not_valid(tmp_path: Path, old: bytes, new: bytes) -> None:
    with pytest.raises(ModelFileError, match="truncated or damaged"):
        read_container(_forge(tmp_path / "file", GOOD.replace(old, new)), "example")


@pytest.mark.parametrize("version", [b"2", b"0", b'"1"', b"null"])
def test_another_format(tmp_path: Path, version: bytes) -> None:
    path = _forge(tmp_path / "file", GOOD.replace(b'"format":1', b'"format":' + version))
    with pytest.raises(ModelFileError, match="Upgrade certsvm if a newer one wrote it"):
        read_container(path, "example")


def test_another_kind(tmp_path: Path) -> None:
    write_container(tmp_path / "file", "witness", {}, {})
    with pytest.raises(ModelFileError, match="holds a 'witness' of format 1, not a model"):
        read_container(tmp_path / "file", "model")


def test_files_of_others(tmp_path: Path) -> None:
    path, tensors = tmp_path / "file", {"a": np.ones(2)}
    others = (save(tensors), save(tensors, {"format": "pt"}))
    for data in (b"", b"solver_type L2R_LR\n", pickle.dumps([1]), *others):
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match="not a file of certsvm: it begins with"):
            read_container(path, "model")


def test_only_regular_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_container(tmp_path / "missing", "model")
    others = [tmp_path]
    if os.name == "posix":
        os.mkfifo(tmp_path / "fifo")
        others += [tmp_path / "fifo", Path("/dev/zero")]
    for path in others:
        with pytest.raises(ModelFileError, match="not a regular file"):
            read_container(path, "model")


GREEDY = """
import resource, sys
from certsvm.files.container import ModelFileError, read_container

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
try:
    read_container(sys.argv[1], "example")
except ModelFileError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, error)
"""


GREEDY_ENTRIES: list[Any] = [
    {"dtype": "F64", "shape": [2**57], "data_offsets": [0, 2**60]},
    {"dtype": "F64", "shape": [0, 2**60], "data_offsets": [0, 0]},
    None,
]


@linux
@pytest.mark.parametrize("entry", GREEDY_ENTRIES)
def test_what_a_file_claims_is_not_allocated(tmp_path: Path, entry: Any) -> None:
    path = _forge(tmp_path / "file", GOOD, entry and {"a": entry})
    if entry is None:
        # A sparse file: it takes no room on the disk.
        os.truncate(path, 20 << 30)
    words = [sys.executable, "-c", GREEDY, str(path)]
    assert subprocess.check_output(words, text=True).startswith("True")


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
