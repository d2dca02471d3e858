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


POSITIVE, NOT_NEGATIVE = FiniteFloat(min=0, min_open=True), FiniteFloat(min=0)
OUTPUT_FILE = click.Path(dir_okay=False)
_LOSSES = {
    "hinge": "hinge", "squared_hinge": "squared_hinge",
    "1": "squared_hinge", "2": "squared_hinge", "3": "hinge",
}  # fmt: skip


# Types of options: functions whose errors click prints with the option's name.


def size(text: str) -> int:
    """A number of bytes, such as 500M."""
    from certsvm.files.memory import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def loss(text: str) -> str:
    """The name of a loss, which may be given by liblinear's number."""
    if text not in _LOSSES:
        raise click.BadParameter(f"{text!r} is not one of {', '.join(map(repr, _LOSSES))}")
    return _LOSSES[text]


def _separator(text: str) -> str:
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(text) != 1 or text in '\r\n"' or ord(text) > 127:
        raise click.BadParameter("write one character, or tab")
    return text


def _names(text: str) -> tuple[str, ...]:
    """Names with commas between them; those that contain commas are between quotes, as in CSV."""
    return tuple(next(csv.reader([text], skipinitialspace=True), ()))


def _names_of_all(context: Any, parameter: Any, given: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(name for names in given for name in names)


def _option(*names: str, default: Any = None, **attributes: Any) -> Any:
    """A field with this default, and the option of click that sets it."""
    attributes |= {"names": names, "default": default, "show_default": bool(default)}
    return field(default=default, metadata=attributes)


def _flag(*names: str, help: str) -> Any:
    return _option(*names, default=False, is_flag=True, help=help)


def _columns(name: str, help: str) -> Any:
    how = {"metavar": "NAME,...", "multiple": True, "type": _names, "callback": _names_of_all}
    return _option(name, default=(), help=help, **how)


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
        help="Whether CSV begins with a line of names, as it does by default; without one, columns "
             "are called f0, f1, ...")  # fmt: skip
    separator: str | None = _option(
        "--separator", type=_separator, metavar="CHARACTER",
        help='Between values of CSV: ";", "tab" or another; by default comma, tab or semicolon, '
             "whichever the first line has most of.")  # fmt: skip
    categorical: bool = _flag(
        "--categorical",
        help="Make columns of strings of a table one-hot: a column NAME=VALUE of zeros and ones "
             "for each value. The model encodes other files in the same way.")  # fmt: skip
    drop: tuple[str, ...] = _columns(
        "--drop", "Columns of a table to leave out (repeatable; in quotes, as in CSV, if a name "
                  "has commas).")  # fmt: skip
    columns: tuple[str, ...] = _columns(
        "--columns", "The columns of a table to train on; by default all others."
    )
    ignore: tuple[str, ...] = _columns(
        "--ignore", "Columns of a table, or of a file converted from one, to leave out "
                    "(repeatable). Others that the model does not use are an error.")  # fmt: skip
    # What to minimise, and how accurately.
    C: float = _option(
        "-c", "--C", default=1.0, type=POSITIVE, help="Weight of the loss against the penalty."
    )
    C_range: tuple[float, float] = _option(
        "--range", default=(1e-3, 1e2), nargs=2, type=POSITIVE, metavar="LOW HIGH",
        help="The lowest and the highest C.")  # fmt: skip
    tol: float | None = _option(
        "-e", "--tol", type=NOT_NEGATIVE, metavar="EPS",
        help="Relative accuracy to be proved: J(w) <= (1 + EPS) J_opt; by default "
             f"{DEFAULT_TOL:g}, and {COARSE_TOL:g} for streams, clusters and ranges of C. (Not "
             "liblinear's -e, which says nothing of the objective.)")  # fmt: skip
    loss: str = _option(
        "-s", "--loss", default="hinge", type=loss, metavar="NAME",
        help="The loss of a row, hinge or squared_hinge, also by liblinear's number: 3 is the "
             "hinge, 1 and 2 its square.")  # fmt: skip
    bias: float = _option(
        "-B", "--bias", default=-1.0, type=FiniteFloat(min=-1), metavar="HEIGHT",
        help="Learn an intercept, as the weight of a constant column of this height; by default "
             "there is none (in Python, LinearSVC has one of height 1).")  # fmt: skip
    free_intercept: bool = _flag(
        "-R", "--free-intercept", help="With -B: leave the intercept out of the penalty."
    )
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
    witness: bool = _flag(
        "--witness",
        help="Write MODEL.witness, from which `verify` recomputes the dual bound.")  # fmt: skip
    memory: int | None = _option(
        "--memory", type=size, metavar="SIZE",
        help="Memory that this process may use, such as 500M. Larger data are streamed from disk "
             "in each pass (needs a file made by `certsvm convert`).")  # fmt: skip
    stream: bool = _flag("--stream", help="Stream a converted file even if it fits in memory.")
    # What to print.
    as_json: bool = _flag("--json", help="Put the result on standard output as JSON.")
    quiet: bool = _flag("-q", "--quiet", help="Show no progress and no summary.")

    def __post_init__(self) -> None:
        if self.free_intercept and not self.bias > 0.0:
            raise click.UsageError("--free-intercept (-R) needs an intercept: -B 1")
        if not self.C_range[0] < self.C_range[1]:
            raise click.UsageError("--range: the first must be less than the second")

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
        names = {"text": _TEXT, "table": _TABLE}.get(kind, ())
        for name in {*_TEXT, *_TABLE, *_NOT_IN.get(kind, ())}.difference(names):
            if getattr(self, name) != getattr(Options, name):
                raise BadInput(f"{_FIELDS[name]['names'][0]} does not apply to {_KINDS[kind]}")
        given = {name: getattr(self, name) for name in names}
        if "drop" in given:
            given |= {"ignore": given.pop("drop"), "columns": self.columns or None}
        return given

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
_NOT_IN = {"text": ("ignore",), "blocks": ("float32",), "model": ("float32",)}
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
            options = Options(**{name: given.pop(name) for name in given.keys() & _FIELDS.keys()})
            return command(options, **given)

        made: Command = with_options
        for option in reversed(options):
            if isinstance(option, str):
                attributes = dict(_FIELDS[option])
                attributes["default"] = defaults.get(option, attributes["default"])
                option = click.option(*attributes.pop("names"), option, **attributes)
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
