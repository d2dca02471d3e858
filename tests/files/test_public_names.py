"""What certsvm.files offers is what its name says, whatever was imported before."""

from __future__ import annotations

import certsvm.files
import certsvm.files.conversion
import certsvm.files.libsvm


def test_names_are_classes_and_functions_not_modules() -> None:
    assert all(callable(getattr(certsvm.files, name)) for name in certsvm.files.__all__)
