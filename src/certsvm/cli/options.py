"""Options that several commands share: each is a field of ``Options``, with its default and help.

A command names those that it takes, as in ``@shared("C", *FIT)``, and gets them as one object.
"""

from __future__ import annotations

import csv
import functools
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from certsvm.certificates.certificate import COARSE_TOL, DEFAULT_TOL
from certsvm.cli.app import BadInput, without_infinities

if TYPE_CHECKING:
    from certsvm.training.settings import Settings

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


class FiniteFloat(click.FloatRange):
    """A number in a range; NaN and infinity are in none."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Parse the value of an option."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


# Types of options: also functions, whose errors click prints with the option's name.
POSITIVE, NOT_NEGATIVE, COUNT = FiniteFloat(0, min_open=True), FiniteFloat(0), click.IntRange(1)
OUTPUT_FILE = click.Path(dir_okay=False)
_LIBLINEAR_LOSSES = {"1": "squared_hinge", "2": "squared_hinge", "3": "hinge"}
_LOSSES = ("hinge", "squared_hinge", *_LIBLINEAR_LOSSES)


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
    return _LIBLINEAR_LOSSES.get(text, text)


def _separator(text: str) -> str:
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(text) != 1 or text in '\r\n"' or ord(text) > 127:
        raise click.BadParameter("write one character, or tab")
    return text


def _names(text: str) -> tuple[str, ...]:
    """Names with commas between them; those that contain commas are between quotes, as in CSV."""
    return tuple(next(csv.reader([text], skipinitialspace=True), ()))


def _option(*texts: str, default: Any = None, **attributes: Any) -> Any:
    """A field with this default, and the option of click that sets it: its names, and its help."""
    *names, attributes["help"] = texts
    attributes |= {"names": names, "default": default, "show_default": bool(default)}
    return field(default=default, metadata=attributes)


_name = functools.partial(_option, metavar="NAME")
_count = functools.partial(_option, metavar="N", type=COUNT)
_flag = functools.partial(_option, default=False, is_flag=True)
_columns = functools.partial(
    _option, default=(), metavar="NAME,...", multiple=True, type=_names,
    callback=lambda context, parameter, given: tuple(itertools.chain(*given)),
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """What the shared options say; those that a command does not take have their defaults."""

    # How to read a data file.
    zero_based: bool | None = _option(
        "--zero-based/--one-based", "Where indices in libsvm text begin; detected by default."
    )
    n_features: int | None = _count("--features", "Columns of libsvm text; by default as found.")
    float32: bool = _flag("--float32", "Keep values in single precision.")
    label: str | None = _name(
        "--label", "--labels", 'Column of labels; by default "label" or the last. Of embeddings, '
        "also a file .npy of labels.")  # fmt: skip
    embeddings: str | None = _name(
        "--embeddings", "The tensor (.safetensors) or the column of lists (Parquet) of embeddings; "
        "needed if there are several.")  # fmt: skip
    weight: str | None = _name("--weight", "Column of weights of a table.")
    header: bool | None = _option(
        "--header/--no-header",
        "Whether CSV begins with a line of names, as by default; columns are else f0, f1, ...",
    )
    separator: str | None = _option(
        "--separator", 'Between values of CSV: ";", "tab" or another; by default comma, tab or '
        "semicolon, whichever the first line has most of.",
        type=_separator, metavar="CHARACTER")  # fmt: skip
    categorical: bool = _flag(
        "--categorical", "Make columns of strings of a table one-hot: a column NAME=VALUE of zeros "
        "and ones for each value. The model encodes other files in the same way.")  # fmt: skip
    drop: tuple[str, ...] = _columns("--drop", "Columns to leave out, quoted as in CSV.")
    columns: tuple[str, ...] = _columns("--columns", "Columns to train on; by default all others.")
    ignore: tuple[str, ...] = _columns(
        "--ignore", "Columns of a table, or of a file converted from one, to leave out. Others "
        "that the model does not use are an error.")  # fmt: skip
    # What to minimise, and how accurately.
    C: float = _option("-c", "--C", "Weight of the loss.", default=1.0, type=POSITIVE)
    C_range: tuple[float, float] = _option(
        "--range", "The lowest and the highest C.", default=(1e-3, 1e2), nargs=2, type=POSITIVE,
        metavar="LOW HIGH")  # fmt: skip
    tol: float | None = _option(
        "-e", "--tol", "Relative accuracy to be proved: J(w) <= (1 + EPS) J_opt; by default "
        f"{DEFAULT_TOL:g}, and {COARSE_TOL:g} for streams, clusters and ranges of C. (Not "
        "liblinear's -e, which says nothing of the objective.)",
        type=NOT_NEGATIVE, metavar="EPS")  # fmt: skip
    loss: str = _name(
        "-s", "--loss", "The loss of a row: hinge (liblinear's 3) or squared_hinge (its 1 and 2).",
        default="hinge", type=loss)  # fmt: skip
    bias: float = _option(
        "-B", "--bias", "Learn an intercept, as the weight of a constant column of this height; by "
        "default there is none (in Python, LinearSVC has one of height 1).",
        default=-1.0, type=FiniteFloat(min=-1), metavar="HEIGHT")  # fmt: skip
    free_intercept: bool = _flag(
        "-R", "--free-intercept", "With -B: leave the intercept out of the penalty."
    )
    weights: tuple[str, ...] = _option(
        "-w", "--class-weight", "Multiply the weights of a class (repeatable); balanced gives all "
        "classes the same total.", default=(), multiple=True, metavar="LABEL=W")  # fmt: skip
    # How.
    solver: str = _name(
        "--solver", "auto, working-set, newton, dcd, block-dcd, ... (compare runs several).",
        default="auto")  # fmt: skip
    max_iter: int = _count("--max-iter", "Limit on passes, for each class and fit.", default=1000)
    max_time: float | None = _option(
        "--max-time", "Limit in seconds, for each class of each fit; for the whole `select`.",
        type=NOT_NEGATIVE, metavar="SECONDS")  # fmt: skip
    seed: int = _option("--seed", "Of orders, and folds.", default=0, type=click.IntRange(0))
    device: str | None = _option(
        "--device", "Train there with PyTorch, all classes at once: for embeddings and other rows "
        "without zeros. cuda is a GPU.", type=click.Choice(["cpu", "cuda"]))  # fmt: skip
    n_jobs: int | None = _count("--n-jobs", "Threads; by default one per processor.")
    witness: bool | None = _option(
        "--witness/--no-witness", "Write MODEL.witness, by which `verify` recomputes L: up to four "
        "bytes for each row and class.")  # fmt: skip
    memory: int | None = _option(
        "--memory", "Memory that this process may use, such as 500M. Larger data are streamed from "
        "disk in each pass (needs a file made by `certsvm convert`).",
        type=size, metavar="SIZE")  # fmt: skip
    stream: bool = _flag("--stream", "Stream a converted file even if it fits in memory.")
    # What to print.
    as_json: bool = _flag("--json", "Put the result on standard output as JSON.")
    quiet: bool = _flag("-q", "--quiet", "Show no progress and no summary.")

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

    def answer(self, told: Mapping[str, Any], text: object, code: int = 0) -> NoReturn:
        """End the command: print what is told as JSON, if asked to, or as text."""
        if self.as_json:
            click.echo(json.dumps(without_infinities(told), allow_nan=False))
        elif not self.quiet:
            click.echo(str(text))
        raise SystemExit(code)

    def reading(self, kind: str) -> dict[str, Any]:
        """Arguments for the reader of "text" or of a "table"; of other kinds there are none.

        Raises if there are options for other kinds of files.
        """
        names = _READING.get(kind, ())
        for name in {*_ALL, *_NOT_IN.get(kind, ())}.difference(names):
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
        from certsvm.problem.base import Objective
        from certsvm.resources import available_processors
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
_EMBEDDINGS = ("label", "embeddings")
_READING = {"text": _TEXT, "table": _TABLE, "embeddings": _EMBEDDINGS}
_ALL = {*_TEXT, *_TABLE, *_EMBEDDINGS}
_NOT_IN = {
    "text": ("ignore",), "embeddings": ("ignore",), "blocks": ("float32",), "model": ("float32",)
}  # fmt: skip
_KINDS = {
    "text": "libsvm text", "table": "tables", "blocks": "converted files", "model": "models",
    "embeddings": "embeddings",
}  # fmt: skip

# What several commands take.
DATA = (*_TEXT, "float32", *_EMBEDDINGS, "weight", "header", "separator")
TRAINING_DATA = (*DATA, "categorical", "drop", "columns")
PROBLEM = ("tol", "loss", "bias", "free_intercept", "max_iter", "seed")
FIT = (*PROBLEM, "weights", "solver", "max_time", "n_jobs")
STREAM = ("witness", "memory", "stream")
OUTPUT = ("as_json", "quiet")


_ARGUMENTS = {
    "MODEL": click.argument("model", type=click.Path(True, dir_okay=False)),
    "FILE": click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True)),
    "OUTPUT": click.argument("output", type=OUTPUT_FILE),
}


def command(
    *parameters: str | Decorator, cls: type[click.Command] = click.Command, **defaults: Any
) -> Callable[[Command], click.Command]:
    """Declare a command by its parameters, of which those that commands share are named.

    The command gets the values of shared options as one ``Options``, first. The keywords are
    defaults of shared options that are the command's own.
    """

    def decorate(function: Command) -> click.Command:
        @functools.wraps(function)
        def called(**given: Any) -> Any:
            options = Options(**{name: given.pop(name) for name in given.keys() & _FIELDS.keys()})
            return function(options, **given)

        made: Command = called
        for parameter in reversed(parameters):
            made = (_shared(parameter, defaults) if isinstance(parameter, str) else parameter)(made)
        return click.command(cls=cls)(made)

    return decorate


def _shared(name: str, defaults: Mapping[str, Any]) -> Decorator:
    if name in _ARGUMENTS:
        return _ARGUMENTS[name]
    attributes = dict(_FIELDS[name])
    attributes["default"] = defaults.get(name, attributes["default"])
    return click.option(*attributes.pop("names"), name, **attributes)


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
        str(p.name): max(p.opts, key=len) if isinstance(p, click.Option) else p.human_readable_name
        for p in context.command.params
    }
    source = {name: context.get_parameter_source(name) for name in flags}
    given = {name for name in flags if source[name] is ParameterSource.COMMANDLINE}
    for name in given & excluded.keys():
        for other in sorted(given.intersection(excluded[name])):
            raise click.UsageError(f"{flags[other]} does not go with {flags[name]}")
    for name in given & needed.keys():
        if needed[name] not in given:
            raise click.UsageError(f"{flags[name]} goes with {flags[needed[name]]} only")
