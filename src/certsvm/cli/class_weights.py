"""Class weights as options give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from certsvm.certificates.certificate import tidy
from certsvm.cli.app import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from certsvm.fitting.class_weights import ClassWeight


def parse_class_weights(texts: Sequence[str], classes: NDArray[Any]) -> ClassWeight:
    """What ``--class-weight`` says; labels are of the classes' type.

    Parameters
    ----------
    texts : sequence of str
        ``LABEL=W`` each, or ``balanced``.
    classes : ndarray
        The labels that the data has.
    """
    if not texts:
        return None
    if "balanced" in texts:
        if len(texts) > 1:
            raise BadInput("--class-weight balanced does not go with weights of single classes")
        return "balanced"
    known = {tidy(label): label for label in classes.tolist()}
    factors: dict[Any, float] = {}
    for text in texts:
        name, _, factor = text.rpartition("=")
        label = _as_label(name, numbers=classes.dtype.kind in "fiub")
        try:
            weight = float(factor)
        except ValueError:
            raise BadInput(f"--class-weight {text}: write LABEL=W, such as 1=5") from None
        if tidy(label) not in known:
            shown = ", ".join(sorted(known)[:20])
            raise BadInput(f"--class-weight {text}: there is no class {name}; there are {shown}")
        factors[known[tidy(label)]] = weight
    return factors


def _as_label(text: str, *, numbers: bool) -> Any:
    try:
        return float(text) if numbers else text
    except ValueError:
        return text
