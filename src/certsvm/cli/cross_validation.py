"""Cross-validation from the command line: what `select`, `train -v` and `train -C` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput
from certsvm.cli.progress import lines_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from certsvm.fitting.cross_validation import CrossValidation
    from certsvm.fitting.sources import Source
    from certsvm.training.settings import Settings


def cross_validated(
    source: Source, settings: Settings, Cs: Sequence[float], n_folds: int, *, quiet: bool,
    **options: Any,
) -> CrossValidation:  # fmt: skip
    """The search over values of C; ``options`` are those of ``CrossValidation``.

    The weights of rows count in training and in the error, those of classes in training only.
    """
    from certsvm.fitting.cross_validation import CrossValidation, stratified_folds
    from certsvm.fitting.sources import MemorySource

    if not isinstance(source, MemorySource):
        raise BadInput("cross-validation needs the rows in memory: leave out --memory and --stream")
    folds = stratified_folds(source, n_folds, settings.seed or 0)
    with lines_of("cross-validation", quiet=quiet) as show:
        options["callback"] = lambda search: show(str(search))
        return CrossValidation(folds, settings, **options).run(Cs)
