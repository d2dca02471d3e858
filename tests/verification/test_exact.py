"""The exact checker, as a file by itself and in ``verify``."""

import bz2
import gzip
import json
import lzma
import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsvm.files.container import read_container, write_container
from certsvm.verification import exact
from certsvm.verification.exact import verify_exactly
from certsvm.verification.verify import REFUTED
from tests.cli.running import run
from tests.verification import exactly, forgeries


@pytest.mark.filterwarnings("ignore:The target accuracy was not reached")
@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_what_training_certifies_is_true_and_no_more_than_that(seed: int) -> None:
    assert exactly.check(seed, Counter()) == []


@pytest.mark.parametrize("kind", forgeries.KINDS)
@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_it_agrees_with_other_fractions(kind: str, r: random.Random) -> None:
    """Of numbers of all sizes, forged dual points and claims."""
    case = forgeries.KINDS[kind](r)
    try:
        with np.errstate(all="ignore"):
            report = case.verified(exact=True)
    except ValueError:
        return
    for i, v in enumerate(report):
        c, w = v.claimed, forgeries.weight_vector(case, i)
        assert v.exact is not None
        true = c.C > 0.0 and w is not None
        low = Fraction(c.dual) - Fraction(c.dual_rounding)
        if w is not None:
            assert v.exact["J"] == forgeries.exact_primal(case, i, w)
            true &= v.exact["J"] <= Fraction(c.primal) + Fraction(c.primal_rounding)
        if case.alphas is None and case.witness is None:
            true &= low <= v.exact["J"]
        elif (alpha := forgeries.exact_alpha(case, i)) is None:
            assert v.exact["L"] is None
            true = False
        else:
            if w is None:
                continue
            # The quotients of the squared hinge are rounded up.
            w_alpha = forgeries.combination(case, i, alpha)
            off = forgeries.exact_dual(case, i, alpha, w_alpha) - v.exact["L"]
            assert 0 <= off <= Fraction(case.squared, 2**3000)
            true &= low <= v.exact["L"]
        assert (v.verdict != REFUTED) == true


TEXT = "\n".join(
    f"{'+1' if k % 3 else '-1'} 1:{k % 7 / 10} 2:{(k * k) % 11} {'' if k % 2 else f'4:{0.1 * k}'}"
    for k in range(60)
)
TABLE = "\n".join(
    ["kind,height,eyes,weight,depth"]
    + [
        f"{'yes' if k % 3 else 'nö'},{k % 7 / 10},{'blue' if k % 2 else 'brown'},{k % 4},{k * 0.3}"
        for k in range(60)
    ]
)
TABLE_OPTIONS = ("--label", "kind", "--weight", "weight")


