"""liblinear's text format, on files whose numbers were worked out by hand."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from certsvm.files import Model, load_liblinear, save_liblinear
from certsvm.files.container import ModelFileError

GOLDEN = Path(__file__).parent / "golden"
TWO = (GOLDEN / "liblinear-two.model").read_text()

finite = st.floats(allow_nan=False, allow_infinity=False)


def test_two_classes_the_smaller_first() -> None:
    model = load_liblinear(GOLDEN / "liblinear-two.model")
    # liblinear: 0.5 x - 0.25 z + 3 * 0.5 > 0 means label 2.
    assert model.classes.tolist() == [2, 3]
    assert model.coef.tolist() == [[-0.5, 0.25]]
    assert model.intercept.tolist() == [-1.5]
    assert model.predict([[0.0, 0.0], [-4.0, 0.0], [0.0, 7.0]]).tolist() == [2, 3, 3]
    assert model.certificates == ()
    assert "nothing is proved" in str(model)
    assert model.parameters == {
        "solver": "liblinear L2R_L1LOSS_SVC_DUAL", "intercept_scaling": 0.5, "loss": "hinge",
    }  # fmt: skip


def test_three_classes_in_any_order() -> None:
    model = load_liblinear(GOLDEN / "liblinear-three.model")
    assert model.classes.tolist() == [-1, 5, 10]
    assert model.coef.tolist() == [[0.5, 2.0], [-0.125, 4.0], [1.0, 0.0]]
    assert model.intercept.tolist() == [0.0, 0.0, 0.0]
    assert model.predict([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]).tolist() == [10, 5, 10]
    assert model.intercept_scaling == 0.0


def test_what_is_written(tmp_path: Path) -> None:
    numbers = [[0.1, -2.0]], [0.75], [-1.0, 1.0], np.ones(2)
    model = Model(*numbers, parameters={"intercept_scaling": 0.5})
    save_liblinear(model, tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == (
        b"solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 0.5\nw\n"
        b"0.1 \n-2.0 \n1.5 \n"
    )


@pytest.mark.parametrize("penalize_intercept", [True, False])
def test_the_solver_tells_the_loss(tmp_path: Path, penalize_intercept: bool) -> None:
    parameters: Any = {"intercept_scaling": 1.0, "penalize_intercept": penalize_intercept}
    parameters["loss"] = "squared_hinge"
    model = Model([[0.1, -2.0]], [0.75], [-1, 1], np.ones(2), parameters=parameters)
    save_liblinear(model, tmp_path / "m")
    text = (tmp_path / "m").read_text()
    assert text.startswith("solver_type L2R_L2LOSS_SVC_DUAL\n")
    assert load_liblinear(tmp_path / "m").loss == "squared_hinge"
    for solver, loss in (("L2R_L2LOSS_SVC", "squared_hinge"), ("L2R_LR", None)):
        (tmp_path / "m").write_text(text.replace("L2R_L2LOSS_SVC_DUAL", solver))
        assert load_liblinear(tmp_path / "m").parameters.get("loss") == loss


@given(
    st.sets(st.integers(-(2**31) + 1, 2**31 - 1), min_size=2, max_size=4),
    st.sampled_from([0.0, 0.25, 1.0, 2.0]),
    st.data(),
)
def test_round_trip(labels: set[int], bias: float, data: st.DataObject) -> None:
    n = 1 if len(labels) == 2 else len(labels)
    moderate = st.floats(-1e300, 1e300).filter(lambda v: v == 0 or abs(v) > 1e-300)
    intercept = data.draw(hnp.arrays(np.float64, n, elements=moderate)) * (bias > 0)
    model = Model(
        data.draw(hnp.arrays(np.float64, (n, 3), elements=finite)), intercept,
        np.array(sorted(labels)), np.ones(len(labels)), parameters={"intercept_scaling": bias},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        save_liblinear(model, path)
        found = load_liblinear(path)
    assert np.array_equal(found.classes, model.classes)
    assert found.coef.tobytes() == model.coef.tobytes()
    assert np.array_equal(found.intercept, model.intercept)
    assert found.intercept_scaling == bias


NO_PLACE: list[Any] = [
    ({"classes": np.array(["a", "b"])}, "integers of 32 bits"),
    ({"classes": np.array([0.5, 1.0])}, "integers of 32 bits"),
    ({"classes": np.array([0, 2**31])}, "integers of 32 bits"),
    ({"parameters": {"intercept_scaling": 0.0}}, "needs a bias > 0"),
]


@pytest.mark.parametrize(("changes", "message"), NO_PLACE)
def test_what_liblinear_has_no_place_for(tmp_path: Path, changes: Any, message: str) -> None:
    fields: dict[str, Any] = {"coef": np.ones((1, 1)), "intercept": np.ones(1),
                              "classes": np.array([0, 1]), "class_weight": np.ones(2)}  # fmt: skip
    with pytest.raises(ValueError, match=message):
        save_liblinear(Model(**(fields | changes)), tmp_path / "m")
    assert not (tmp_path / "m").exists()


MALFORMED: list[Any] = [
    ("L2R_L1LOSS_SVC_DUAL", "L2R_L2LOSS_SVR", 6, "regressions are not read"),
    ("L2R_L1LOSS_SVC_DUAL", "", 1, "'solver_type' with its value"),
    ("nr_class 2", "nr_class 1", 6, "nr_class is 1, and the labels are 2, 3"),
    ("nr_class 2", "nr_class two", 2, "'two'"),
    ("label 2 3", "label 2 2", 6, "the labels are 2, 2"),
    ("label 2 3\n", "", 3, "'label' with its value"),
    ("nr_feature 2", "nr_feature 3", 6, "3 lines of weights follow, not 4"),
    ("nr_feature 2", "nr_feature 99999999999999", 6, "3 lines of weights"),
    ("nr_feature 2", "nr_feature -2", 6, "3 lines of weights follow, not -1"),
    ("bias 0.5", "bias 0.5\nbias 0.5", 6, "here belongs 'w'"),
    ("bias 0.5", "hello 0.5", 5, "not 'hello 0.5'"),
    ("-0.25 ", "-0.25 1", 8, "2 numbers, not 1"),
    ("-0.25 ", "x", 8, "'x'"),
    ("-0.25 ", "inf", 9, "finite numbers"),
    ("w\n", "v\n", 6, "not 'v'"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), MALFORMED)
def test_malformed_files(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    path = tmp_path / "m"
    assert old in TWO
    path.write_text(TWO.replace(old, new, 1))
    with pytest.raises(ModelFileError, match=f"m, line {line}: .*{message}"):
        load_liblinear(path)


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    for i in range(len(TWO)):
        (tmp_path / "m").write_text(TWO[:i])
        cut = i > 0 and TWO[i - 1] != "\n"
        with pytest.raises(ModelFileError, match="last line has no end" if cut else "line"):
            load_liblinear(tmp_path / "m")
    (tmp_path / "m").write_bytes(b"\x89CSVM")
    with pytest.raises(ModelFileError, match="no plain text"):
        load_liblinear(tmp_path / "m")
