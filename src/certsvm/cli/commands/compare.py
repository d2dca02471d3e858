"""certsvm compare."""

from __future__ import annotations

import click

from certsvm.cli.app import put_json
from certsvm.cli.inputs import load, require_other_file
from certsvm.cli.options import (
    DataOptions,
    FiniteFloat,
    as_json_option,
    data_options,
    problem_options,
)
from certsvm.cli.progress import training_progress


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--solvers",
    default="auto,dcd,ocas,sgd-m",
    show_default=True,
    metavar="A,B,...",
    help="Names of the solvers.",
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
@click.option(
    "--plot",
    type=click.Path(dir_okay=False),
    metavar="PNG",
    help="Plot accuracy against time.",
)
@as_json_option
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def command(
    file: str, solvers: str, C: float, tol: float, bias: float, max_iter: int, max_time: float,
    seed: int, options: DataOptions, plot: str | None, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Run several solvers on FILE, which has two classes, and print a table.

    All accuracies are relative to the best lower bound of all solvers.

    \b
    certsvm compare a9a --solvers auto,newton,dcd,sgd-s,pegasos -c 1
    """  # noqa: D301
    from certsvm.fitting.comparison import compare

    if plot is not None:
        require_other_file(plot, file)
        import matplotlib  # noqa: F401  missing packages are found before training
    data = load(file, options)
    with training_progress(tol, max_time, 1, quiet=quiet or as_json) as observer:
        result = compare(
            data.X, data.y, solvers=[name.strip() for name in solvers.split(",")], C=C, tol=tol,
            fit_intercept=bias > 0, intercept_scaling=bias if bias > 0 else 1.0,
            sample_weight=data.weights, max_iter=max_iter, max_time=max_time, random_state=seed,
            observer=observer,
        )  # fmt: skip
    if plot is not None:
        result.plot(plot)
    if as_json:
        put_json({"table": result.table, "dual": result.dual, "primal": result.primal})
    else:
        click.echo(str(result))
