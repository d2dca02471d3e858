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
    for text in maybe:
        name = text.rpartition("=")[0]
        if _known_as(name, classes)[1] is None:
            say(f"-w{name}: there is no class {name}, so this weight is not used")
        else:
            texts = (*texts, text)
    if not texts:
        return None
    if "balanced" in texts:
        if len(texts) > 1:
            raise BadInput("--class-weight balanced does not go with weights of single classes")
        return "balanced"
    factors: dict[Any, float] = {}
    for text in texts:
        name, _, factor = text.rpartition("=")
        try:
            weight = float(factor)
        except ValueError:
            raise BadInput(f"--class-weight {text}: write LABEL=W, such as 1=5") from None
        factors[known_label(name, classes, f"--class-weight {text}")] = weight
    return factors


def known_label(name: str, classes: NDArray[Any], option: str) -> Any:
    """The class that is written so; raises if there is none."""
    known, label = _known_as(name, classes)
    if label is None:
        shown = ", ".join(sorted(known)[:20])
        raise BadInput(f"{option}: there is no class {name}; there are {shown}")
    return known[label]


def _known_as(name: str, classes: NDArray[Any]) -> tuple[dict[str, Any], str | None]:
    """The classes by their texts, and the text of the one with this name, if there is one."""
    known = {tidy(label): label for label in classes.tolist()}
    label = tidy(name)
    if classes.dtype.kind in "fiub":
        with contextlib.suppress(ValueError):
            label = tidy(float(name))
    return known, label if label in known else None
