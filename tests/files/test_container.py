"""The container: what goes in comes out, and nothing else is taken for it."""

from __future__ import annotations

import contextlib
import gzip
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
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from certsvm.files import container
from certsvm.files.container import (
    Container,
    ModelFileError,
    is_container,
    read_container,
    write_container,
)
from tests.platforms import linux

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
        container = read_container(path, "example")
        assert same(container.content, content)
        _check_same(container.arrays, stored)
        # A reader that knows nothing of certsvm sees the same arrays, and plain JSON.
        with safe_open(path, framework="numpy") as file:
            _check_same({name: file.get_tensor(name) for name in file.keys()}, stored)  # noqa: SIM118
            json.loads(file.metadata()["certsvm"], parse_constant=pytest.fail)
        before = path.read_bytes()
        write_container(path, "example", content, stored)
        assert path.read_bytes() == before


def _check_same(arrays: dict[str, NDArray[Any]], stored: dict[str, NDArray[Any]]) -> None:
    assert arrays.keys() == stored.keys()
    for name, array in stored.items():
        assert arrays[name].dtype == array.dtype.newbyteorder("=")
        assert arrays[name].shape == array.shape
        assert np.array_equal(arrays[name], array, equal_nan=array.dtype.kind == "f")


def test_arrays_that_are_not_contiguous(tmp_path: Path) -> None:
    array = np.arange(24.0).reshape(4, 6)[::2, ::-3].T
    write_container(tmp_path / "file", "example", {}, {"a": array})
    restored = read_container(tmp_path / "file", "example").arrays["a"]
    assert restored.tolist() == array.tolist()
    restored += 1.0
    assert restored.flags.writeable


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
        ({}, {"__metadata__": np.zeros(1)}, "no array can be called"),
        ({}, {"$float": np.zeros(1)}, "no array can be called"),
        ({}, {"\ud800": np.zeros(1)}, "surrogate"),
    ],
)
def test_what_files_do_not_hold(
    tmp_path: Path, content: dict[str, Any], stored: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        write_container(tmp_path / "file", "example", content, stored)
    assert os.listdir(tmp_path) == []


def _forge(
    path: Path, text: bytes, tensors: dict[str, Any] | bytes | None = None, body: bytes = b""
) -> Path:
    """A file whose length and, where one can be made, digest are right, and the rest as asked."""
    with contextlib.suppress(Exception):
        document = json.loads(text)
        del document["digest"]
        arrays = {}
        for name, entry in (tensors if isinstance(tensors, dict) else {}).items():
            values = np.frombuffer(body[slice(*entry["data_offsets"])])
            arrays[name] = values.reshape(entry["shape"])
        text = text.replace(DIGITS, container._digest(document, arrays).encode())
    header = json.dumps({"__metadata__": {"certsvm": text.decode()}}, separators=(",", ":"))
    if isinstance(tensors, bytes):
        header = header[:-1] + "," + tensors.decode() + "}"
    elif tensors:
        header = header[:-1] + "," + json.dumps(tensors)[1:]
    path.write_bytes(len(header.encode()).to_bytes(8, "little") + header.encode() + body)
    return path


DIGITS = b"0" * 32
BEGINNING = b'{"format":1,"digest":"' + DIGITS + b'"'
GOOD = BEGINNING + b',"kind":"example","content":{}}'
TENSOR = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}


