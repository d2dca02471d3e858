"""A file of the format stays readable, and the document suffices to read it."""

import hashlib
import json
import math
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

import certsvm.files
import certsvm.files.conversion
import certsvm.files.libsvm
from certsvm.files import Model
from tests.files.golden import make

GOLDEN = Path(__file__).parent / "golden"
NAMES = ("example.model", "example.model.witness")


def read_by_the_document(path: Path) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """docs/model-format.md in Python, with its standard library alone."""
    data = path.read_bytes()
    (n,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + n])
    document = json.loads(header.pop("__metadata__")["certsvm"])
    assert list(document) == ["crc32", "format", "kind", "content"]
    assert document["format"] == 1
    end = data.index(document["crc32"].encode()) + 8
    assert f"{zlib.crc32(data[end:]):08x}" == document["crc32"]
    arrays = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        form = f"<{math.prod(entry['shape'])}{ {'F64': 'd', 'U16': 'H'}[entry['dtype']] }"
        arrays[name] = list(struct.unpack(form, data[8 + n + first : 8 + n + last]))
    return document["kind"], document["content"], arrays


def test_a_reader_written_from_the_document() -> None:
    kind, content, arrays = read_by_the_document(GOLDEN / NAMES[0])
    assert kind == "model"
    assert arrays["coef"] == [0.1, -0.2, 0.3, 1 / 3, 2.0, -0.0, 1e-300, 5e-324, -1e300]
    assert arrays["intercept"] == [0.25, -1.0, 0.1 + 0.2]
    assert arrays["class_weight"] == [1.0, 2.0, 0.5]
    assert arrays["history"] == [0.0, 1.0, math.inf, 0.5, 0.0, 2.0, 1.005, 1.0]
    assert content["certsvm_version"] == "0.1.0"
    assert content["classes"] == ["blue", "green", "röd"]
    assert content["feature_names"] == ["height", "width", "Größe"]
    problem = {"C": 0.1, "loss": "squared_hinge", "intercept_scaling": 1.0}
    problem["penalize_intercept"] = False
    assert content["parameters"] == {"solver": "dcd", "seed": None, **problem}
    assert content["certificates"][0] == {
        "primal": 1.005, "dual": 1.0, "target": 0.01, "bound": "an example", "scale": 1.5,
        "primal_rounding": 1e-13, "dual_rounding": 2e-13, **problem,
    }  # fmt: skip
    assert content["certificates"][2]["target"] == math.inf
    sizes = {"n_rows": 4, "n_columns": 3, "n_values": 5}
    assert content["fingerprint"] == {**sizes, "digest": "0123456789abcdef" * 4}
    kind, of_witness, dual = read_by_the_document(GOLDEN / NAMES[1])
    assert kind == "witness"
    assert dual["codes"] == [0, 1, 65535, 2, 65535, 0, 0, 7, 9, 8, 7, 6]
    assert dual["scale"] == [1.0, 0.5, 3.0]
    numbers = struct.pack("<12d", *arrays["coef"], *arrays["intercept"])
    claims = json.dumps(content["certificates"], ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.blake2b(numbers + claims.encode(), digest_size=16).hexdigest()
    assert of_witness["model"] == digest


def test_the_golden_model_gives_known_numbers() -> None:
    model = Model.load(GOLDEN / NAMES[0], witness=True)
    assert model.predict([[0, 0, -1], [0, 9, 0], [0, 0, 0]]).tolist() == ["röd", "green", "röd"]
    assert model.decision_function([[1.0, 0.0, 0.0]])[0, 1] == 1 / 3 - 1.0
    assert [certificate.met for certificate in model.certificates] == [True, False, False]
    assert model.certificates == make.MODEL.certificates
    assert model.witness is not None
    assert model.witness.codes.tolist() == make.MODEL.witness.codes.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_content_makes_the_same_bytes(name: str, tmp_path: Path) -> None:
    make.MODEL.save(tmp_path / "example.model")
    assert (tmp_path / name).read_bytes() == (GOLDEN / name).read_bytes()


def test_models_need_neither_scikit_learn_nor_numba() -> None:
    script = (
        "import sys; from certsvm.files import Model; m = Model.load(sys.argv[1]); "
        "print(m.predict([[0.0, 9.0, 0.0]])[0]); "
        "print(sorted({'sklearn', 'numba', 'llvmlite', 'joblib'} & set(sys.modules)))"
    )
    words = [sys.executable, "-c", script, str(GOLDEN / NAMES[0])]
    assert subprocess.check_output(words, text=True).splitlines() == ["green", "[]"]


def test_names_are_classes_and_functions_not_modules() -> None:
    assert all(callable(getattr(certsvm.files, name)) for name in certsvm.files.__all__)
