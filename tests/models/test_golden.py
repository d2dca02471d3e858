"""Files of format 1 stay readable, and the document suffices to read them."""

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

from certsvm.models import Model, WeightsWitness, Witness, load_witness
from tests.models.golden import make

GOLDEN = Path(__file__).parent / "golden"
NAMES = (
    "model-1.safetensors",
    "numbered-1.safetensors",
    "quantised-1.witness",
    "weights-1.witness",
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
    assert metadata["format"] == 1
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


def test_a_reader_written_from_the_document() -> None:
    kind, content, arrays = read_by_the_document(GOLDEN / "model-1.safetensors")
    assert kind == "model"
    assert arrays["coef"] == [0.1, -0.2, 0.3, 1 / 3, 2.0, -0.0, 1e-300, 5e-324, -1e300]
    assert arrays["intercept"] == [0.25, -1.0, 0.1 + 0.2]
    assert arrays["class_weight"] == [1.0, 2.0, 0.5]
    assert content["classes"] == ["blue", "green", "röd"]
    assert content["feature_names"] == ["height", "width", "Größe"]
    assert content["parameters"]["limits"] == [{"$float": "inf"}, 7]
    assert content["certificates"][0] == {
        "primal": 1.005, "dual": 1.0, "target": 0.01, "bound": "an example", "scale": 0.999,
        "primal_rounding": 1e-13, "dual_rounding": 2e-13, "C": 0.1, "intercept_scaling": 1.0,
    }  # fmt: skip
    assert content["fingerprint"]["digest"] == "0123456789abcdef" * 2
    _, content, arrays = read_by_the_document(GOLDEN / "numbered-1.safetensors")
    assert content["classes"] is None
    assert arrays["classes"] == [-1, 1]
    kind, content, arrays = read_by_the_document(GOLDEN / "quantised-1.witness")
    assert (kind, content["form"]) == ("witness", "quantised")
    assert arrays["codes"] == [0, 1, 65535, 2, 65535, 0, 0, 7, 9, 8, 7, 6]
    assert arrays["scale"] == [1.0, 0.5, 0.75]


def test_golden_models_give_known_numbers() -> None:
    model = Model.load(GOLDEN / "model-1.safetensors")
    assert model.classes.tolist() == ["blue", "green", "röd"]
    assert model.predict([[0.0, 0.0, -1.0], [0.0, 9.0, 0.0], [0.0, 0.0, 0.0]]).tolist() == [
        "röd", "green", "röd",
    ]  # fmt: skip
    assert model.decision_function([[1.0, 0.0, 0.0]])[0, 1] == 1 / 3 - 1.0
    assert model.certificates[0].met
    assert not model.certificates[1].met
    assert model.certificates[2].proved_gap == math.inf
    assert model.parameters["limits"] == [math.inf, 7]
    numbered = Model.load(GOLDEN / "numbered-1.safetensors")
    assert numbered.predict([[1.0, 0.0], [0.0, 1.0]]).tolist() == [1, -1]
    assert numbered.classes.dtype == np.int64


def test_golden_witnesses_give_known_numbers() -> None:
    witness, about, _ = load_witness(GOLDEN / "quantised-1.witness")
    assert isinstance(witness, Witness)
    box = np.array([1.0, 65535.0, 2.0, 0.0])
    assert witness.alpha(0, box).tolist() == [0.0, 1.0, 2.0, 0.0]
    assert witness.alpha(1, box).tolist() == [0.5, 0.0, 0.0, 0.0]
    assert about == make.FINGERPRINT
    weights, *_ = load_witness(GOLDEN / "weights-1.witness")
    assert isinstance(weights, WeightsWitness)
    alpha = weights.alpha(0, np.ones(3), np.ones(3), np.array([0.5, 1.0, 1.5]))
    assert alpha.tolist() == [0.75, 0.5, 0.25]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_content_makes_the_same_bytes(name: str, tmp_path: Path) -> None:
    make.make(tmp_path)
    assert (tmp_path / name).read_bytes() == (GOLDEN / name).read_bytes()


def test_models_need_neither_scikit_learn_nor_numba() -> None:
    script = (
        "import sys; from certsvm.models import Model; m = Model.load(sys.argv[1]); "
        "print(m.predict([[1.0, 0.0]])[0]); "
        "print(sorted({'sklearn', 'numba', 'llvmlite', 'joblib'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(GOLDEN / "numbered-1.safetensors")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.split("\n")[:2] == ["1", "[]"]
