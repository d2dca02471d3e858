"""certsvm compare."""

from __future__ import annotations

import click

from certsvm.cli import options as o
from certsvm.cli.app import BadInput, facts
from certsvm.cli.inputs import load, name_of
from certsvm.cli.interrupts import stoppable
from certsvm.cli.outputs import require_outputs
from certsvm.cli.progress import training_progress
from certsvm.cli.sources import known_label


@o.command(
    "FILE",
    click.option("--solvers", metavar="A,B,...",
                 help="Names of the solvers; by default those of auto,dcd,ocas,sgd-m that minimise "
                      "this objective."),
    click.option("--positive", metavar="LABEL",
                 help="The class against all others, if FILE has more than two."),
    "C", *o.PROBLEM,
    click.option("--max-time", type=o.NOT_NEGATIVE, default=60.0, show_default=True,
                 metavar="SECONDS", help="Limit for each solver."),
    *o.TRAINING_DATA,
    click.option("--plot", type=o.OUTPUT_FILE, metavar="PNG", help="Plot accuracy against time."),
    *o.OUTPUT,
)  # fmt: skip
def compare_command(
    options: o.Options, file: str, solvers: str | None, positive: str | None, plot: str | None
) -> None:
    """Run several solvers on FILE, with two classes, or with one against all others.

    Prints a table. All accuracies are relative to the best lower bound of all solvers.

    \b
    certsvm compare a9a --solvers auto,newton,dcd,sgd-s,pegasos -c 1
    certsvm compare digits.csv --positive 7
    """  # noqa: D301
    import numpy as np

    from certsvm.files.model import listing
    from certsvm.fitting.comparison import compare

    require_outputs([file], picture=plot)
    (X, y, weights), _ = load(file, options)
    classes = np.unique(y)
    if positive is not None:
        y = np.asarray(y == known_label(positive, classes, f"--positive {positive}"))
    elif classes.size > 2:
        names = listing(classes.tolist())
        raise BadInput(f"{name_of(file)} has {classes.size} classes ({names}): say --positive ONE")
    tol = options.settings(options.C).tol
    with stoppable() as stop, training_progress(quiet=options.silent) as observer:
        result = compare(
            X, y, solvers=solvers and [name.strip() for name in solvers.split(",")],
            fit_intercept=options.bias > 0, intercept_scaling=options.intercept_scaling or 1.0,
            penalize_intercept=not options.free_intercept, sample_weight=weights,
            random_state=options.seed, observers=[observer], stop=stop, tol=tol,
            **facts(options, "C loss max_iter max_time"),
        )  # fmt: skip
        if plot is not None:
            result.plot(plot)
    options.answer(facts(result, "table dual primal"), result)
