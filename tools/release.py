"""Checks that a tag can be released, and prints its notes: ``python -m tools.release v1.2.3``.

The tag, the version, the changelog, the citation and the recipe must say the same, and no page may
say that there is no release yet.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
UNRELEASED = re.compile(r"(once|until).*(on PyPI)")


class ReleaseError(Exception):
    """The tag cannot be released."""


def versions(root: Path = ROOT) -> dict[str, str]:
    """The version, by the file that states it."""
    places = {
        "src/certsvm/_version.py": r'^__version__ = "(.+)"$',
        "CITATION.cff": r'^version: "?([^"\n]+)"?$',
        "recipe/recipe.yaml": r'^  version: "(.+)"$',
    }
    found = {}
    for name, pattern in places.items():
        match = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        if match is None:
            raise ReleaseError(f"{name} states no version")
        found[name] = match[1]
    return found


def notes(version: str, changelog: str) -> str:
    """What the changelog says about a version that has a date.

    Examples
    --------
    >>> lines = "## [1.0.0] - 2027-01-31", "- A thing.", "## [0.9.0] - 2026-12-24"
    >>> notes("1.0.0", chr(10).join(lines))
    '- A thing.'
    """
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |^\[[^]]+\]: |\Z)"
    match = re.search(heading, changelog, re.MULTILINE | re.DOTALL)
    if match is None or not match[1].strip():
        raise ReleaseError(f"the changelog has no notes under ## [{version}] - YYYY-MM-DD")
    return match[1].strip()


def require_released_pages(root: Path) -> None:
    """Raise if a page speaks of a release that is still to come."""
    for name in ("README.md", "docs/quickstart/index.md"):
        text = (root / name).read_text(encoding="utf-8")
        if UNRELEASED.search(text):
            raise ReleaseError(f"{name} says that certsvm is not on PyPI yet")


def main(tag: str, root: Path = ROOT) -> str:
    """The notes of a tag that can be released."""
    for name, version in versions(root).items():
        if tag != f"v{version}":
            raise ReleaseError(f"the tag is {tag}, but {name} states version {version}")
        if "dev" in version:
            raise ReleaseError(f"{version} is not a release")
    require_released_pages(root)
    return notes(tag[1:], (root / "CHANGELOG.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    try:
        if len(sys.argv) != 2:
            raise ReleaseError("usage: python -m tools.release vX.Y.Z")
        print(main(sys.argv[1]))
    except ReleaseError as error:
        sys.exit(str(error))
