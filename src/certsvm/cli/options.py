"""Options that several commands share: each is a field of ``Options``, with its default and help.

A command names those that it takes, as in ``@shared("C", *FIT)``, and gets them as one object.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from certsvm.certificates.certificate import COARSE_TOL, DEFAULT_TOL
from certsvm.cli.app import BadInput

if TYPE_CHECKING:
    from certsvm.training.settings import Settings

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


class FiniteFloat(click.FloatRange):
    """A number in a range; NaN and infinity are in none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse the value of an option."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number

    def _describe_range(self) -> str:
        # click would print "x<=None" for no limits.
        return "" if self.min is None and self.max is None else super()._describe_range()


def size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Parse an option such as 500M as a number of bytes."""
    from certsvm.files.memory import parse_size

    try:
        return None if value is None else parse_size(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


POSITIVE, NOT_NEGATIVE = FiniteFloat(min=0, min_open=True), FiniteFloat(min=0)
OUTPUT_FILE = click.Path(dir_okay=False)
_LIBLINEAR_LOSSES = {"1": "squared_hinge", "2": "squared_hinge", "3": "hinge"}
LOSSES = click.Choice(["hinge", "squared_hinge", *_LIBLINEAR_LOSSES])


def loss(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The name of a loss, which may be given by liblinear's number."""
    return _LIBLINEAR_LOSSES.get(str(value), value)


