"""Mixing of many words into a few, to tell whether data have changed by accident.

Cryptographic hashes take longer than a pass over the rows.
"""

import numpy as np
from numpy.typing import NDArray

from certsvm.kernels.jit import kernel

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@kernel
def mix(words: NDArray[np.uint64], state: NDArray[np.uint64]) -> None:
    """Mix words, a multiple of eight, into a state of eight.

    Each step is a bijection of the state for any word, and of the word for any state.
    """
    for first in range(0, words.size, 8):
        for lane in range(8):
            mixed = (state[lane] ^ words[first + lane]) * _FACTOR
            state[lane] = mixed ^ (mixed >> _SHIFT)
