"""The container: what goes in comes out, and nothing else is taken for it."""

from __future__ import annotations

import json
import math
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from certsvm.models import ModelFileError, read_container, write_container

DTYPES = ("f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?", ">f8", ">i4")

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]))
)
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=5).filter(
    lambda key: key != "$float"
)
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys, v, max_size=3), max_leaves=9
)
arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0))
)


def same(a: Any, b: Any) -> bool:
    """Equal, of the same types, NaN and the sign of zero included."""
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("d", a) == struct.pack("d", b) or (math.isnan(a) and math.isnan(b))
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


@given(
    content=st.dictionaries(keys, values, max_size=4),
    stored=st.dictionaries(keys, arrays, max_size=4),
)
def test_what_goes_in_comes_out(content: dict[str, Any], stored: dict[str, NDArray[Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write_container(path, "example", content, stored)
        found = read_container(path, "example")
        assert same(found.content, content)
        assert list(found.arrays) == list(stored)
        for name, array in stored.items():
            assert found.arrays[name].dtype == array.dtype.newbyteorder("=")
            assert found.arrays[name].shape == array.shape
            assert np.array_equal(found.arrays[name], array, equal_nan=array.dtype.kind == "f")
        json.loads(_header(path.read_bytes()), parse_constant=pytest.fail)


def test_arrays_that_are_not_contiguous(tmp_path: Path) -> None:
    array = np.arange(24.0).reshape(4, 6)[::2, ::-3].T
    write_container(tmp_path / "file", "example", {}, {"a": array})
    found = read_container(tmp_path / "file", "example").arrays["a"]
    assert found.tolist() == array.tolist()
    found += 1.0
    assert found.flags.writeable


@pytest.mark.parametrize(
    ("content", "stored", "message"),
    [
        ({"a": {1}}, {}, r"content.*\['a'\] is of type set"),
        ({"a": [np.float32(1)]}, {}, r"\[0\] is of type float32"),
        ({"a": 2**64}, {}, "more than 64 bits"),
        ({"a": {"$float": "inf"}}, {}, "keys are strings other than"),
        ({"a": {1: 2}}, {}, "keys are strings"),
        ({"a": "\ud800"}, {}, "surrogate"),
        ({}, {"x": np.array(["a"])}, "array 'x' is of type <U1"),
        ({}, {"x": np.array([None])}, "array 'x' is of type object"),
        ({}, {"x": np.zeros((1,) * 9)}, "9 dimensions"),
    ],
)
def test_what_files_do_not_hold(
    tmp_path: Path, content: dict[str, Any], stored: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        write_container(tmp_path / "file", "example", content, stored)
    assert os.listdir(tmp_path) == []


def _header(data: bytes) -> bytes:
    (length,) = struct.unpack_from("<Q", data, 16)
    return data[32 : 32 + length]


def _file(path: Path, header: Any, body: bytes = b"", **changes: int) -> Path:
    """A file with a right digest, whatever else is wrong with it."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = -(-(32 + len(text)) // 64) * 64
    fields = {"version": 1, "reserved": 0, "length": len(text), "total": start + len(body) + 16}
    fields |= changes
    data = struct.pack("<8sIIQQ", b"\x89CSVM\r\n\x1a", *fields.values()) + text
    data = data.ljust(start, b"\0") + body
    path.write_bytes(data + xxhash.xxh3_128(data).digest())
    return path


def _described(**changes: Any) -> dict[str, Any]:
    entry = {"name": "a", "dtype": "f8", "shape": [2], "offset": 0, "nbytes": 16} | changes
    return {"kind": "example", "content": {}, "arrays": [entry]}


def test_the_forger_can_make_a_good_file(tmp_path: Path) -> None:
    path = _file(tmp_path / "file", _described(), struct.pack("<2d", 1.5, -2.0))
    assert read_container(path, "example").arrays["a"].tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": [3]}, "does not take 16 bytes"),
        ({"shape": [2**40, 2**40]}, "does not take 16 bytes"),
        ({"shape": [2**40], "nbytes": 2**43}, "reaches outside the file"),
        ({"shape": [0, 2**62, 2**62], "nbytes": 0}, "array 0 is not valid"),
        ({"shape": [-2], "nbytes": -16}, "integers >= 0"),
        ({"shape": [True, 2]}, "integers >= 0"),
        ({"shape": [2.0]}, "integers >= 0"),
        ({"shape": [1] * 40 + [2]}, "its shape is"),
        ({"shape": 2}, "its shape is"),
        ({"offset": 64}, "reaches outside the file"),
        ({"offset": -64}, "integers >= 0"),
        ({"shape": [1], "nbytes": 8, "offset": 8}, "begins at 8, not at 0"),
        ({"shape": [1], "nbytes": 8}, "8 bytes after its arrays"),
        ({"dtype": "O"}, "no type 'O'"),
        ({"dtype": ["f8"]}, "no type"),
        ({"dtype": "bool", "shape": [16]}, "neither 0 nor 1"),
        ({"name": 7}, "its description needs"),
        ({"more": 7}, "its description needs"),
    ],
)
def test_arrays_that_cannot_be(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = _file(tmp_path / "file", _described(**changes), struct.pack("<2d", 1.5, -2.0))
    with pytest.raises(ModelFileError, match=message):
        read_container(path, "example")


def test_overlapping_and_doubled_arrays(tmp_path: Path) -> None:
    header = _described()
    header["arrays"] *= 2
    with pytest.raises(ModelFileError, match="overlaps"):
        read_container(_file(tmp_path / "file", header, bytes(16)), "example")
    header["arrays"][1] = header["arrays"][1] | {"offset": 64}
    with pytest.raises(ModelFileError, match="name occurs twice"):
        read_container(_file(tmp_path / "file", header, bytes(80)), "example")


@pytest.mark.parametrize(
    "header",
    [
        b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b"1" * 5000,
        b'{"kind":"example","content":{},"arrays":[]} x',
        b'{"kind":"example","content":{},"content":{},"arrays":[]}',
        b'{"kind":"example","content":{"a":NaN},"arrays":[]}',
        b'{"kind":"example","content":{"a":Infinity},"arrays":[]}',
        b'{"kind":"example","content":{"a":1e999},"arrays":[]}',
        b'{"kind":"example","content":{"a":"\\ud800"},"arrays":[]}',
        b'{"kind":"example","content":{"a":{"$float":"1"}},"arrays":[]}',
        b'{"kind":"example","content":{"a":{"$float":[]}},"arrays":[]}',
        b'{"kind":"example","content":{"a":{"$float":"inf","b":1}},"arrays":[]}',
        b'{"kind":"example","content":[],"arrays":[]}',
        b'{"kind":"example","content":{},"arrays":{}}',
        b'{"kind":1,"content":{},"arrays":[]}',
        b'{"kind":"example","content":{}}',
        b'{"kind":"example","content":{},"arrays":[],"more":1}',
    ],
)  # fmt: skip
def test_headers_that_are_not_valid(tmp_path: Path, header: bytes) -> None:
    with pytest.raises(ModelFileError, match="header is not valid"):
        read_container(_file(tmp_path / "file", header), "example")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "written by a newer certsvm"),
        ({"version": 0}, "no format 0"),
        ({"reserved": 1}, "no format 1.1"),
        ({"length": 2**63}, "header is too large"),
        ({"length": 10_000}, "header reaches beyond"),
        ({"total": 2**63}, "truncated"),
        ({"total": 10}, "bytes more than it states"),
    ],
)
def test_preambles_that_cannot_be(tmp_path: Path, changes: dict[str, int], message: str) -> None:
    path = _file(tmp_path / "file", _described(), bytes(16), **changes)
    with pytest.raises(ModelFileError, match=message):
        read_container(path, "example")


def test_another_kind(tmp_path: Path) -> None:
    write_container(tmp_path / "file", "witness", {}, {})
    with pytest.raises(ModelFileError, match="holds a witness, not a model"):
        read_container(tmp_path / "file", "model")


def test_files_of_others(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a", "b")
    for data, message in (
        (b"", "is empty"),
        (b"hello", "begins with b'hello'"),
        (b"solver_type L2R_LR\n", "load_liblinear"),
        (b"svm_type c_svc\n", "libsvm"),
        (pickle.dumps([1]), "pickle"),
        ((tmp_path / "zip").read_bytes(), "zip"),
        (b"\x89HDF\r\n\x1a\n0000", "HDF5"),
        (b"\x93NUMPY\x01\x00", "NumPy array"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"\x89CSVM\n\x1a" + bytes(50), "transfer as text"),
        (b"\x89CSVM\r\r\n\x1a" + bytes(50), "transfer as text"),
        (b"\x89CSVM\r\n\x1a" + bytes(8), "truncated"),
    ):
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=message):
            read_container(path, "model")


def test_only_regular_files(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is a folder"):
        read_container(tmp_path, "model")
    with pytest.raises(FileNotFoundError):
        read_container(tmp_path / "missing", "model")
    if os.name == "posix":
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(ModelFileError, match="a pipe, a device"):
            read_container(tmp_path / "fifo", "model")
        with pytest.raises(ModelFileError, match="a pipe, a device"):
            read_container("/dev/zero", "model")


@given(st.binary(max_size=300), st.booleans())
def test_random_bytes(data: bytes, ours: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes((b"\x89CSVM\r\n\x1a\x01\0\0\0\0\0\0\0" if ours else b"") + data)
        with pytest.raises(ModelFileError):
            read_container(path, "model")


GREEDY = """
import resource, sys
from certsvm.models import ModelFileError, read_container

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
try:
    read_container(sys.argv[1], "example")
except ModelFileError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, error)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits memory")
@pytest.mark.parametrize("changes", [{"total": 2**60}, {"length": 2**60}])
def test_what_a_file_claims_is_not_allocated(tmp_path: Path, changes: dict[str, int]) -> None:
    path = _file(tmp_path / "file", _described(), bytes(16), **changes)
    run = subprocess.run(
        [sys.executable, "-c", GREEDY, str(path)], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("True")
