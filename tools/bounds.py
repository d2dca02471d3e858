"""The lower bounds of all dependencies, as constraints for pip: ``python -m tools.bounds``.

``make test-oldest`` installs exactly these versions, so that a bound in ``pyproject.toml`` is one
that was tried.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?>=([0-9][0-9.]*)")


def lower_bounds(requirements: list[str]) -> dict[str, str]:
    """The least version of each requirement, by its name.

    Requirements of the project's own extras have no bound. All others have one, and nothing else.

    Examples
    --------
    >>> lower_bounds(["numpy>=1.26", "dask[array]>=2024.8", "certsvm[cli]"])
    {'numpy': '1.26', 'dask': '2024.8'}
    """
    bounds: dict[str, str] = {}
    for requirement in requirements:
        if requirement.startswith("certsvm["):
            continue
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} is not of the form name>=version")
        name, version = match.groups()
        if bounds.setdefault(name, version) != version:
            raise ValueError(f"{name} has two lower bounds: {bounds[name]} and {version}")
    return bounds


def project(path: Path = PYPROJECT) -> dict[str, Any]:
    """The table ``[project]`` of ``pyproject.toml``."""
    table: dict[str, Any] = _tables(path)["project"]
    return table


def build_requirements(path: Path = PYPROJECT) -> list[str]:
    """What builds the project."""
    requirements: list[str] = _tables(path)["build-system"]["requires"]
    return requirements


def _tables(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return tomllib.load(file)


def all_requirements(table: dict[str, Any]) -> list[str]:
    """Those of the library and of its extras."""
    extras = table["optional-dependencies"].values()
    return [*table["dependencies"], *itertools.chain.from_iterable(extras)]


def main() -> None:
    """Print a constraint for each dependency, of the build, too."""
    bounds = lower_bounds([*build_requirements(), *all_requirements(project())])
    for name, version in bounds.items():
        print(f"{name}=={version}")


if __name__ == "__main__":
    main()
