"""Classes named on the command line, and the option --class-weight."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from certsvm.certificates.certificate import tidy
from certsvm.cli.app import BadInput, say

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certsvm.fitting.sources import ClassWeight


def parse_class_weights(
    texts: Sequence[str], classes: NDArray[Any], maybe: Sequence[str] = ()
) -> ClassWeight:
    """Class weights from ``LABEL=W`` each, or ``balanced``; labels get the type of the classes.

    A class that is named in ``maybe`` may be absent, as in liblinear.
    """
    if "balanced" in texts:
        if len(texts) + len(maybe) > 1:
            raise BadInput("--class-weight balanced does not go with weights of single classes")
        return "balanced"
    factors: dict[Any, float] = {}
    for text in (*texts, *maybe):
        name, _, factor = text.rpartition("=")
        try:
            weight = float(factor)
        except ValueError:
            raise BadInput(f"--class-weight {text}: write LABEL=W, such as 1=5") from None
        try:
            factors[known_label(name, classes, f"--class-weight {text}")] = weight
        except BadInput:
            if text not in maybe:
                raise
            say(f"-w{name}: there is no class {name}, so this weight is not used")
    return factors or None


def known_label(name: str, classes: NDArray[Any], option: str) -> Any:
    """The class that is written so; raises if there is none."""
    known = {tidy(label): label for label in classes.tolist()}
    label = tidy(name)
    if classes.dtype.kind in "fiub":
        with contextlib.suppress(ValueError):
            label = tidy(float(name))
    if label not in known:
        shown = ", ".join(sorted(known)[:20])
        raise BadInput(f"{option}: there is no class {name}; there are {shown}")
    return known[label]
