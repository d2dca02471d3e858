"""Compiler options of all kernels.

* ``_nrt=False``: kernels allocate nothing, so they need no reference counts. Counting makes passing
  rows as a named tuple more expensive than reading a row.
* ``fastmath={"contract"}``: fused multiply-add is allowed, since it rounds once instead of twice.
  Reordering is allowed only in functions that ask for it: LLVM would turn sparse inner products
  into vector gathers, which are several times slower than the plain loop on many processors. No
  option that assumes away NaN or infinity is ever used.
* ``no_cfunc_wrapper=True``: no kernel is passed to another as a value, and wrappers for that take a
  tenth of the time of compilation.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit
from numba.extending import overload, register_jitable

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy", "fastmath": {"contract"}, "_nrt": False, "no_cfunc_wrapper": True
}  # fmt: skip
# Reordering puts sums over contiguous memory into vector lanes.
_REORDER: dict[str, Any] = _OPTIONS | {"fastmath": {"contract", "reassoc", "nsz"}}
# A call with rows passes the fields of three arrays, which takes as long as a short row.
_INLINE = {"forceinline": True}
_kernels: list[Any] = []


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
        # There is no writable folder for the cache, for example in a container without a home:
        # compile in each process.
        compiled = njit(nogil=True, **options)(function)
    _kernels.append(compiled)
    return compiled


def kernel_folders() -> set[str | None]:
    """Where the kernels that are imported are kept; None: nowhere."""
    return {kernel.stats.cache_path for kernel in _kernels}


def operation(function: F) -> F:
    """A function that kernels may call, too."""
    inlined: F = register_jitable(**_OPTIONS, **_INLINE)(function)
    return inlined


def row_operation(sparse: F, dense: Callable[..., Any]) -> F:
    """An operation on a row, for kernels: its form is chosen by the type of the rows.

    Sums of the dense form may be reordered. Called from Python, the forms run as they are written.
    """

    def operation(rows: Any, *arguments: Any) -> Any:
        return (sparse if "indptr" in rows._fields else dense)(rows, *arguments)

    def sparse_form(rows: Any, *arguments: Any) -> Any:
        return sparse if "indptr" in rows.fields else None

    def dense_form(rows: Any, *arguments: Any) -> Any:
        return None if "indptr" in rows.fields else dense

    for form, options in ((sparse_form, _OPTIONS), (dense_form, _REORDER)):
        # Numba binds the arguments of a call by this.
        form.__signature__ = inspect.signature(sparse)  # type: ignore[attr-defined]
        overload(operation, jit_options=options | _INLINE, strict=False)(form)
    return operation  # type: ignore[return-value]
