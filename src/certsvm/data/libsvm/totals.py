"""What is known of a file when so much of it was parsed."""

from __future__ import annotations

from dataclasses import dataclass, field

from certsvm.data.libsvm.errors import LibsvmError
from certsvm.data.libsvm.settings import Settings
from certsvm.kernels.libsvm import LARGEST_INDEX, Report


@dataclass
class Totals:
    """Counts, extremes and notes."""

    rows: int = 0
    values: int = 0
    lines: int = 0
    queries: int = 0
    smallest: int = LARGEST_INDEX
    largest: int = -1
    suspect: LibsvmError | None = None
    """What is wrong if the file counts from zero."""
    notes: list[str] = field(default_factory=list)

    @property
    def smallest_index(self) -> int | None:
        """The smallest index so far; None if there were no values."""
        return self.smallest if self.values else None

    @property
    def largest_index(self) -> int | None:
        """The largest index so far; None if there were no values."""
        return self.largest if self.values else None

    def add(self, report: Report, suspect: LibsvmError | None) -> None:
        """Take in what was found in a piece."""
        self.rows += report.rows
        self.values += report.values
        self.queries += report.queries
        self.smallest = min(self.smallest, report.smallest)
        self.largest = max(self.largest, report.largest)
        self.suspect = self.suspect or suspect

    def finish(self, settings: Settings) -> bool:
        """Whether the file counts from zero; raises if that, or its being empty, is wrong."""
        if self.rows == 0:
            raise LibsvmError("there are no rows in this file", settings.file)
        zero_based = settings.zero_based
        if zero_based is None:
            zero_based = self.smallest == 0
            if zero_based:
                self.notes.append("indices count from zero")
                if self.suspect is not None:
                    raise self.suspect
        if self.queries:
            lines = "1 line" if self.queries == 1 else f"{self.queries} lines"
            self.notes.append(f"qid ignored on {lines}")
        return zero_based
