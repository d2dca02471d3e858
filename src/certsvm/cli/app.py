"""The commands by name, their exit codes, and how they report errors."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from importlib import import_module
from typing import Any

import click

from certsvm._version import __version__
from certsvm.certificates.certificate import printable
from certsvm.cli import BAD_INPUT, INTERRUPTED, PIPE_CLOSED, say

# Address space that the libraries take before there are any data, and the part of it that they
# write to, as ``ulimit`` limits them.
_LEAST_ADDRESS_SPACE = {"-v": 1_200_000_000, "-d": 300_000_000}

# The module of commands/ and the help of each command, the most important ones first.
_COMMANDS = {
    "train": ("train", "Train a model and prove how good it is."),
    "path": ("train", "Train for every C in a range, with a proof for each."),
    "select": ("train", "Choose C by cross-validation, with a proof over a range."),
    "predict": ("models", "Predict labels with a model."),
    "evaluate": ("models", "Measure how well a model predicts the labels of a file."),
    "report": ("models", "Write a page about a model, to be opened in a browser."),
    "verify": ("models", "Recompute a model's certificate from the data."),
    "bound": ("models", "Prove how close to the optimum any model is."),
    "scale": ("data", "Scale the columns of a file, and others in the same way."),
    "convert": ("data", "Convert text or tables to a file to train from in bounded memory."),
    "compare": ("train", "Run several solvers on the same data."),
    "info": ("models", "Describe a model or a data file."),
    "export": ("models", "Write a model as liblinear's text."),
    "import": ("models", "Read a model that liblinear wrote."),
    "compile": ("data", "Compile the kernels, so that no command has to."),
    "demo": ("data", "Train, verify and compare on generated data."),
}


class _Failed(click.ClickException):
    exit_code = BAD_INPUT


class Commands(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, the most important ones first."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command with this name."""
        if name not in _COMMANDS:
            return None
        module = import_module(f"certsvm.cli.commands.{_COMMANDS[name][0]}")
        return getattr(module, f"{name}_command")  # type: ignore[no-any-return]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in --help, which imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Turn weights of classes as in liblinear, ``-w1 5``, into ``-w 1=5``."""
        rest, translated = iter(args), []
        for word in rest:
            weight = re.fullmatch(r"-w(-?[0-9.]+)", word)
            translated += ["-w", f"{weight[1]}={next(rest, '')}"] if weight else [word]
        return super().parse_args(ctx, translated)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; foreseeable errors become a message and an exit code."""
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
        # As an error, a warning would lose the result; here it is a message in any case.
        warnings.simplefilter("default", UserWarning)
        with contextlib.suppress(AttributeError, ValueError):
            # Names of files that are no text go through, byte by byte.
            sys.stdout.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
        try:
            _require_address_space()
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:
            # The reader of our output closed it; shells report that as 141.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(PIPE_CLOSED) from None
        except (ValueError, OSError, ImportError, MemoryError) as error:
            reason = str(error) or "out of memory: certsvm convert data, and train with --memory"
            if isinstance(error, OSError) and error.filename and error.strerror:
                reason = f"{error.filename}: {error.strerror}"
            if isinstance(error, ImportError):
                reason += " (pip install 'certsvm[cli,dask,torch]' has all packages)"
            raise _Failed(printable(reason, keep="\n")) from error


def _require_address_space() -> None:
    """Raise if the libraries could not be loaded; OpenBLAS would try again for ever."""
    from certsvm.resources import limits_of_process

    for option, left in limits_of_process().items():
        if left < (least := _LEAST_ADDRESS_SPACE[option]):
            raise MemoryError(f"ulimit {option} leaves less than {least / 1e6:.0f} MB of memory")
        # OpenBLAS reserves address space for each of its threads, of which training uses one.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="certsvm")
def app() -> None:
    """Linear SVMs that prove how close to the optimum they are.

    \b
    certsvm train heart_scale                     train, write heart_scale.model
    certsvm predict heart_scale.model test.txt    a label for each line of the file
    certsvm verify heart_scale.model heart_scale  recompute the proof from the data

    Exit codes: 0 success, and the target is proved; 1 refuted (verify); 2 bad usage or input; 3
    stopped before the target was proved (the model is written, with its gap), or half confirmed
    (verify); 4 undecided (verify); 130 interrupted before there was a model.
    """  # noqa: D301
