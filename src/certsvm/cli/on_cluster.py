"""`certsvm train --dask`: the same training, on a Dask cluster."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from certsvm.cli.app import BadInput

if TYPE_CHECKING:
    from certsvm.fitting.fit import CallbackOf, Fit, Settings


def fit_on_cluster(
    path: str,
    settings: Settings,
    weights: tuple[str, ...],
    address: str,
    deadline: float,
    callbacks: CallbackOf,
) -> Fit:
    """Train on a block file, or on a folder of them, that every worker sees."""
    try:
        from certsvm.dask import CertificateRefutedError, ClusterLostError, LinearSVC
        from certsvm.dask.blocks import loading
    except ImportError as error:
        raise BadInput(str(error)) from None
    from certsvm.fitting.fit import Fit
    from certsvm.models import Model

    with _client(address, deadline) as client:
        clf = LinearSVC(
            settings.C,
            tol=settings.tol,
            solver=settings.solver,
            fit_intercept=settings.intercept_scaling > 0,
            intercept_scaling=settings.intercept_scaling or 1.0,
            class_weight=_class_weight(weights),
            max_iter=settings.max_iter,
            max_time=settings.max_time,
            random_state=settings.seed,
            client=client,
            deadline=deadline,
        )
        with warnings.catch_warnings():
            # The exit code and the summary say it.
            warnings.simplefilter("ignore")
            try:
                results = clf.fit_results(path, callbacks)
            except ClusterLostError as error:
                raise BadInput(
                    f"the cluster is lost, before all classes had a proof: {error}"
                ) from None
            except CertificateRefutedError as error:
                raise BadInput(str(error)) from None
        model = Model.from_estimator(clf)
        parameters = {**model.parameters, "zero_based": loading(path, None, None, 0.0).zero_based}
        return Fit(replace(model, parameters=parameters), results)


@contextmanager
def _client(address: str, deadline: float) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    kind, _, number = address.partition(":")
    if kind == "local":
        if not (number.isdigit() and int(number) > 0):
            raise BadInput(f"--dask {address}: write local:N, with N processes")
        with (
            LocalCluster(
                n_workers=int(number), threads_per_worker=1, dashboard_address=None, silence_logs=50
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=deadline)
    except (OSError, ValueError) as error:
        raise BadInput(f"--dask {address}: no scheduler answers there ({error})") from None
    with client:
        yield client


def _class_weight(weights: tuple[str, ...]) -> dict[Any, float] | str | None:
    """What the options say; a label is a number if it looks like one."""
    if not weights:
        return None
    if "balanced" in weights:
        if len(weights) > 1:
            raise BadInput("--class-weight balanced does not go with weights of single classes")
        return "balanced"
    factors: dict[Any, float] = {}
    for text in weights:
        name, _, factor = text.rpartition("=")
        try:
            factors[_label(name)] = float(factor)
        except ValueError:
            raise BadInput(f"--class-weight {text}: write LABEL=W, such as 1=5") from None
    return factors


def _label(name: str) -> Any:
    try:
        return float(name)
    except ValueError:
        return name
