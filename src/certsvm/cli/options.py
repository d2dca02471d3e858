"""The options of all commands: each is a field of ``Options``, with its default and help.

A command names those that it takes, as in ``@command("C", *FIT)``, and gets them as one object.
"""

from __future__ import annotations

import csv
import functools
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from certsvm.certificates.certificate import COARSE_TOL, DEFAULT_TOL
from certsvm.cli.progress import watch_compilation
from certsvm.files.memory import parse_size

Command = Callable[..., Any]


class FiniteFloat(click.FloatRange):
    """A number in a range; NaN and infinity are in none."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Parse the value of an option."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


POSITIVE, NOT_NEGATIVE, COUNT = FiniteFloat(0, min_open=True), FiniteFloat(0), click.IntRange(1)
SEVERAL = click.IntRange(2)
_TABS = {"tab": "\t", "\\t": "\t"}
_LOSSES = {"1": "squared_hinge", "2": "squared_hinge", "3": "hinge"}


def _size(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    return None if text is None else parse_size(text)


def _option(*texts: str, default: Any = None, **attributes: Any) -> Any:
    """A field with this default, and the option of click that sets it: its names, and its help."""
    *names, attributes["help"] = texts
    return field(default=default, metadata=attributes | {"names": names})


_name = functools.partial(_option, metavar="NAME")
_count = functools.partial(_option, metavar="N", type=COUNT)
_flag = functools.partial(_option, default=False, is_flag=True)
_columns = functools.partial(
    _option, default=(), metavar="NAME,...", multiple=True,
    # Names that contain commas are between quotes.
    callback=lambda context, parameter, given: tuple(
        itertools.chain(*csv.reader(given, skipinitialspace=True))
    ),
)  # fmt: skip


# fmt: off
@dataclass(frozen=True)
class Options:
    """What the options say; those that a command does not take have their defaults."""

    # How to read a data file.
    zero_based: bool | None = _option("--zero-based/--one-based",
                                      "Where indices in text begin; detected by default.")
    n_features: int | None = _count("--features", "Columns of libsvm text; by default as found.")
    float32: bool = _flag("--float32", "Keep values in single precision.")
    label: str | None = _name("--label", "--labels", 'Column of labels; by default "label" or the '
                              "last. Of embeddings, also a file .npy of labels.")
    embeddings: str | None = _name("--embeddings", "Which tensor or column of lists holds them.")
    weight: str | None = _name("--weight", "Column of weights of a table.")
    header: bool | None = _option("--header/--no-header",
                                  "Whether CSV begins with a line of names, as by default.")
    separator: str | None = _option("--separator", 'Of CSV, such as ";" or tab; else detected.',
                                    callback=lambda c, p, text: _TABS.get(text, text))
    categorical: bool = _flag("--categorical", "Make columns of strings of a table one-hot: a "
                              "column NAME=VALUE of zeros and ones for each value.")
    drop: tuple[str, ...] = _columns("--drop", "Columns to leave out, quoted as in CSV.")
    columns: tuple[str, ...] = _columns("--columns", "Columns to train on; by default all others.")
    ignore: tuple[str, ...] = _columns("--ignore", "Columns of a table, or of a file converted "
                                       "from one, to leave out.")
    # What to minimise, and how accurately.
    C: float = _option("-c", "--C", "Weight of the loss.", default=1.0, type=POSITIVE)
    C_range: tuple[float, float] = _option("--range", "The lowest and the highest C.", nargs=2,
                                           default=(1e-3, 1e2), type=POSITIVE, metavar="LOW HIGH")
    tol: float | None = _option("-e", "--tol", "Relative accuracy to be proved: J(w) <= (1 + EPS) "
                                f"J_opt; by default {DEFAULT_TOL:g}, and {COARSE_TOL:g} for "
                                "streams, clusters and ranges of C. (Not liblinear's -e.)",
                                type=NOT_NEGATIVE, metavar="EPS")
    loss: str = _name("-s", "--loss", "hinge (liblinear's 3) or squared_hinge (its 1 and 2).",
                      type=click.Choice(["hinge", "squared_hinge", *_LOSSES]), default="hinge",
                      callback=lambda c, p, name: _LOSSES.get(name, name))
    bias: float = _option("-B", "--bias", "Learn an intercept, as the weight of a constant column "
                          "of this height; by default there is none (LinearSVC has one of height "
                          "1).", default=-1.0, type=FiniteFloat(min=-1), metavar="HEIGHT")
    free_intercept: bool = _flag("-R", "--free-intercept", "Leave it out of the penalty.")
    weights: tuple[str, ...] = _option("-w", "--class-weight", "Multiply the weights of a class "
                                       "(repeatable); balanced gives all classes the same total.",
                                       default=(), multiple=True, metavar="LABEL=W")
    positive: str | None = _option("--positive", "The class against all others.", metavar="LABEL")
    certify: float | None = _option("--certify", "Prove that no C in the range has an error lower "
                                    "by more than EPS in cross-validation.", metavar="EPS",
                                    type=FiniteFloat(min=0, min_open=True, max=1))
    # How.
    solver: str = _name("--solver", "auto, newton, dcd, ... (see compare).", default="auto")
    solvers: str | None = _option("--solvers", "By default those of auto,dcd,ocas,sgd-m that "
                                  "minimise this objective.", metavar="A,B,...")
    max_iter: int = _count("--max-iter", "Limit on passes, for each class and fit.", default=1000)
    max_time: float | None = _option("--max-time", "Limit for each class of each fit; for the "
                                     "whole `select`.", type=NOT_NEGATIVE, metavar="SECONDS")
    max_fits: int = _option("--max-fits", "Limit on values of C.", default=200, type=SEVERAL)
    values: int | None = _option("--values", "Values of C to fit first; by default 20, or for a "
                                 "proof powers of ten.", type=SEVERAL, metavar="N")
    folds: int | None = _option("-v", "--folds", "Folds of cross-validation, by default 5. `train` "
                                "then writes no model.", type=SEVERAL, metavar="N")
    find_C: bool = _flag("-C", "--find-C", "Write no model, but print the C from 2^-10 to 2^10 of "
                         "the best accuracy in cross-validation.")
    seed: int = _option("--seed", "Of orders, and folds.", default=0, type=click.IntRange(0))
    device: str | None = _option("--device", "Train there with PyTorch, all classes at once, on "
                                 "rows without zeros.", type=click.Choice(["cpu", "cuda"]))
    n_jobs: int | None = _count("--n-jobs", "Threads; by default one per processor.")
    exact: bool = _flag("--exact", "Compute with integers of any length: slower, never undecided.")
    memory: int | None = _option("--memory", "Memory that this process may use, such as 500M: "
                                 "larger converted files are streamed from disk in each pass.",
                                 callback=_size, metavar="SIZE")
    stream: bool = _flag("--stream", "Stream a converted file even if it fits in memory.")
    checkpoint: str | None = _option("--checkpoint", "Save the state of training there, and resume "
                                     "from it.", type=click.Path(file_okay=False), metavar="DIR")
    checkpoint_every: float = _option("--checkpoint-every", "Least time between checkpoints.",
                                      default=10.0, type=NOT_NEGATIVE, metavar="SECONDS")
    cluster: str | None = _option("--dask", "Train a converted FILE, or a folder of them, on this "
                                  "scheduler, or on local:N processes.", metavar="ADDRESS")
    deadline: float = _option("--deadline", "A cluster that ends no task for so long is lost.",
                              default=60.0, type=POSITIVE, metavar="SECONDS")
    # What to write.
    out: str | None = _option("-o", "--output", "Where to write, instead of the default; of "
                                 "`path` a folder.")
    at: tuple[float, ...] = _option("--at", "Also write the model at this C, interpolated and "
                                    "certified (repeatable).", default=(), multiple=True,
                                    type=POSITIVE, metavar="C")
    witness: bool = _flag("--witness/--no-witness", "Write MODEL.witness, by which `verify` "
                          "recomputes L: up to four bytes for each row and class.")
    plot: str | None = _option("--plot", "Draw the result (png, svg, pdf).", metavar="PICTURE")
    scores: bool = _flag("--scores", "Print scores, too: of the second class, or of each class.")
    block_size: int | None = _option("--block-size", "Of blocks, two of which training holds at "
                                     "once; by default up to 16M.", callback=_size, metavar="SIZE")
    keep_order: bool = _flag("--keep-order", "Do not shuffle, though training needs random order.")
    standardize: bool = _flag("--standardize", "To deviation 1; if dense, also to mean 0.")
    save: str | None = _option("-s", "--save", "Keep the numbers there.", metavar="SCALING")
    restore: str | None = _option("-r", "--restore", "Scale as this file of --save says.",
                                  metavar="SCALING", type=click.Path(exists=True, dir_okay=False))
    # What to print.
    as_json: bool = _flag("--json", "Put the result on standard output as JSON.")
    quiet: bool = _flag("-q", "--quiet", "Show no progress and no summary.")

    # fmt: on
    @property
    def silent(self) -> bool:
        """Whether to show no progress."""
        return self.quiet or self.as_json

    @property
    def dtype(self) -> str:
        """Type of the values."""
        return "float32" if self.float32 else "float64"

    def answer(self, result: Mapping[str, Any], text: object, code: int = 0) -> NoReturn:
        """End the command: print the result as JSON, if asked to, or as text."""
        if self.as_json:
            # JSON has no infinities and no NaN: they become null.
            finite = json.loads(json.dumps(result), parse_constant=lambda name: None)
            click.echo(json.dumps(finite))
        elif not self.quiet:
            click.echo(str(text))
        raise SystemExit(code)

    def reading(self, kind: str) -> dict[str, Any]:
        """Arguments for the reader of "text", a "table" or "embeddings"; others take none.

        Raises if there are options for other kinds of files.
        """
        name, arguments, others = _KINDS[kind]
        for option in {*TRAINING_DATA, "ignore"}.difference(arguments, others):
            if getattr(self, option) != getattr(Options, option):
                raise ValueError(f"{_FIELDS[option]['names'][0]} does not apply to {name}")
        given = {option: getattr(self, option) for option in arguments}
        if kind == "table":
            given |= {"ignore": given.pop("drop"), "columns": self.columns or None}
        return given

    @property
    def intercept_scaling(self) -> float:
        """Height of the constant column behind the intercept; zero if there is none."""
        # A free intercept does not depend on it, but how well solvers converge does.
        return 1.0 if self.free_intercept else max(self.bias, 0.0)


_FIELDS = {item.name: item.metadata for item in fields(Options)}
_TEXT, _EMBEDDINGS = ("zero_based", "n_features"), ("label", "embeddings")
_TABLE = ("label", "weight", "header", "separator", "categorical", "drop", "columns")
# What files are called, and the options for them: arguments of their reader, and others.
_KINDS: dict[str, tuple[str, Sequence[str], Sequence[str]]] = {
    "text": ("libsvm text", _TEXT, ["float32"]),
    "table": ("tables", _TABLE, ["float32", "ignore"]),
    "embeddings": ("embeddings", _EMBEDDINGS, ["float32"]),
    "blocks": ("converted files", (), ["ignore"]),
    "model": ("models", (), ()),
}

# What several commands take.
DATA = (*_TEXT, "float32", *_EMBEDDINGS, "weight", "header", "separator")
TRAINING_DATA = (*DATA, "categorical", "drop", "columns")
PROBLEM = ("tol", "loss", "bias", "free_intercept", "max_iter", "seed")
FIT = (*PROBLEM, "weights", "solver", "max_time", "n_jobs")
STREAM = ("out", "witness", "memory", "stream")
OUTPUT = ("as_json", "quiet")
_ARGUMENTS: dict[str, click.Parameter] = {
    "MODEL": click.Argument(["model"], type=click.Path(True, dir_okay=False)),
    "FILE": click.Argument(["file"], type=click.Path(True, dir_okay=False, allow_dash=True)),
    "OUTPUT": click.Argument(["output"]),
}


def command(
    *parameters: str | click.Parameter, **defaults: Any
) -> Callable[[Command], click.Command]:
    """Declare a command by its parameters: names of options, and arguments.

    The command gets the values of options as one ``Options``, first. The keywords are defaults of
    options that are the command's own; they may be None.
    """

    def decorate(function: Command) -> click.Command:
        @functools.wraps(function)
        def called(**given: Any) -> Any:
            options = Options(**{name: given.pop(name) for name in given.keys() & _FIELDS.keys()})
            if "zero_based" in parameters:
                # Data are read and used by kernels.
                watch_compilation(quiet=options.silent)
            return function(options, **given)

        known = _ARGUMENTS | {name: _shared(name, defaults) for name in _FIELDS}
        made = [known[p] if isinstance(p, str) else p for p in parameters]
        return click.command(params=made)(called)

    return decorate


def _shared(name: str, defaults: Mapping[str, Any]) -> click.Option:
    attributes = dict(_FIELDS[name])
    default = attributes["default"] = defaults.get(name, getattr(Options, name))
    return click.Option([*attributes.pop("names"), name], show_default=bool(default), **attributes)


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
    given = [n for n in flags if context.get_parameter_source(n) is ParameterSource.COMMANDLINE]
    for name in given:
        for other in given:
            if other in excluded.get(name, ()):
                raise click.UsageError(f"{flags[other]} does not go with {flags[name]}")
        if needed.get(name, name) not in given:
            raise click.UsageError(f"{flags[name]} goes with {flags[needed[name]]} only")
