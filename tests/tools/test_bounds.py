"""The bounds of the dependencies, in the places where they are written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import certsvm
from tools.bounds import all_requirements, build_requirements, lower_bounds, main, project

ROOT = Path(__file__).parent.parent.parent
# Names on conda-forge, where they differ.
CONDA = {"matplotlib": "matplotlib-base", "dask": "dask-core", "torch": "pytorch"}


def recipe() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    return content


def in_conda(requirements: list[str]) -> set[str]:
    bounds = lower_bounds(requirements)
    return {f"{CONDA.get(name, name)} >={version}" for name, version in bounds.items()}


def test_a_constraint_for_every_dependency(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    lines = capsys.readouterr().out.splitlines()
    for requirement in [*build_requirements(), *all_requirements(project())]:
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
    assert built == in_conda(build_requirements()) | {"python ${{ python_min }}.*", "pip"}
    optional = in_conda([*extras["dask"], *extras["torch"]])
    assert set(recipe()["requirements"]["run_constraints"]) == optional


def test_the_recipe_is_of_this_version() -> None:
    context = recipe()["context"]
    assert context["version"] == certsvm.__version__
    assert f">={context['python_min']}" == project()["requires-python"]