def test_the_forger_can_make_a_good_file(tmp_path: Path) -> None:
    path = _forge(tmp_path / "file", GOOD, {"a": TENSOR}, struct.pack("<2d", 1.5, -2.0))
    assert read_container(path, "example").arrays["a"].tolist() == [1.5, -2.0]
    assert is_container(path.read_bytes()[:64])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": [3]}, "truncated or damaged"),
        ({"shape": [2**40, 2**40]}, "truncated or damaged"),
        ({"shape": [2**40], "data_offsets": [0, 2**43]}, "truncated or damaged"),
        ({"shape": [2**63, 2**63], "data_offsets": [0, 0]}, "truncated or damaged"),
        ({"shape": [-2]}, "truncated or damaged"),
        ({"shape": [True, 2]}, "truncated or damaged"),
        ({"shape": [2.0]}, "truncated or damaged"),
        ({"shape": 2}, "truncated or damaged"),
        ({"shape": [1] * 70 + [2]}, "truncated or damaged"),
        ({"data_offsets": [16, 32]}, "truncated or damaged"),
        ({"data_offsets": [16, 0]}, "truncated or damaged"),
        ({"data_offsets": [-16, 0]}, "truncated or damaged"),
        ({"data_offsets": [0]}, "truncated or damaged"),
        ({"shape": [1], "data_offsets": [8, 16]}, "truncated or damaged"),
        ({"shape": [1], "data_offsets": [0, 8]}, "truncated or damaged"),
        ({"dtype": "O"}, "truncated or damaged"),
        ({"dtype": ["F64"]}, "truncated or damaged"),
        ({"dtype": "BF16", "shape": [8]}, "truncated or damaged"),
        ({"dtype": "BOOL", "shape": [16]}, "neither 0 nor 1"),
    ],
)
def test_arrays_that_cannot_be(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    body = struct.pack("<2d", 1.5, -2.0)
    path = _forge(tmp_path / "file", GOOD, {"a": TENSOR | changes}, body)
    with pytest.raises(ModelFileError, match=message):
        read_container(path, "example")


@pytest.mark.parametrize("shape", [[0, 2**62, 2**62], [0, 2**63], [0, 2**64 - 1]])
def test_empty_arrays_of_absurd_shapes(tmp_path: Path, shape: list[int]) -> None:
    entry = {"dtype": "F64", "shape": shape, "data_offsets": [0, 0]}
    with pytest.raises(ModelFileError, match=r"is not valid|damaged"):
        read_container(_forge(tmp_path / "file", GOOD, {"a": entry}), "example")


def test_overlapping_and_doubled_arrays(tmp_path: Path) -> None:
    both = {"a": TENSOR, "b": TENSOR}
    with pytest.raises(ModelFileError, match="damaged"):
        read_container(_forge(tmp_path / "file", GOOD, both, bytes(16)), "example")
    text = json.dumps(TENSOR)
    doubled = f'"a":{text},"a":{text}'.encode()
    with pytest.raises(ModelFileError, match=r"'a' occurs twice|duplicate|damaged"):
        read_container(_forge(tmp_path / "file", GOOD, doubled, bytes(16)), "example")


@pytest.mark.parametrize(
    "rest",
    [
        b"", b",", b"}x", b',"kind":"example","content":{}', b"[" * 100_000, b":" + b"1" * 5000,
        b',"kind":"example","content":{}} x',
        b',"kind":"example","content":{},"content":{}}',
        b',"kind":"example","content":{},"kind":"example"}',
        b',"kind":"example","content":{"a":NaN}}',
        b',"kind":"example","content":{"a":Infinity}}',
        b',"kind":"example","content":{"a":1e999}}',
        b',"kind":"example","content":{"a":"\\ud800"}}',
        b',"kind":"example","content":{"a":{"$float":"1"}}}',
        b',"kind":"example","content":{"a":{"$float":[]}}}',
        b',"kind":"example","content":{"a":{"$float":"inf","b":1}}}',
        b',"kind":"example","content":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b',"kind":"example","content":[]}',
        b',"kind":1,"content":{}}',
        b',"kind":"example"}',
        b',"kind":"example","content":{},"more":1}',
        b',"kind":"example","content":{}, "digest":"0"}',
    ],
)  # fmt: skip
def test_metadata_that_is_not_valid(tmp_path: Path, rest: bytes) -> None:
    with pytest.raises(ModelFileError, match="truncated or damaged"):
        read_container(_forge(tmp_path / "file", BEGINNING + rest), "example")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (rb"\"format\":1", rb"\"format\":3", "written by a newer certsvm"),
        (rb"\"format\":1", rb"\"format\":10", "written by a newer certsvm .format 10"),
        (rb"\"format\":1", rb"\"format\":0", "truncated or damaged"),
        (rb"\"format\":1", rb'\"format\":"1"', "truncated or damaged"),
        (rb"\"digest\":", rb"\"checks\":", "truncated or damaged"),
        (rb'{"certsvm"', rb'{"another"', "safetensors file without the metadata of certsvm"),
        (rb'"__metadata__"', rb'"metadata"', "safetensors file without the metadata of certsvm"),
        (rb'{}}"}', rb'{}}","more":"x"}', "other keys beside"),
        (rb'{}}"}', rb'{}}","certsvm":"x"}', "header is not valid|damaged"),
        (rb'{}}"}', rb'{}}"},"__metadata__":{}', "damaged"),
        (rb'{}}"}', rb'{}}","more":1}', "damaged"),
        (rb'{}}"}', b'{}}\xff"}', "damaged"),
        (rb'{}}"}', rb'{}}"', "damaged"),
    ],
)
def test_headers_that_are_not_valid(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    path = _forge(tmp_path / "file", GOOD)
    header = path.read_bytes()[8:].replace(old, new)
    assert header != path.read_bytes()[8:]
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ModelFileError, match=message):
        read_container(path, "example")


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (2**63, "header alone"),
        (100_000_001, "header alone"),
        (10_000, "truncated or damaged: .* header alone"),
        (8, "damaged"),
        (0, "damaged"),
    ],
)
def test_lengths_that_cannot_be(tmp_path: Path, length: int, message: str) -> None:
    data = _forge(tmp_path / "file", GOOD).read_bytes()
    (tmp_path / "file").write_bytes(length.to_bytes(8, "little") + data[8:])
    with pytest.raises(ModelFileError, match=message):
        read_container(tmp_path / "file", "example")


