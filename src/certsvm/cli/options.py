"""Options that several commands share."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from certsvm.cli.app import BadInput

if TYPE_CHECKING:
    from certsvm.problem.objective import Objective

Command = Callable[..., Any]

as_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Put the result on standard output as JSON."
)


class FiniteFloat(click.FloatRange):
    """A number in a range; NaN and infinity are in none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse the value of an option."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number

    def _describe_range(self) -> str:
        # click would print "x<=None" for no limits.
        return "" if self.min is None and self.max is None else super()._describe_range()


def size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Parse an option such as 500M as a number of bytes."""
    if value is None:
        return None
    from certsvm.files.memory import parse_size

    try:
        return parse_size(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


@dataclass(frozen=True)
class DataOptions:
    """How to read a data file."""

    zero_based: bool | None = None
    features: int | None = None
    float32: bool = False
    label: str | None = None
    weight: str | None = None
    header: bool | None = None
    separator: str | None = None
    categorical: bool = False
    ignore: tuple[str, ...] = ()

    @property
    def dtype(self) -> Any:
        """Type of the values."""
        import numpy as np

        return np.float32 if self.float32 else np.float64

    def for_text(self) -> dict[str, Any]:
        """Arguments for the reader of libsvm text."""
        self._refuse(
            "tables (CSV, TSV, Parquet)", label=self.label, weight=self.weight,
            categorical=self.categorical or None, ignore=self.ignore or None,
        )  # fmt: skip
        self._refuse("CSV and TSV", header=self.header, separator=self.separator)
        return {
            "zero_based": self.zero_based, "n_features": self.features, "dtype": self.dtype,
        }  # fmt: skip

    def for_table(self) -> dict[str, Any]:
        """Arguments for the reader of tables."""
        self._refuse("libsvm text", zero_based=self.zero_based, features=self.features)
        return {
            "label": self.label, "weight": self.weight, "header": self.header,
            "separator": self.separator, "categorical": self.categorical,
        }  # fmt: skip

    def for_blocks(self) -> None:
        """Raise if there are any options: a converted file needs none."""
        self._refuse_all("text and tables")

    def for_model(self) -> None:
        """Raise if there are any options: a model is no data."""
        self._refuse_all("data files")

    def _refuse_all(self, what: str) -> None:
        self._refuse(
            what, zero_based=self.zero_based, features=self.features, label=self.label,
            weight=self.weight, header=self.header, separator=self.separator,
            categorical=self.categorical or None, float32=self.float32 or None,
        )  # fmt: skip

    @staticmethod
    def _refuse(what: str, **options: Any) -> None:
        for name, value in options.items():
            if value is not None:
                raise BadInput(f"--{name.replace('_', '-')} is for {what}; this file is none")


def separator(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Parse --separator: a character, or "tab"."""
    value = {"tab": "\t", "\\t": "\t"}.get(value or "", value)
    if value is not None and (len(value) != 1 or value in '\r\n"' or ord(value) > 127):
        raise click.BadParameter("write one character, or tab", context, parameter)
    return value


categorical_option = click.option(
    "--categorical",
    is_flag=True,
    help="Make columns of strings of a table one-hot: a column NAME=VALUE of zeros and ones for "
    "each value. The model keeps them, so that other files are encoded in the same way.",
)


ignore_option = click.option(
    "--ignore",
    multiple=True,
    metavar="NAME",
    help="A column of a table, or of a file converted from one, to leave out (repeatable). Other "
    "columns that the model does not use are an error.",
)


def data_options(command: Command) -> Command:
    """Options of data files, passed to the command as one ``DataOptions``."""

    @functools.wraps(command)
    def with_options(
        *args: Any, zero_based: bool | None, features: int | None, float32: bool,
        label: str | None, weight: str | None, header: bool | None, separator: str | None,
        categorical: bool = False, ignore: tuple[str, ...] = (), **others: Any,
    ) -> Any:  # fmt: skip
        options = DataOptions(
            zero_based, features, float32, label, weight, header, separator, categorical, ignore
        )
        return command(*args, options=options, **others)

    return _with(
        with_options,
        click.option("--zero-based/--one-based", "zero_based", default=None,
                     help="Whether indices in libsvm text count from 0 or 1; detected by default."),
        click.option("--features", type=click.IntRange(min=1), metavar="N",
                     help="Number of columns of libsvm text; by default the largest index."),
        click.option("--float32", is_flag=True, help="Keep values in single precision."),
        click.option("--label", metavar="NAME",
                     help='Column of labels of a table; by default "label" or the last.'),
        click.option("--weight", metavar="NAME", help="Column of weights of a table."),
        click.option("--header/--no-header", "header", default=None,
                     help="Whether CSV begins with a line of names; without one, columns are "
                          "called f0, f1, ... By default it does, and numbers there are refused."),
        click.option("--separator", callback=separator, metavar="CHARACTER",
                     help='Between values of CSV: ";", "tab" or another; by default comma, tab or '
                          "semicolon, whichever the first line has most of."),
    )  # fmt: skip


