"""What is published: bounds of dependencies, sdist and wheel, the versions and notes of a tag."""

import io
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import certsvm
from tools import bounds, dist, release, smoke
from tools.bounds import lower_bounds, project
from tools.dist import DistError, require_sdist, require_wheel
from tools.release import ROOT, ReleaseError, versions

# Names on conda-forge, where they differ.
CONDA = {"matplotlib": "matplotlib-base", "dask": "dask-core", "torch": "pytorch"}


def recipe() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    return content


def in_conda(requirements: list[str]) -> set[str]:
    least = lower_bounds(requirements).items()
    return {f"{CONDA.get(name, name)} >={version}" for name, version in least}


def test_a_constraint_for_every_dependency(capsys: pytest.CaptureFixture[str]) -> None:
    bounds.main()
    lines = capsys.readouterr().out.splitlines()
    for requirement in [*bounds.build_requirements(), *bounds.all_requirements(project())]:
        name = re.match(r"[\w-]+", requirement)
        assert name is not None
        assert name[0] == "certsvm" or any(line.startswith(f"{name[0]}==") for line in lines)
    assert len(lines) == len(set(lines))


def test_the_recipe_has_the_bounds_of_the_library_and_of_its_command_line() -> None:
    table = project()
    extras = table["optional-dependencies"]
    wanted = in_conda([*table["dependencies"], *extras["cli"], *extras["arrow"], *extras["plot"]])
    run = recipe()["requirements"]["run"]
    assert set(run) == wanted | {"python >=${{ python_min }}"}
    assert len(run) == len(set(run))
    built = set(recipe()["requirements"]["host"])
    assert built == in_conda(bounds.build_requirements()) | {"python ${{ python_min }}.*", "pip"}
    optional = in_conda([*extras["dask"], *extras["torch"]])
    assert set(recipe()["requirements"]["run_constraints"]) == optional


def test_the_recipe_is_of_this_version() -> None:
    context = recipe()["context"]
    assert context["version"] == certsvm.__version__
    assert f">={context['python_min']}" == project()["requires-python"]


GOOD = (*sorted(dist.library_files()), "certsvm-0.1.0.dist-info/licenses/LICENSE")


def wheel(folder: Path, names: tuple[str, ...], about: str = "[a](#b) [c](https://d)") -> Path:
    path = folder / "certsvm-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("certsvm-0.1.0.dist-info/METADATA", about)
        for name in names:
            archive.writestr(name, "")
    return path


def sdist(folder: Path, names: tuple[str, ...]) -> Path:
    path = folder / "certsvm-0.1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"certsvm-0.1.0/{name}"), io.BytesIO())
    return path


def test_a_wheel_has_the_library_and_nothing_else(tmp_path: Path) -> None:
    require_wheel(wheel(tmp_path, GOOD))
    with pytest.raises(DistError, match="more than the library"):
        require_wheel(wheel(tmp_path, (*GOOD, "tests/test_a.py")))
    with pytest.raises(DistError, match="the wheel has no"):
        require_wheel(wheel(tmp_path, GOOD[1:]))


def test_an_sdist_has_what_tests_need(tmp_path: Path) -> None:
    require_sdist(sdist(tmp_path, dist.IN_SDIST))
    with pytest.raises(DistError, match=r"lacks \['CITATION.cff'\]"):
        require_sdist(sdist(tmp_path, dist.IN_SDIST[:-1]))


def test_the_smoke_test_works_for_the_checkout(tmp_path: Path) -> None:
    """Without the list of installed files, which is that of an editable installation here."""
    smoke.on_the_command_line(tmp_path)
    code = "import os; from tools import smoke; os.chdir({!r}); smoke.in_python(smoke.Path())"
    words = [sys.executable, "-c", code.format(str(tmp_path))]
    subprocess.run(words, cwd=dist.ROOT, check=True)


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
    assert release.main("v1.2.0", ready) == "### Added\n\n- A thing."


def test_what_is_not_ready(ready: Path) -> None:
    (ready / "CHANGELOG.md").write_text(CHANGELOG.replace("2027-02-03", "unreleased"))
    with pytest.raises(ReleaseError, match="no notes under"):
        release.main("v1.2.0", ready)
    name = next(iter(versions()))
    shutil.copy(ROOT / name, ready / name)
    with pytest.raises(ReleaseError, match=name):
        release.main("v1.2.0", ready)
