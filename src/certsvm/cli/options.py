"""Options that several commands share: declared once, and passed to the command as one object."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from certsvm.cli.app import BadInput

if TYPE_CHECKING:
    from certsvm.problem.objective import Objective
    from certsvm.training.settings import Settings

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


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


POSITIVE, NOT_NEGATIVE = FiniteFloat(min=0, min_open=True), FiniteFloat(min=0)


def size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Parse an option such as 500M as a number of bytes."""
    if value is None:
        return None
    from certsvm.files.memory import parse_size

    try:
        return parse_size(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


def _separator(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Parse --separator: a character, or "tab"."""
    value = {"tab": "\t", "\\t": "\t"}.get(value or "", value)
    if value is not None and (len(value) != 1 or value in '\r\n"' or ord(value) > 127):
        raise click.BadParameter("write one character, or tab", context, parameter)
    return value


@dataclass(frozen=True)
class Options:
    """What the shared options say; a command has some of them."""

    # How to read a data file.
    zero_based: bool | None = None
    features: int | None = None
    float32: bool = False
    label: str | None = None
    weight: str | None = None
    header: bool | None = None
    separator: str | None = None
    categorical: bool = False
    ignore: tuple[str, ...] = ()
    # What to minimise, and how accurately.
    C: float = 1.0
    tol: float = 0.01
    loss: str = "hinge"
    bias: float = -1.0
    free_intercept: bool = False
    weights: tuple[str, ...] = ()
    # How.
    solver: str = "auto"
    max_iter: int = 1000
    max_time: float | None = None
    seed: int = 0
    n_jobs: int | None = None
    witness: bool = False
    memory: int | None = None
    stream: bool = False
    # What to print.
    as_json: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.free_intercept and not self.bias > 0.0:
            raise click.UsageError("--free-intercept (-R) needs an intercept: -B 1")

    @property
    def silent(self) -> bool:
        """Whether to show no progress."""
        return self.quiet or self.as_json

    @property
    def dtype(self) -> Any:
        """Type of the values."""
        import numpy as np

        return np.float32 if self.float32 else np.float64

    def for_text(self) -> dict[str, Any]:
        """Arguments for the reader of libsvm text."""
        self._refuse("tables (CSV, TSV, Parquet)", "label", "weight", "categorical", "ignore")
        self._refuse("CSV and TSV", "header", "separator")
        return {
            "zero_based": self.zero_based, "n_features": self.features, "dtype": self.dtype,
        }  # fmt: skip

    def for_table(self) -> dict[str, Any]:
        """Arguments for the reader of tables."""
        self._refuse("libsvm text", "zero_based", "features")
        names = ("label", "weight", "header", "separator", "categorical")
        return {name: getattr(self, name) for name in names}

    def refuse_for_data(self, what: str = "text and tables") -> None:
        """Raise if there are options of data files: a converted file, or a model, needs none."""
        self._refuse(what, "zero_based", "features", "label", "weight", "header", "separator",
                     "categorical", "float32")  # fmt: skip

    def _refuse(self, what: str, *names: str) -> None:
        for name in names:
            if getattr(self, name) != getattr(Options, name):
                raise BadInput(f"--{name.replace('_', '-')} is for {what}; this file is none")

    @property
    def intercept_scaling(self) -> float:
        """Height of the constant column behind the intercept; zero if there is none."""
        # A free intercept does not depend on it, but how well solvers converge does.
        return 1.0 if self.free_intercept else max(self.bias, 0.0)

    def objective(self, C: float) -> Objective:
        """What to minimise."""
        from certsvm.kernels.losses import loss_named
        from certsvm.problem.objective import Objective

        return Objective(C, loss_named(self.loss), not self.free_intercept)

    def settings(self, C: float, **more: Any) -> Settings:
        """How to train."""
        from certsvm.parallel import available_processors
        from certsvm.training.settings import Settings

        return Settings(
            self.objective(C), tol=self.tol, solver=self.solver, max_iter=self.max_iter,
            max_time=self.max_time, seed=self.seed, n_jobs=self.n_jobs or available_processors(),
            **more,
        )  # fmt: skip


def shared(*options: Decorator) -> Decorator:
    """Declare options, and pass those that are fields of ``Options`` to the command as one."""
    names = {field.name for field in dataclasses.fields(Options)}

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_options(*context: Any, **given: Any) -> Any:
            own = {name: value for name, value in given.items() if name not in names}
            passed = Options(**{name: given[name] for name in given.keys() & names})
            return command(*context, passed, **own)

        made: Command = with_options
        for option in reversed(options):
            made = option(made)
        return made

    return decorate


def _ascending(
    context: click.Context, parameter: click.Parameter, value: tuple[float, float]
) -> tuple[float, float]:
    if not value[0] < value[1]:
        raise click.BadParameter("the first must be less than the second", context, parameter)
    return value


def file_argument(name: str, *, required: bool = True, stdin: bool = True) -> Decorator:
    """A file that exists, or "-"."""
    kind = click.Path(exists=True, dir_okay=False, allow_dash=stdin)
    return click.argument(name, type=kind, required=required)


OUTPUT_FILE = click.Path(dir_okay=False)
JSON = click.option("--json", "as_json", is_flag=True,
                    help="Put the result on standard output as JSON.")  # fmt: skip
QUIET = click.option("-q", "--quiet", is_flag=True, help="Show no progress and no summary.")
IGNORE = click.option(
    "--ignore", multiple=True, metavar="NAME",
    help="A column of a table, or of a file converted from one, to leave out (repeatable). Other "
         "columns that the model does not use are an error.",
)  # fmt: skip
DATA = (
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
    click.option("--separator", callback=_separator, metavar="CHARACTER",
                 help='Between values of CSV: ";", "tab" or another; by default comma, tab or '
                      "semicolon, whichever the first line has most of."),
)  # fmt: skip
TRAINING_DATA = (
    *DATA,
    click.option("--categorical", is_flag=True,
                 help="Make columns of strings of a table one-hot: a column NAME=VALUE of zeros "
                      "and ones for each value. The model keeps them, so that other files are "
                      "encoded in the same way."),
)  # fmt: skip
STREAM = (
    click.option("--witness", is_flag=True,
                 help="Write MODEL.witness beside each model, from which `certsvm verify` "
                      "recomputes the dual bound."),
    click.option("--memory", callback=size, metavar="SIZE",
                 help="Memory that this process may use, such as 500M. Larger data are streamed "
                      "from disk in each pass (needs a file made by `certsvm convert`)."),
    click.option("--stream", is_flag=True,
                 help="Stream a converted file even if it fits in memory."),
)  # fmt: skip
AT_C = click.option("-c", "--C", "C", type=POSITIVE, default=1.0, show_default=True,
                    help="Weight of the loss against the penalty.")  # fmt: skip
RANGE = click.option("--range", "C_range", nargs=2, type=POSITIVE, default=(1e-3, 1e2),
                     show_default=True, metavar="LOW HIGH", callback=_ascending,
                     help="The lowest and the highest C.")  # fmt: skip
PROBLEM = (
    click.option("-e", "--tol", type=NOT_NEGATIVE, default=0.01, show_default=True, metavar="EPS",
                 help="Relative accuracy to be proved: J(w) <= (1 + EPS) J_opt. (Not liblinear's "
                      "-e, which says nothing of the objective.)"),
    click.option("--loss", type=click.Choice(["hinge", "squared_hinge"]), default="hinge",
                 show_default=True, help="The loss of a row."),
    click.option("-B", "--bias", type=FiniteFloat(), default=-1.0, metavar="HEIGHT",
                 help="Learn an intercept, as the weight of a constant column of this height; "
                      "by default there is none (in Python, LinearSVC has one of height 1)."),
    click.option("-R", "--free-intercept", is_flag=True,
                 help="With -B: leave the intercept out of the penalty. The optimum does then "
                      "not depend on the height."),
    click.option("--max-iter", type=click.IntRange(min=1), default=1000, show_default=True,
                 help="Limit on passes over the data, for each class of each fit."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
                 help="Seed of the random orders, and of folds. Results depend on it and on the "
                      "number of threads only."),
)  # fmt: skip
FIT = (
    *PROBLEM,
    click.option("--class-weight", "weights", multiple=True, metavar="LABEL=W",
                 help='Multiply the weights of a class; "balanced" gives all classes the same '
                      "total weight."),
    click.option("--solver", default="auto", show_default=True, metavar="NAME",
                 help="auto, working-set, newton, dcd, block-dcd, sgd-s, ... (certsvm compare runs "
                      "several)."),
    click.option("--max-time", type=NOT_NEGATIVE, metavar="SECONDS",
                 help="Limit in seconds, for each class of each fit; for the whole search of "
                      "`certsvm select`."),
    click.option("--n-jobs", type=click.IntRange(min=1),
                 help="Threads; by default one per processor."),
)  # fmt: skip
