# SPDX-License-Identifier: Apache-2.0
"""Calls of stock operators with arrays that depend on a seed."""

import numpy as np
import pytest
from cuplug import ops
from cuplug.ops import (
    gather,
    gather_backward,
    leaky_relu,
    leaky_relu_backward,
    piecewise_scale,
    piecewise_scale_backward,
    relu,
    relu_backward,
    scale,
    scale_backward,
)

SEED, N = 5, 1000


def floats(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(N).astype(np.float32)


def indices(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-N, N, 300)


def whole_numbers(seed: int) -> np.ndarray:
    """Return gradients for `indices`, whose sums are the same in any order."""
    return np.random.default_rng(seed).integers(-9, 9, 300).astype(np.float32)


def places(seed: int) -> np.ndarray:
    """Return indices without repetition."""
    return np.random.default_rng(seed).permutation(N)[:300]


def signs(seed: int) -> np.ndarray:
    return np.sign(floats(seed))


def digits(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 10, N)


def edges(seed: int) -> np.ndarray:
    return np.sort(floats(seed)[:20])


def matrix(seed: int) -> np.ndarray:
    return floats(seed).reshape(-1, 8)


def whole(seed: int) -> np.ndarray:
    """Return a matrix of whole numbers, whose products and sums are exact."""
    return np.trunc(4 * matrix(seed))


def zeros(seed: int) -> np.ndarray:
    return np.zeros_like(matrix(seed))


def wide(seed: int) -> np.ndarray:
    return np.tile(signs(seed).reshape(-1, 8), 3)


def wide_matrix(seed: int) -> np.ndarray:
    return np.concatenate([matrix(seed), matrix(seed + 1)], 1)


def first_row(seed: int) -> np.ndarray:
    return matrix(seed)[0]


def first_column(seed: int) -> np.ndarray:
    return matrix(seed)[:, 0].copy()


def heads(seed: int) -> np.ndarray:
    return floats(seed).reshape(-1, 2, 4)


def turns(seed: int) -> np.ndarray:
    return floats(seed)[:20].reshape(10, 2)


def positions(seed: int) -> np.ndarray:
    return digits(seed)[: N // 8]


def classes(seed: int) -> np.ndarray:
    return digits(seed)[: N // 8] % 8


def pairs(seed: int) -> np.ndarray:
    return matrix(seed)[:, :2].copy()


def pairs_of_classes(seed: int) -> np.ndarray:
    return np.stack([classes(seed), (classes(seed) + 3) % 8], 1)


# Operator -> its call, and the functions that create its arrays from a seed.
CALLS = {
    "gather": (gather, [floats, indices], ()),
    "gather_wrap": (gather, [floats, indices], ("wrap",)),
    "relu": (relu, [floats], ()),
    "relu_backward": (relu_backward, [floats, floats], ()),
    "leaky_relu": (leaky_relu, [floats], (0.1,)),
    "leaky_relu_backward": (leaky_relu_backward, [floats, floats], (0.1,)),
    "piecewise_scale": (piecewise_scale, [floats], ()),
    "scale": (scale, [floats], (1.5,)),
    "gather_backward": (gather_backward, [whole_numbers, indices, floats], ()),
    "piecewise_scale_backward": (piecewise_scale_backward, [floats, floats], ()),
    "scale_backward": (scale_backward, [floats], (1.5,)),
    "argsort": (ops.argsort, [floats], ()),
    "sort": (ops.sort, [floats], ()),
    "sort_backward": (ops.sort_backward, [floats, floats], ()),
    "sort_by": (ops.sort_by, [floats, floats], ()),
    "cumulative_prod": (ops.cumulative_prod, [signs], ()),
    "cumulative_prod_backward": (ops.cumulative_prod_backward, [signs, signs], ()),
    "cumulative_sum": (ops.cumulative_sum, [whole_numbers], ()),
    "cumulative_sum_backward": (ops.cumulative_sum_backward, [whole_numbers], ()),
    "bincount": (ops.bincount, [digits], (10,)),
    "histogram": (ops.histogram, [floats, edges], ()),
    "searchsorted": (ops.searchsorted, [edges, floats], ()),
    "put": (ops.put, [floats, places, whole_numbers], ()),
    "put_along_axis": (ops.put_along_axis, [floats, places, whole_numbers], ()),
    "scatter": (ops.scatter, [floats, places, whole_numbers], ()),
    "scatter_add": (ops.scatter_add, [signs, indices, whole_numbers], ()),
    "topk_backward": (ops.topk_backward, [whole_numbers, places, floats], ()),
    "topk_backward_backward": (ops.topk_backward_backward, [floats, places], ()),
    "take_along_axis": (ops.take_along_axis, [floats, indices], ()),
    "take_along_axis_backward": (
        ops.take_along_axis_backward,
        [whole_numbers, indices, floats],
        (),
    ),
    "join": (ops.join, [matrix, matrix], ()),
    "repeat": (ops.repeat, [matrix], (3,)),
    "repeat_backward": (ops.repeat_backward, [wide, matrix], (3,)),
    "tril": (ops.tril, [matrix], ()),
    "triu": (ops.triu, [matrix], (1,)),
    "integers": (ops.integers, [digits], (1, 2, 0, 0, 90)),
    "normal": (ops.normal, [floats], (1, 2, 0, 0.0, 1.0)),
    "uniform": (ops.uniform, [floats], (1, 2, 0, 0.0, 1.0)),
    "exponential": (ops.exponential, [floats], (1, 2, 0, 0.0, 1.0)),
    "lognormal": (ops.lognormal, [floats], (1, 2, 0, 0.0, 1.0)),
    "softmax": (ops.softmax, [matrix], ()),
    "softmax_backward": (ops.softmax_backward, [whole, whole], ()),
    "log_softmax": (ops.log_softmax, [matrix], ()),
    "log_softmax_backward": (ops.log_softmax_backward, [whole, zeros], ()),
    "rms_norm": (ops.rms_norm, [matrix, first_row], ()),
    "add_rms_norm": (ops.add_rms_norm, [matrix, matrix, first_row], ()),
    "layer_norm": (ops.layer_norm, [matrix, first_row, first_row], ()),
    "add_layer_norm": (ops.add_layer_norm, [matrix, matrix, first_row, first_row], ()),
    "topk_softmax_backward": (
        ops.topk_softmax_backward,
        [pairs, pairs, pairs_of_classes, matrix],
        (),
    ),
    "silu_and_mul": (ops.silu_and_mul, [matrix], ()),
    "silu_and_mul_backward": (ops.silu_and_mul_backward, [matrix, wide_matrix], ()),
    "gelu_and_mul": (ops.gelu_and_mul, [matrix], ("tanh",)),
    "gelu_and_mul_backward": (ops.gelu_and_mul_backward, [matrix, wide_matrix], ()),
    "cross_entropy": (ops.cross_entropy, [matrix, classes], ()),
    "cross_entropy_backward": (ops.cross_entropy_backward, [first_column, matrix, classes], ()),
    "rotary": (ops.rotary, [heads, turns, turns, positions], ()),
    "rotary_backward": (ops.rotary_backward, [heads, turns, turns, positions], ()),
}
# Their results are differences of rounded numbers.
DIFFERENCES = {"layer_norm", "add_layer_norm", "cross_entropy", "cross_entropy_backward"}
DIFFERENCES |= {"topk_softmax_backward"}
DIFFERENCES |= {"silu_and_mul_backward", "gelu_and_mul_backward", "rotary", "rotary_backward"}
# Calls that wait for a size or a number of elements cannot be captured.
WAITS = {"nonzero", "select", "select_backward", "unique", "unique_values"}
# Operators on lists of arrays, which the calls below do not create.
LISTS = {"index", "index_backward", "index_put", "index_put_backward"}
# They have no CPU entry; plugins/test_matmul.py and plugins/test_emulated_linalg.py test them.
BY_LIBRARY = {"fft", "irfft", "matmul", "rfft", "matmul_backward_backward"}
BY_LIBRARY |= {f"{name}_backward" for name in BY_LIBRARY if "_" not in name}
on_each_operator = pytest.mark.parametrize("name", CALLS)


def arguments(name: str, seed: int) -> list:
    _, makers, scalars = CALLS[name]
    return [*(make(seed + k) for k, make in enumerate(makers)), *scalars]


def on_host(name: str, seed: int) -> np.ndarray:
    """Return the result of the CPU entry."""
    given = arguments(name, seed)
    result = CALLS[name][0](*given, device="cpu")
    return given[0] if result is None else result
