"""Cross-validation from the command line: what `select`, `train -v` and `train -C` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certsvm.cli.app import BadInput
from certsvm.cli.progress import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certsvm.fitting.cross_validation import CrossValidation
    from certsvm.fitting.sources import Source
    from certsvm.training.settings import Settings


def cross_validated(
    source: Source,
    settings: Settings,
    Cs: Sequence[float],
    n_folds: int,
    *,
    certify: float | None = None,
    max_fits: int | None = None,
    quiet: bool,
) -> CrossValidation:
    """The search over values of C, or with a proof from the lowest of them to the highest.

    The weights of rows count in training and in the error, those of classes in training only.
    """
    from certsvm.fitting.cross_validation import CrossValidation
    from certsvm.fitting.folds import stratified_folds
    from certsvm.fitting.sources import MemorySource

    if not isinstance(source, MemorySource):
        raise BadInput("cross-validation needs the rows in memory: leave out --memory and --stream")
    folds = stratified_folds(source, n_folds, settings.seed or 0)
    with lines_of("cross-validation", quiet=quiet) as show:
        return CrossValidation(
            folds, settings, certify=certify, max_fits=max_fits,
            callback=lambda search: show(str(search)),
        ).run(Cs)  # fmt: skip
