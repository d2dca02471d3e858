"""A tag is released if everything states the same version, and the changelog has notes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import certsvm
from tools.release import ROOT, ReleaseError, main, versions

CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.0] - 2027-02-03

### Added

- A thing.

## [1.1.0] - 2027-01-01

- Another.

[1.2.0]: https://example.org
"""


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A repository that is ready for version 1.2.0."""
    for name in versions():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace(certsvm.__version__, "1.2.0"), encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    for name in ("README.md", "docs/quickstart/index.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("pip install certsvm\n")
    return tmp_path


def test_all_state_this_version() -> None:
    assert set(versions().values()) == {certsvm.__version__}


def test_the_notes_are_those_of_the_version(ready: Path) -> None:
    assert main("v1.2.0", ready) == "### Added\n\n- A thing."


def test_what_is_not_ready(ready: Path) -> None:
    (ready / "CHANGELOG.md").write_text(CHANGELOG.replace("2027-02-03", "unreleased"))
    with pytest.raises(ReleaseError, match="no notes under"):
        main("v1.2.0", ready)
    name = next(iter(versions()))
    shutil.copy(ROOT / name, ready / name)
    with pytest.raises(ReleaseError, match=name):
        main("v1.2.0", ready)
