"""Measurements in one JSON file, so that a run can be continued."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class Store:
    """References, trials of settings, and finished cells; written at each change.

    The key of an entry names everything it depends on: the data, C, the versions, the limits.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self._path = path
        self._content: dict[str, dict[str, Any]] = {"references": {}, "trials": {}, "cells": {}}
        if path.exists() and not fresh:
            self._content |= json.loads(path.read_text())

    def get(self, kind: str, key: str) -> Any:
        """The entry, or None."""
        return self._content[kind].get(key)

    def put(self, kind: str, key: str, value: Any) -> None:
        """Add an entry and write the file; an interrupted write leaves the old file."""
        self._content[kind][key] = value
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(self._content, indent=1))
        os.replace(temporary, self._path)
