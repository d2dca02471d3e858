"""The short form of ``make faults``: some of each kind, with a fixed seed."""

import os
from pathlib import Path

import pytest

from tests.faults import files, processes, proofs, tables
from tests.faults.tally import Budget, Tally


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed, or has no room on its disk, cannot tell which lines it ran."""
    for name in [name for name in os.environ if name.startswith("COVERAGE_")]:
        monkeypatch.delenv(name)


def require_right(tally: Tally, count: int) -> None:
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.tried.total() == count


def test_signals(tmp_path: Path) -> None:
    names = ("train --checkpoint --witness", "export")
    require_right(processes.signals(0, Budget(count=4), tmp_path, names), 4)


def test_files(tmp_path: Path) -> None:
    tally = files.campaign(0, Budget(count=1100), tmp_path, commands=2)
    require_right(tally, 1102)
    # Some mutants are valid, and some of them are judged.
    assert {"refused", "valid", "confirmed", "refuted"} <= tally.happened.keys()


def test_proofs(tmp_path: Path) -> None:
    require_right(proofs.campaign(0, Budget(count=90), tmp_path), 90)


def test_tables(tmp_path: Path) -> None:
    tally = tables.campaign(0, Budget(count=100), tmp_path)
    require_right(tally, 100)
    assert {"confirmed", "refuted", "refused", "honest confirmed"} <= tally.happened.keys()


def test_limits(tmp_path: Path) -> None:
    require_right(processes.limits(0, Budget(count=4), tmp_path, ("predict",)), 4)