def test_a_wrong_digest(tmp_path: Path) -> None:
    path = _forge(tmp_path / "file", GOOD, {"a": TENSOR}, bytes(16))
    data = path.read_bytes()
    for other in (
        data[:-1] + b"\1",
        data.replace(b"example", b"exampla"),
        data.replace(b'"a"', b'"b"'),
    ):
        path.write_bytes(other)
        with pytest.raises(ModelFileError, match="digest is not that of its content"):
            read_container(path, "example")


def test_a_header_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="more than the header of a safetensors file has room for"):
        write_container(tmp_path / "file", "example", {"a": '"' * 34_000_000}, {})
    assert os.listdir(tmp_path) == []


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
        (gzip.compress(b"model", mtime=0), "gzip"),
        (save({"a": np.ones(2)}), "safetensors file without the metadata of certsvm"),
        (save({"a": np.ones(2)}, {"format": "pt"}), "safetensors file without the metadata"),
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
        path.write_bytes((_forge(path, GOOD).read_bytes() if ours else b"") + (data or b"x"))
        with pytest.raises(ModelFileError):
            read_container(path, "model")


GREEDY = """
import resource, sys
from certsvm.files.container import Container, ModelFileError, read_container

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
try:
    read_container(sys.argv[1], "example")
except ModelFileError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, error)
"""


@linux
@pytest.mark.parametrize("entry", [
    {"dtype": "F64", "shape": [2**57], "data_offsets": [0, 2**60]},
    {"dtype": "U8", "shape": [2**33], "data_offsets": [0, 2**33]},
    {"dtype": "F64", "shape": [0, 2**60], "data_offsets": [0, 0]},
])  # fmt: skip
def test_what_a_file_claims_is_not_allocated(tmp_path: Path, entry: dict[str, Any]) -> None:
    path = _forge(tmp_path / "file", GOOD, {"a": entry})
    run = subprocess.run(
        [sys.executable, "-c", GREEDY, str(path)], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("True")


@linux
def test_a_file_longer_than_its_header_says_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_container(path, "example", {}, {"a": np.arange(3)})
    # A sparse file: it takes no room on the disk.
    os.truncate(path, 20 << 30)
    run = subprocess.run(
        [sys.executable, "-c", GREEDY, str(path)], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("True")
    assert "its header speaks of" in run.stdout


def test_only_what_is_expected() -> None:
    container = Container({"a": 1}, {"w": np.zeros(1)})
    container.require_only(content={"a"}, arrays={"w"})
    with pytest.raises(ValueError, match="unknown value 'a'"):
        container.require_only(content=set(), arrays={"w"})
    with pytest.raises(ValueError, match="lacks the array 'v'"):
        container.require_only(content={"a"}, arrays={"w", "v"})
