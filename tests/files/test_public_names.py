"""What certsvm.files offers is what its name says, whatever was imported before."""

from __future__ import annotations

import subprocess
import sys

import certsvm.files


def test_names_are_classes_and_functions_not_modules() -> None:
    for name in certsvm.files.__all__:
        code = f"from certsvm.files import {name}; assert callable({name}), {name}"
        subprocess.run([sys.executable, "-c", code], check=True)
