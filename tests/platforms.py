"""What some tests ask of the operating system; elsewhere they are skipped, and say why."""

import os
import sys

import pytest

posix = pytest.mark.skipif(
    os.name != "posix", reason="uses signals, permission bits, links or limits of POSIX"
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits memory, or reads Linux's /proc")
