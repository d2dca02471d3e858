"""How closely two computations of the same bound must agree.

A certificate is recomputed by another program in another order (``verification``, and
``dask.recheck``). Beyond the allowance that the certificate states for its own rounding, the
second computation rounds too.
"""

# Relative to the bound. Rounding is about 1e-13 of it; a lost or doubled block of rows, or a model
# of other data, is far more than this.
RECOMPUTATION_TOLERANCE = 1e-9
# Relative to J. A larger allowance was not made by rounding, and would excuse anything.
LARGEST_ALLOWANCE = 0.01