@dataclass(frozen=True)
class ObjectiveOptions:
    """What to minimise, besides C."""

    loss: str = "hinge"
    bias: float = -1.0
    free_intercept: bool = False

    def __post_init__(self) -> None:
        if self.free_intercept and not self.bias > 0.0:
            raise click.UsageError("--free-intercept (-R) needs an intercept: -B 1")

    @property
    def intercept_scaling(self) -> float:
        """Height of the constant column behind the intercept; zero if there is none."""
        # A free intercept does not depend on it, but how well solvers converge does.
        return 1.0 if self.free_intercept else max(self.bias, 0.0)

    def at(self, C: float) -> Objective:
        """What to minimise."""
        from certsvm.kernels.losses import loss_named
        from certsvm.problem.objective import Objective

        return Objective(C, loss_named(self.loss), not self.free_intercept)


def objective_options(command: Command) -> Command:
    """Options of the objective, passed to the command as one ``ObjectiveOptions``."""

    @functools.wraps(command)
    def with_options(
        *args: Any, loss: str, bias: float, free_intercept: bool, **others: Any
    ) -> Any:
        return command(*args, objective=ObjectiveOptions(loss, bias, free_intercept), **others)

    return _with(
        with_options,
        click.option("--loss", type=click.Choice(["hinge", "squared_hinge"]), default="hinge",
                     show_default=True, help="The loss of a row."),
        click.option("-B", "--bias", type=FiniteFloat(), default=-1.0, metavar="HEIGHT",
                     help="Learn an intercept, as the weight of a constant column of this height; "
                          "by default there is none (in Python, LinearSVC has one of height 1)."),
        click.option("-R", "--free-intercept", is_flag=True,
                     help="With -B: leave the intercept out of the penalty. The optimum does then "
                          "not depend on the height."),
    )  # fmt: skip


def problem_options(command: Command) -> Command:
    """Options of the problem and of the accuracy."""
    return _with(
        command,
        click.option("-c", "--C", "C", type=FiniteFloat(min=0, min_open=True), default=1.0,
                     show_default=True, help="Weight of the loss against the penalty."),
        click.option("-e", "--tol", type=FiniteFloat(min=0), default=0.01, show_default=True,
                     metavar="EPS",
                     help="Relative accuracy to be proved: J(w) <= (1 + EPS) J_opt. (Not "
                          "liblinear's -e, which says nothing of the objective.)"),
        objective_options,
        click.option("--max-iter", type=click.IntRange(min=1), default=1000, show_default=True,
                     help="Limit on passes over the data, for each class or solver."),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
                     help="Seed of the random orders. Results depend on it and on --n-jobs only."),
    )  # fmt: skip


def range_options(max_time: str) -> Callable[[Command], Command]:
    """Options of a range of C and of the fits in it; ``max_time`` describes the limit of time."""

    def with_options(command: Command) -> Command:
        return _with(
            command,
            click.option("--range", "C_range", nargs=2, type=FiniteFloat(min=0, min_open=True),
                         default=(1e-3, 1e2), show_default=True, metavar="LOW HIGH",
                         callback=_ascending, help="The lowest and the highest C."),
            click.option("-e", "--tol", type=FiniteFloat(min=0, min_open=True), default=0.01,
                         show_default=True, metavar="EPS",
                         help="Relative accuracy to be proved: J(w) <= (1 + EPS) J_opt."),
            objective_options,
            click.option("--class-weight", "weights", multiple=True, metavar="LABEL=W",
                         help='Multiply the weights of a class; "balanced" gives all classes the '
                              "same total weight."),
            click.option("--solver", default="auto", show_default=True, metavar="NAME",
                         help="auto, working-set, newton, dcd, sgd-s, ..."),
            click.option("--max-iter", type=click.IntRange(min=1), default=1000, show_default=True,
                         help="Limit on passes over the data, for each class of each fit."),
            click.option("--max-time", type=FiniteFloat(min=0), metavar="SECONDS", help=max_time),
            click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
                         help="Seed of the random orders, and of the folds where there are any."),
            click.option("--n-jobs", type=click.IntRange(min=1),
                         help="Threads; by default one per processor."),
        )  # fmt: skip

    return with_options


def _ascending(
    context: click.Context, parameter: click.Parameter, value: tuple[float, float]
) -> tuple[float, float]:
    if not value[0] < value[1]:
        raise click.BadParameter("the first must be less than the second", context, parameter)
    return value


def _with(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
