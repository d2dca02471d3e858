"""Training where the tensors are, on a GPU or not (extra ``certsvm[torch]``)."""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ImportError("tensors and device= need PyTorch: pip install 'certsvm[torch]'")

from certsvm.torch.newton import TensorNewton
from certsvm.torch.problems import TensorProblem
from certsvm.torch.rows import TensorRows
from certsvm.torch.source import TensorSource

__all__ = ["TensorNewton", "TensorProblem", "TensorRows", "TensorSource"]
