"""What a model answers on the rows of a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from certsvm.certificates.certificate import tidy
from certsvm.cli.app import BadInput
from certsvm.cli.matching import ModelRows, rows_for
from certsvm.cli.options import Options

if TYPE_CHECKING:
    from certsvm.files import Model


@dataclass
class Answers:
    """Predictions beside the truth.

    Attributes
    ----------
    rows : ModelRows
        What was read.
    confusion : dict
        The weight of the rows of each pair of a true and a predicted label.
    weighted : bool
        Whether rows have weights.
    stability : float or None
        The share of predictions that more training could not flip; None if nothing is proved.
    """

    rows: ModelRows
    confusion: dict[tuple[str, str], float] = field(default_factory=dict)
    weighted: bool = False
    stability: float | None = None

    @property
    def measures(self) -> dict[str, Any]:
        """Accuracy, and precision and recall of each class; those without rows are None."""
        right = sum(weight for (true, guess), weight in self.confusion.items() if true == guess)
        classes: dict[str, Any] = {}
        for name in sorted({name for pair in self.confusion for name in pair}):
            true, guessed = (
                sum(weight for pair, weight in self.confusion.items() if pair[side] == name)
                for side in (0, 1)
            )
            hits = self.confusion.get((name, name), 0.0)
            classes[name] = {
                "weight": true,
                "precision": hits / guessed if guessed else None,
                "recall": hits / true if true else None,
            }
        recalls = [c["recall"] for c in classes.values() if c["recall"] is not None]
        return {
            "accuracy": right / sum(self.confusion.values()) if right else 0.0,
            "balanced_accuracy": sum(recalls) / len(recalls) if recalls else 0.0,
            "classes": classes,
        }


def answers_on(model: Model, file: str, options: Options) -> Answers:
    """Let a model predict the labels of a file, block by block."""
    import numpy as np

    from certsvm.files.model import listing
    from certsvm.verification.optimum_intervals import unflippable

    rows = rows_for(model, file, options, complete=True)
    answers, stable = Answers(rows), 0.0
    # About free intercepts, and so about scores, nothing is proved.
    proves = bool(model.certificates) and not any(c.free_intercept for c in model.certificates)
    for X, y, weights in rows:
        predicted = model.predict(X)
        if proves:
            sure = unflippable(*model.decision_interval(X))
            stable += float(np.sum(sure if weights is None else weights[sure]))
        pairs = np.array([list(map(tidy, labels)) for labels in (y.tolist(), predicted.tolist())])
        cells, cell = np.unique(pairs, axis=1, return_inverse=True)
        totals = np.bincount(cell.ravel(), weights=weights, minlength=cells.shape[1])
        for (true, guess), weight in zip(cells.T.tolist(), totals.tolist(), strict=True):
            answers.confusion[true, guess] = answers.confusion.get((true, guess), 0.0) + weight
        answers.weighted = answers.weighted or weights is not None
    known = {tidy(label) for label in model.classes.tolist()}
    found = {true for true, _ in answers.confusion}
    if found and not found & known:
        raise BadInput(
            f"none of the labels in {file} ({listing(sorted(found))}) is one of the model's "
            f"({listing(sorted(known))}). Is it the right file, and the right column (--label)?"
        )
    total = sum(answers.confusion.values())
    if proves and total:
        answers.stability = stable / total
    return answers
