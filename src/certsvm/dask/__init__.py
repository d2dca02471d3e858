"""Training on a Dask cluster (extra ``certsvm[dask]``)."""

from importlib.util import find_spec

if find_spec("distributed") is None:
    raise ImportError("certsvm.dask needs Dask: pip install 'certsvm[dask]'")

from certsvm.dask.cluster import CertificateRefutedWarning, ClusterLostError
from certsvm.dask.cocoa import Cocoa
from certsvm.dask.estimator import LinearSVC
from certsvm.dask.source import ClusterSource

__all__ = [
    "CertificateRefutedWarning", "ClusterLostError", "ClusterSource", "Cocoa", "LinearSVC",
]  # fmt: skip
