"""How every compiled function of the package is compiled.

Three decisions live here and nowhere else.

* ``_nrt=False``: kernels allocate nothing, so they need no reference counts. With
  counting on, passing rows as a named tuple costs more than the row itself.
* ``fastmath={"contract"}``: fused multiply-add is welcome (it rounds once instead of
  twice); reordering is not, except where a function asks for it. Reordering lets LLVM
  turn sparse inner products into vector gathers, which are several times slower than
  the plain loop on processors with costly gathers. No option that
  assumes away NaN or infinity is ever used.
* ``no_cfunc_wrapper=True``: no kernel is passed to another as a value, and wrappers for that
  would be a tenth of the time that compilation takes.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.extending import overload

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"contract"},
    "_nrt": False,
    "no_cfunc_wrapper": True,
}
# Sums over contiguous memory gain from reordering (vector lanes) and lose nothing.
_REORDER: dict[str, Any] = _OPTIONS | {"fastmath": {"contract", "reassoc", "nsz"}}


def kernel(function: F) -> F:
    """Compile an entry point: cached on disk, callable without the GIL."""
    return _compile(function, _OPTIONS)


def reordering_kernel(function: F) -> F:
    """Compile an entry point whose sums may be reordered into vector lanes."""
    return _compile(function, _REORDER)


def _compile(function: F, options: dict[str, Any]) -> F:
    compiled: F
    try:
        compiled = njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        # No folder to cache in can be written (a container without a home, say): compile
        # in each process instead.
        compiled = njit(nogil=True, **options)(function)
    return compiled


def row_operation(function: Callable[..., Any], *, reorder: bool = False) -> Callable[[F], F]:
    """Register a compiled form of ``function``, chosen by the type of its rows.

    The decorated function gets Numba types and returns the implementation for them, or
    None if it has none for these.
    """
    decorator: Callable[[F], F] = overload(
        function, jit_options=_REORDER if reorder else _OPTIONS, strict=False
    )
    return decorator


def loss_operation(function: F) -> F:
    """Let kernels call ``function``, whose first argument is a loss.

    What is compiled is the method of the same name of the loss's class.
    """

    def implementation(loss: Any, *arguments: Any) -> Any:
        return getattr(loss.instance_class, function.__name__)

    # Numba binds the arguments of a call by the signature of what it asks for the implementation.
    implementation.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    overload(function, jit_options=_OPTIONS, strict=False)(implementation)
    return function