def _separator(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    value = {"tab": "\t", "\\t": "\t"}.get(value or "", value)
    if value is not None and (len(value) != 1 or value in '\r\n"' or ord(value) > 127):
        raise click.BadParameter("write one character, or tab", context, parameter)
    return value


def _names(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    # Names with commas are between quotes, as in CSV.
    return None if value is None else tuple(next(csv.reader([value], skipinitialspace=True), ()))


def _ascending(
    context: click.Context, parameter: click.Parameter, value: tuple[float, float]
) -> tuple[float, float]:
    if not value[0] < value[1]:
        raise click.BadParameter("the first must be less than the second", context, parameter)
    return value


def _option(*names: str, default: Any = None, **attributes: Any) -> Any:
    """A field with this default, and the option of click that sets it."""
    attributes |= {"names": names, "default": default, "show_default": bool(default)}
    return field(default=default, metadata=attributes)


def _flag(*names: str, help: str) -> Any:
    return _option(*names, default=False, is_flag=True, help=help)


@dataclass(frozen=True)
class Options:
    """What the shared options say; those that a command does not take have their defaults."""

    # How to read a data file.
    zero_based: bool | None = _option(
        "--zero-based/--one-based",
        help="Whether indices in libsvm text count from 0 or 1; detected by default.",
    )
    n_features: int | None = _option(
        "--features", type=click.IntRange(min=1), metavar="N",
        help="Number of columns of libsvm text; by default the largest index.")  # fmt: skip
    float32: bool = _flag("--float32", help="Keep values in single precision.")
    label: str | None = _option(
        "--label", metavar="NAME",
        help='Column of labels of a table; by default "label" or the last.')  # fmt: skip
    weight: str | None = _option("--weight", metavar="NAME", help="Column of weights of a table.")
    header: bool | None = _option(
        "--header/--no-header",
        help="Whether CSV begins with a line of names; without one, columns are called f0, f1, ... "
             "By default it does, and numbers there are refused.")  # fmt: skip
    separator: str | None = _option(
        "--separator", callback=_separator, metavar="CHARACTER",
        help='Between values of CSV: ";", "tab" or another; by default comma, tab or semicolon, '
             "whichever the first line has most of.")  # fmt: skip
    categorical: bool = _flag(
        "--categorical",
        help="Make columns of strings of a table one-hot: a column NAME=VALUE of zeros and ones "
             "for each value. The model encodes other files in the same way.")  # fmt: skip
    drop: tuple[str, ...] = _option(
        "--drop", default=(), multiple=True, metavar="NAME",
        help="A column of a table to leave out (repeatable).")  # fmt: skip
    columns: tuple[str, ...] | None = _option(
        "--columns", callback=_names, metavar="NAME,NAME,...",
        help="The columns of a table to train on; by default all others.")  # fmt: skip
    ignore: tuple[str, ...] = _option(
        "--ignore", default=(), multiple=True, metavar="NAME",
        help="A column of a table, or of a file converted from one, to leave out (repeatable). "
             "Other columns that the model does not use are an error.")  # fmt: skip
    # What to minimise, and how accurately.
    C: float = _option(
        "-c", "--C", default=1.0, type=POSITIVE,
        help="Weight of the loss against the penalty.")  # fmt: skip
    C_range: tuple[float, float] = _option(
        "--range", default=(1e-3, 1e2), nargs=2, type=POSITIVE,
        metavar="LOW HIGH", callback=_ascending, help="The lowest and the highest C.")  # fmt: skip
    tol: float | None = _option(
        "-e", "--tol", type=NOT_NEGATIVE, metavar="EPS",
        help="Relative accuracy to be proved: J(w) <= (1 + EPS) J_opt; by default "
             f"{DEFAULT_TOL:g}, and {COARSE_TOL:g} for streams, clusters and ranges of C. (Not "
             "liblinear's -e, which says nothing of the objective.)")  # fmt: skip
    loss: str = _option(
        "-s", "--loss", default="hinge", callback=loss, type=LOSSES,
        help="The loss of a row, also by liblinear's number: 3 is the hinge, 1 and 2 its square. "
             "liblinear's algorithms for 1 and 2 have one optimum (see --solver).")  # fmt: skip
    bias: float = _option(
        "-B", "--bias", default=-1.0, type=FiniteFloat(), metavar="HEIGHT",
        help="Learn an intercept, as the weight of a constant column of this height; by default "
             "there is none (in Python, LinearSVC has one of height 1).")  # fmt: skip
    free_intercept: bool = _flag(
        "-R", "--free-intercept",
        help="With -B: leave the intercept out of the penalty.")  # fmt: skip
    weights: tuple[str, ...] = _option(
        "-w", "--class-weight", default=(), multiple=True, metavar="LABEL=W",
        help='Multiply the weights of a class; "balanced" gives them the same total.')  # fmt: skip
    # How.
    solver: str = _option(
        "--solver", default="auto", metavar="NAME",
        help="auto, working-set, newton, dcd, block-dcd, ... (compare runs several).")  # fmt: skip
    max_iter: int = _option(
        "--max-iter", default=1000, type=click.IntRange(min=1),
        help="Limit on passes over the data, for each class of each fit.")  # fmt: skip
    max_time: float | None = _option(
        "--max-time", type=NOT_NEGATIVE, metavar="SECONDS",
        help="Limit in seconds, for each class of each fit; for the whole `select`.")  # fmt: skip
    seed: int = _option(
        "--seed", default=0, type=click.IntRange(min=0),
        help="Seed of the random orders, and of folds.")  # fmt: skip
    n_jobs: int | None = _option(
        "--n-jobs", type=click.IntRange(min=1), help="Threads; by default one per processor."
    )
    witness: bool | None = _option(
        "--witness/--no-witness",
        help="Write MODEL.witness, from which `verify` recomputes the dual bound: up to four bytes "
             "for each row and class. By default where it costs no pass: from a stream, if `auto` "
             "or `block-dcd` ascends coordinates.")  # fmt: skip
    memory: int | None = _option(
        "--memory", callback=size, metavar="SIZE",
        help="Memory that this process may use, such as 500M. Larger data are streamed from disk "
             "in each pass (needs a file made by `certsvm convert`).")  # fmt: skip
    stream: bool = _flag("--stream", help="Stream a converted file even if it fits in memory.")
    # What to print.
    as_json: bool = _flag("--json", help="Put the result on standard output as JSON.")
    quiet: bool = _flag("-q", "--quiet", help="Show no progress and no summary.")

    def __post_init__(self) -> None:
        if self.free_intercept and not self.bias > 0.0:
            raise click.UsageError("--free-intercept (-R) needs an intercept: -B 1")

    @property
    def silent(self) -> bool:
        """Whether to show no progress."""
        return self.quiet or self.as_json

    @property
    def dtype(self) -> str:
        """Type of the values."""
        return "float32" if self.float32 else "float64"

    def reading(self, kind: str) -> dict[str, Any]:
        """Arguments for the reader of "text" or of a "table"; of other kinds there are none.

        Raises if there are options for other kinds of files.
        """
        names, refused = _READING.get(kind, ((), (*_TEXT, *_TABLE, "float32")))
        for name in refused:
            if getattr(self, name) != getattr(Options, name):
                raise BadInput(f"{_FIELDS[name]['names'][0]} does not apply to {_KINDS[kind]}")
        return {"ignore" if name == "drop" else name: getattr(self, name) for name in names}

    @property
    def intercept_scaling(self) -> float:
        """Height of the constant column behind the intercept; zero if there is none."""
        # A free intercept does not depend on it, but how well solvers converge does.
        return 1.0 if self.free_intercept else max(self.bias, 0.0)

    def settings(self, C: float, **more: Any) -> Settings:
        """How to train."""
        from certsvm.kernels.losses import loss_named
        from certsvm.parallel import available_processors
        from certsvm.problem.objective import Objective
        from certsvm.training.settings import Settings

        return Settings(
            Objective(C, loss_named(self.loss), not self.free_intercept),
            tol=DEFAULT_TOL if self.tol is None else self.tol, solver=self.solver,
            max_iter=self.max_iter, max_time=self.max_time, seed=self.seed,
            n_jobs=self.n_jobs or available_processors(), **more,
        )  # fmt: skip


_FIELDS = {item.name: item.metadata for item in fields(Options)}
_TEXT = ("zero_based", "n_features")
_TABLE = ("label", "weight", "header", "separator", "categorical", "drop", "columns")
_READING = {"text": (_TEXT, (*_TABLE, "ignore")), "table": (_TABLE, _TEXT)}
_KINDS = {
    "text": "libsvm text", "table": "tables", "blocks": "converted files", "model": "models"
}  # fmt: skip

# What several commands take.
DATA = ("zero_based", "n_features", "float32", "label", "weight", "header", "separator")
TRAINING_DATA = (*DATA, "categorical", "drop", "columns")
PROBLEM = ("tol", "loss", "bias", "free_intercept", "max_iter", "seed")
FIT = (*PROBLEM, "weights", "solver", "max_time", "n_jobs")
STREAM = ("witness", "memory", "stream")
OUTPUT = ("as_json", "quiet")


def shared(*options: str | Decorator, **defaults: Any) -> Decorator:
    """Declare options: shared ones by name, whose values the command gets as one object.

    The keywords are defaults of shared options that are the command's own.
    """

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_options(**given: Any) -> Any:
            own = {name: value for name, value in given.items() if name not in _FIELDS}
            options = Options(**{name: given[name] for name in given.keys() & _FIELDS.keys()})
            return command(options, **own)

        made: Command = with_options
        for option in reversed(options):
            if isinstance(option, str):
                attributes = dict(_FIELDS[option])
                attributes["default"] = defaults.get(option, attributes["default"])
                made = click.option(*attributes.pop("names"), option, **attributes)(made)
            else:
                made = option(made)
        return made

    return decorate


def file_argument(name: str, *, required: bool = True, stdin: bool = True) -> Decorator:
    """A file that exists, or "-"."""
    kind = click.Path(exists=True, dir_okay=False, allow_dash=stdin)
    return click.argument(name, type=kind, required=required)


def check_together(excluded: Mapping[str, Sequence[str]], needed: Mapping[str, str]) -> None:
    """Raise if there are options that others exclude, or without those that they need.

    Parameters
    ----------
    excluded : mapping
        The parameters that each parameter of the command does not go with.
    needed : mapping
        The parameter that each parameter needs.
    """
    context = click.get_current_context()
    flags = {
        p.name: p.human_readable_name if isinstance(p, click.Argument) else max(p.opts, key=len)
        for p in context.command.params
    }
    given = {
        name for name in flags
        if context.get_parameter_source(str(name)) is ParameterSource.COMMANDLINE
    }  # fmt: skip
    for name, others in excluded.items():
        if name in given and (wrong := given.intersection(others)):
            raise click.UsageError(f"{flags[min(wrong)]} does not go with {flags[name]}")
    for name, other in needed.items():
        if name in given and other not in given:
            raise click.UsageError(f"{flags[name]} goes with {flags[other]} only")
