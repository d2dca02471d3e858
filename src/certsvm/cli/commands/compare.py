"""certsvm compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from certsvm.certificates.certificate import tidy
from certsvm.cli.app import BadInput, put_json
from certsvm.cli.class_weights import known_label
from certsvm.cli.inputs import load, name_of
from certsvm.cli.options import (
    DataOptions,
    FiniteFloat,
    ObjectiveOptions,
    as_json_option,
    categorical_option,
    data_options,
    problem_options,
)
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import training_progress

if TYPE_CHECKING:
    from numpy.typing import NDArray


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--solvers",
    metavar="A,B,...",
    help="Names of the solvers; by default those of auto,dcd,ocas,sgd-m that minimise this "
    "objective.",
)
@click.option(
    "--positive",
    metavar="LABEL",
    help="Compare on this class against all others; needed if FILE has more than two.",
)
@problem_options
@click.option(
    "--max-time",
    type=FiniteFloat(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Limit for each solver.",
)
@data_options
@categorical_option
@click.option(
    "--plot",
    type=click.Path(dir_okay=False),
    metavar="PNG",
    help="Plot accuracy against time.",
)
@as_json_option
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def command(
    file: str, solvers: str | None, positive: str | None, C: float, tol: float,
    objective: ObjectiveOptions, max_iter: int, max_time: float, seed: int, options: DataOptions,
    plot: str | None, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Run several solvers on FILE, with two classes, or with one against all others.

    Prints a table. All accuracies are relative to the best lower bound of all solvers.

    \b
    certsvm compare a9a --solvers auto,newton,dcd,sgd-s,pegasos -c 1
    certsvm compare digits.csv --positive 7
    """  # noqa: D301
    from certsvm.fitting.comparison import compare

    names = None if solvers is None else [name.strip() for name in solvers.split(",")]
    if plot is not None:
        require_outputs([file], picture=plot)
        import matplotlib  # noqa: F401  missing packages are found before training
    data = load(file, options)
    y = _two_classes(data.y, positive, file)
    with training_progress(tol, max_time, 1, quiet=quiet or as_json) as observer:
        result = compare(
            data.X, y, solvers=names, C=C, tol=tol,
            fit_intercept=objective.bias > 0,
            intercept_scaling=objective.intercept_scaling or 1.0, loss=objective.loss,
            penalize_intercept=not objective.free_intercept,
            sample_weight=data.weights, max_iter=max_iter, max_time=max_time, random_state=seed,
            observers=[observer],
        )  # fmt: skip
    if plot is not None:
        result.plot(plot)
    if as_json:
        put_json({"table": result.table, "dual": result.dual, "primal": result.primal})
    else:
        click.echo(str(result))


def _two_classes(y: NDArray[Any], positive: str | None, file: str) -> NDArray[Any]:
    """The labels, or whether they are the class that was asked for."""
    import numpy as np

    classes = np.unique(y)
    if positive is not None:
        label = known_label(positive, classes, f"--positive {positive}")
        return np.asarray(y == label)
    if classes.size > 2:
        shown = ", ".join(map(tidy, classes[:10].tolist())) + (", ..." if classes.size > 10 else "")
        raise BadInput(
            f"{name_of(file)} has {classes.size} classes ({shown}). Solvers are compared on two: "
            f"choose one against all others, such as --positive {tidy(classes[0])}"
        )
    return y
