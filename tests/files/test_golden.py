"""Files of all formats stay readable, and the document suffices to read them."""

from __future__ import annotations

import json
import math
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from certsvm import verify_model
from certsvm.files import Model, WeightsWitness, Witness, load_witness
from tests.files.golden import make

GOLDEN = Path(__file__).parent / "golden"
NAMES = (
    "model-2.safetensors",
    "numbered-2.safetensors",
    "quantised-2.witness",
    "weights-2.witness",
)
CODES = {"F64": "d", "I64": "q", "U16": "H"}


def read_by_the_document(path: Path) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """docs/model-format.md in Python, without NumPy, safetensors and certsvm."""
    data = path.read_bytes()
    (H,) = struct.unpack_from("<Q", data)
    assert H % 8 == 0
    header = json.loads(data[8 : 8 + H].decode())
    text = header.pop("__metadata__")["certsvm"]
    metadata = json.loads(text)
    assert metadata["format"] == int(path.stem[-1])
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    document = {key: metadata[key] for key in ("format", "kind", "content")}
    whole = xxhash.xxh3_128(json.dumps(document, **compact).encode())
    arrays = {}
    for name, entry in sorted(header.items()):
        first, last = entry["data_offsets"]
        raw = data[8 + H + first : 8 + H + last]
        code = f"<{entry['dtype'][0].lower()}{int(entry['dtype'][1:]) // 8}"
        whole.update(json.dumps([name, code, entry["shape"]], **compact).encode())
        whole.update(raw)
        form = f"<{math.prod(entry['shape'])}{CODES[entry['dtype']]}"
        arrays[name] = list(struct.unpack(form, raw))
    assert whole.hexdigest() == metadata["digest"]
    return metadata["kind"], metadata["content"], arrays


@pytest.mark.parametrize("version", [1, 2])
def test_a_reader_written_from_the_document(version: int) -> None:
    kind, content, arrays = read_by_the_document(GOLDEN / f"model-{version}.safetensors")
    assert kind == "model"
    assert arrays["coef"] == [0.1, -0.2, 0.3, 1 / 3, 2.0, -0.0, 1e-300, 5e-324, -1e300]
    assert arrays["intercept"] == [0.25, -1.0, 0.1 + 0.2]
    assert arrays["class_weight"] == [1.0, 2.0, 0.5]
    assert content["classes"] == ["blue", "green", "röd"]
    assert content["feature_names"] == ["height", "width", "Größe"]
    assert content["parameters"]["limits"] == [{"$float": "inf"}, 7]
    added = {"loss": "squared_hinge", "penalize_intercept": False} if version == 2 else {}
    assert content["certificates"][0] == {
        "primal": 1.005, "dual": 1.0, "target": 0.01, "bound": "an example",
        "scale": 1.5 if version == 2 else 0.999, "primal_rounding": 1e-13, "dual_rounding": 2e-13,
        "C": 0.1, "intercept_scaling": 1.0, **added,
    }  # fmt: skip
    assert content["fingerprint"]["digest"] == "0123456789abcdef" * 2
    _, content, arrays = read_by_the_document(GOLDEN / f"numbered-{version}.safetensors")
    assert content["classes"] is None
    assert arrays["classes"] == [-1, 1]
    kind, content, arrays = read_by_the_document(GOLDEN / f"quantised-{version}.witness")
    assert (kind, content["form"]) == ("witness", "quantised")
    assert arrays["codes"] == [0, 1, 65535, 2, 65535, 0, 0, 7, 9, 8, 7, 6]
    assert arrays["scale"] == [1.0, 0.5, 3.0 if version == 2 else 0.75]


@pytest.mark.parametrize("version", [1, 2])
def test_golden_models_give_known_numbers(version: int) -> None:
    model = Model.load(GOLDEN / f"model-{version}.safetensors")
    assert model.classes.tolist() == ["blue", "green", "röd"]
    assert model.predict([[0.0, 0.0, -1.0], [0.0, 9.0, 0.0], [0.0, 0.0, 0.0]]).tolist() == [
        "röd", "green", "röd",
    ]  # fmt: skip
    assert model.decision_function([[1.0, 0.0, 0.0]])[0, 1] == 1 / 3 - 1.0
    assert model.certificates[0].met
    assert not model.certificates[1].met
    assert model.certificates[2].proved_gap == math.inf
    assert model.parameters["limits"] == [math.inf, 7]
    assert {(c.loss, c.penalize_intercept) for c in model.certificates} == {
        ("hinge", True) if version == 1 else ("squared_hinge", False)
    }
    assert model.loss == model.certificates[0].loss
    numbered = Model.load(GOLDEN / f"numbered-{version}.safetensors")
    assert numbered.predict([[1.0, 0.0], [0.0, 1.0]]).tolist() == [1, -1]
    assert numbered.classes.dtype == np.int64


@pytest.mark.parametrize("version", [1, 2])
def test_golden_witnesses_give_known_numbers(version: int) -> None:
    witness, about, _ = load_witness(GOLDEN / f"quantised-{version}.witness")
    assert isinstance(witness, Witness)
    box = np.array([1.0, 65535.0, 2.0, 0.0])
    assert witness.alpha(0, box).tolist() == [0.0, 1.0, 2.0, 0.0]
    assert witness.alpha(1, box).tolist() == [0.5, 0.0, 0.0, 0.0]
    assert about == make.FINGERPRINT
    if version == 2:
        assert witness.alpha(2, box, "squared_hinge").tolist() == [27 / 65535, 24.0, 42 / 65535, 0]
    weights, *_ = load_witness(GOLDEN / f"weights-{version}.witness")
    assert isinstance(weights, WeightsWitness)
    alpha = weights.alpha(0, np.ones(3), np.ones(3), np.array([0.5, 1.0, 1.5]))
    assert alpha.tolist() == [0.75, 0.5, 0.25]


def test_a_model_of_format_1_and_its_witness_belong_together() -> None:
    model = Model.load(GOLDEN / "proved-1.safetensors", witness=True)
    X = np.array([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.0], [-2.0, -1.0]])
    report = verify_model(model, [(X, np.array([1, -1, 1, -1]))])
    assert report.verdict == "confirmed"
    assert report.same_data


@pytest.mark.parametrize("name", NAMES)
def test_the_same_content_makes_the_same_bytes(name: str, tmp_path: Path) -> None:
    make.make(tmp_path)
    assert (tmp_path / name).read_bytes() == (GOLDEN / name).read_bytes()


def test_models_need_neither_scikit_learn_nor_numba() -> None:
    script = (
        "import sys; from certsvm.files import Model; m = Model.load(sys.argv[1]); "
        "print(m.predict([[1.0, 0.0]])[0]); "
        "print(sorted({'sklearn', 'numba', 'llvmlite', 'joblib'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(GOLDEN / "numbered-2.safetensors")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.split("\n")[:2] == ["1", "[]"]