def alone(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the file where certsvm cannot be imported."""
    copy = folder / "exact.py"
    copy.write_bytes(Path(exact.__file__).read_bytes())
    command = [sys.executable, "-I", "-S", str(copy), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "options",
    [
        (), ("-B", "1", "--float32"), ("-B", "0.3", "-R"),
        ("--loss", "squared_hinge", "-e", "1e-9"),
        ("--loss", "squared_hinge", "-B", "2", "-R", "--class-weight", "1=0.3"),
    ],
)  # fmt: skip
def test_the_file_alone_confirms_models_of_text(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "data").write_text(TEXT)
    run("train", "data", "m", "--witness", "-q", *options, cwd=tmp_path)
    done = alone(tmp_path, "m", "data", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert [problem["verdict"] for problem in found["problems"]] == ["confirmed"]
    assert (found["data"]["line"], found["data"]["same data"]) == (60, True)
    assert found["data"]["float32"] == ("--float32" in options)
    assert "confirmed" in alone(tmp_path, "m", "data").stdout
    assert run("verify", "m", "data", "--exact", *options[-1:0], cwd=tmp_path).code == 0


def test_tables_with_weights_and_categories(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    train = ("train", "t.csv", "m", "--witness", "-q", "-B", "1", "--categorical", *TABLE_OPTIONS)
    run(*train, cwd=tmp_path)
    done = alone(tmp_path, "m", "t.csv", *TABLE_OPTIONS, "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert (found["data"]["not used"], found["data"]["same data"]) == ([], True)
    # Other weights are another problem.
    assert alone(tmp_path, "m", "t.csv", "--label", "kind").returncode == 1
    ours = run("verify", "m", "t.csv", "--exact", *TABLE_OPTIONS, "--json", cwd=tmp_path)
    assert ours.code == 0
    assert ours.json["problems"][0]["primal_excess"] is not None


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_text_of_classes(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    text = TEXT.replace("+1", "3", 9).replace("1:", "0:").replace("2:", "1:")
    (tmp_path / "data").write_bytes(compress(text.encode()))
    run("train", "data", "m", "--witness", "-q", "-B", "1", "--zero-based", cwd=tmp_path)
    verdicts, _ = verify_exactly(str(tmp_path / "m"), str(tmp_path / "data"))
    assert [v["class"] for v in verdicts] == [-1.0, 1.0, 3.0]
    assert {v["verdict"] for v in verdicts} == {"confirmed"}


def test_exit_codes(tmp_path: Path) -> None:
    (tmp_path / "data").write_text(TEXT)
    (tmp_path / "other").write_text(TEXT.replace("2:0", "2:5"))
    run("train", "data", "m", "--witness", "-q", cwd=tmp_path)
    refuted = alone(tmp_path, "m", "other")
    assert refuted.returncode == 1
    assert "refuted" in refuted.stdout
    (tmp_path / "m.witness").rename(tmp_path / "kept")
    assert alone(tmp_path, "m", "data").returncode == 3


@pytest.mark.parametrize(
    "line",
    ["+1 1:nan", "+1 1:inf", "+1 1:1_0", "+1 1:1 1:2", "+1 2:1 1:2", "+1 9:1", "+1 0:1", "7 1:1",
     "1:1 2:2", "+1 1:1:1", "+1 1:", "+1 x:1", "+1 1:1e999", "\xff", "nan 1:1"],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text(TEXT)
    run("train", "data", "m", "--witness", "-q", cwd=tmp_path)
    (tmp_path / "data").write_text(f"{TEXT}\n{line}\n", encoding="latin-1")
    with pytest.raises(ValueError, match="data, line 61: "):
        verify_exactly(str(tmp_path / "m"), str(tmp_path / "data"))


@pytest.mark.parametrize(
    "line", ["yes,1,green,1,1", "yes,1,blue,-1,1", "yes,,blue,1,1", "no,1,blue,1,1", "yes,1,blue,1"]
)
def test_a_row_of_a_table_that_cannot_be_read(line: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    train = ("train", "t.csv", "m", "-q", "--categorical", *TABLE_OPTIONS)
    run(*train, cwd=tmp_path)
    (tmp_path / "t.csv").write_text(f"{TABLE}\n{line}\n", encoding="utf-8")
    options: Any = {"label": "kind", "weight": "weight"}
    with pytest.raises(ValueError, match=r"t\.csv, line 62: "):
        verify_exactly(str(tmp_path / "m"), str(tmp_path / "t.csv"), **options)


@pytest.mark.parametrize("name", ["m", "m.witness"])
def test_damaged_files_and_more_rows_have_no_verdict(name: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text(TEXT)
    run("train", "data", "m", "--witness", "-q", cwd=tmp_path)
    whole = (tmp_path / name).read_bytes()
    paths = str(tmp_path / "m"), str(tmp_path / "data")
    for damaged in (b"", whole[:-1], whole[:200], b"\0" * 100):
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(ValueError, match=r"m, |line 60"):
            verify_exactly(*paths)
    (tmp_path / name).write_bytes(whole)
    (tmp_path / "data").write_text(TEXT + "\n+1 1:1")
    with pytest.raises(ValueError, match="data, line 61"):
        verify_exactly(*paths)


@pytest.mark.parametrize(
    ("claims", "content", "arrays"),
    [
        ({"C": math.inf}, {}, {}),
        ({"C": "a"}, {}, {}),
        ({"loss": "logistic"}, {}, {}),
        ({"penalize_intercept": "no"}, {}, {}),
        ({}, {"classes": [1.0, 1.0]}, {}),
        ({}, {"classes": [1.0]}, {}),
        ({}, {"certificates": []}, {}),
        ({}, {"parameters": None}, {}),
        ({}, {}, {"class_weight": np.array([-1.0, 1.0])}),
        ({}, {}, {"class_weight": np.array([1.0, math.nan])}),
        ({}, {}, {"coef": np.full((1, 4), math.inf)}),
        ({}, {}, {"coef": np.ones((1, 2))}),
        ({}, {}, {"intercept": np.zeros((1, 2))}),
        ({}, {}, {"intercept": np.zeros(2)}),
    ],
)
def test_a_model_that_states_no_problem_has_no_verdict(
    claims: dict[str, Any], content: dict[str, Any], arrays: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "data").write_text(TEXT)
    run("train", "data", "m", "-q", cwd=tmp_path)
    about, stored = read_container(tmp_path / "m", "model")
    about["certificates"][0].update(claims)
    write_container(tmp_path / "m", "model", about | content, stored | arrays)
    done = alone(tmp_path, "m", "data")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    "claims",
    [{"C": -1.0}, {"C": 0.0}, {"primal_rounding": -1.0},
     {"dual_rounding": -1.0}, {"intercept_scaling": -1.0}, {"primal": 0.0}, {"dual": 1e9}],
)  # fmt: skip
def test_claims_that_cannot_be_true_are_refuted(claims: dict[str, float], tmp_path: Path) -> None:
    (tmp_path / "data").write_text(TEXT)
    run("train", "data", "m", "-q", cwd=tmp_path)
    about, stored = read_container(tmp_path / "m", "model")
    about["certificates"][0].update(claims)
    write_container(tmp_path / "m", "model", about, stored)
    assert alone(tmp_path, "m", "data").returncode == 1
