"""The paper's experiments: the command itself on a tiny scale, and the committed page."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.paper import accurate
from benchmarks.paper.__main__ import main
from benchmarks.paper.claims import CLAIMS
from benchmarks.paper.systems import ACCURACY
from benchmarks.paper.tables import TABLES


def asked(folder: Path, *options: str) -> list[str]:
    return [
        "--quick", "--sets", "cancer", "--seconds", "0.1", "--accurate-seconds", "0.3",
        "--cache", str(folder / "cache"), "--out", str(folder / "out"), *options,
    ]  # fmt: skip


def test_the_command_makes_all_tables_and_resumes(tmp_path: Path, capsys: Any) -> None:
    main(asked(tmp_path))
    printed, said = capsys.readouterr()
    out = tmp_path / "out"
    assert printed == f"tables and pictures: {out}\npage about them: {out / 'README.md'}\n"
    for number, table in TABLES.items():
        results = json.loads((out / f"table-{number}.json").read_text())
        assert {cell["system"] for cell in results["cells"]} == set(table.systems)
        assert {cell["C"] for cell in results["cells"]} == set(table.C)
        for cell in results["cells"]:
            if "failure" not in cell and table.kind != "length":
                assert cell["gap"] <= accurate.GAP if number == 1 else cell["accuracy"] <= ACCURACY
            assert f"cancer, C = {cell['C']:g}, {cell['system']}, seed 0: " in said
        text = (out / f"table-{number}.md").read_text()
        assert "| cancer ² |" in text
        assert results["machine"]["processor"] in text
    written = (out / "README.md").read_text()
    assert all(claim.text.replace("|", "\\|") in written for claim in CLAIMS)
    assert "![cancer](./cancer.png)" in written
    assert (out / "cancer.png").stat().st_size > 1000

    before = (out / "table-5.json").read_text()
    main(asked(tmp_path))
    assert capsys.readouterr().err == ""
    assert (out / "table-5.json").read_text() == before


def test_unknown_sets_and_tables_are_refused(tmp_path: Path, capsys: Any) -> None:
    for option, name in (("--sets", "cancel"), ("--table", "12")):
        with pytest.raises(SystemExit):
            main(asked(tmp_path, option, name))
        assert f"{name}; known are" in capsys.readouterr().err
