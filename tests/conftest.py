"""Set up before anything is imported."""

import hashlib
import os
import re
import signal
from importlib.metadata import version
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_HAS_KERNELS = re.compile(r"^@\w*kernel", re.MULTILINE)


def _fingerprint() -> str:
    # Each Numba throws away what another has compiled.
    digest = hashlib.sha256(version("numba").encode())
    for path in sorted((_ROOT / "src").rglob("*.py")):
        if path.parent.name == "kernels" or _HAS_KERNELS.search(path.read_text()):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# Numba looks only at the file of the function itself when it decides whether its cache is
# stale; a kernel that inlines one from another file would be tested as it was before.
os.environ["NUMBA_CACHE_DIR"] = str(_ROOT / ".numba_cache" / _fingerprint())

# In the background of a script, SIGINT is ignored, and so it would be by the processes that tests
# start and send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "default",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
