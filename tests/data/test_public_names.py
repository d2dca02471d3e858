"""What certsvm.data offers is what its name says, whatever was imported before."""

from __future__ import annotations

import subprocess
import sys

import certsvm.data


def test_names_are_classes_and_functions_not_modules() -> None:
    for name in certsvm.data.__all__:
        code = f"from certsvm.data import {name}; assert callable({name}), {name}"
        subprocess.run([sys.executable, "-c", code], check=True)
