# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="override, overload-cannot-match"
# Written from the symbol tables of the stock plugins at build time.
from collections.abc import Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

from cuplug import Handle, Operator
from numpy import dtype, ndarray

_Array = TypeVar("_Array")
_Dtype = TypeVar("_Dtype", bound=dtype[Any])

def __getattr__(name: str) -> Operator: ...
def __dir__() -> list[str]: ...

class _add_layer_norm(Operator):
    @overload
    def __call__(
        self,
        residual: ndarray[Any, _Dtype],
        x: Any,
        weight: Any,
        bias: Any,
        eps: float = 1e-05,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """Adds x to residual, and returns the layer_norm of the sum."""
    @overload
    def __call__(
        self,
        residual: _Array,
        x: Any,
        weight: Any,
        bias: Any,
        eps: float = 1e-05,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Adds x to residual, and returns the layer_norm of the sum."""

add_layer_norm: _add_layer_norm

class _add_layer_norm_backward_grad_x_grad_weight_grad_bias(NamedTuple, Generic[_Array]):
    grad_x: _Array
    grad_weight: _Array
    grad_bias: _Array

class _add_layer_norm_backward(Operator):
    @overload
    def __call__(
        self,
        grad_residual: ndarray[Any, _Dtype],
        grad_y: Any,
        residual: Any,
        x: Any,
        weight: Any,
        eps: float = 1e-05,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _add_layer_norm_backward_grad_x_grad_weight_grad_bias[ndarray[Any, _Dtype]]:
        """The gradients of add_layer_norm."""
    @overload
    def __call__(
        self,
        grad_residual: _Array,
        grad_y: Any,
        residual: Any,
        x: Any,
        weight: Any,
        eps: float = 1e-05,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _add_layer_norm_backward_grad_x_grad_weight_grad_bias[_Array]:
        """The gradients of add_layer_norm."""

add_layer_norm_backward: _add_layer_norm_backward

class _add_rms_norm(Operator):
    @overload
    def __call__(
        self,
        residual: ndarray[Any, _Dtype],
        x: Any,
        weight: Any,
        eps: float = 1e-06,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """Adds x to residual, and returns the rms_norm of the sum."""
    @overload
    def __call__(
        self,
        residual: _Array,
        x: Any,
        weight: Any,
        eps: float = 1e-06,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Adds x to residual, and returns the rms_norm of the sum."""

add_rms_norm: _add_rms_norm

class _add_rms_norm_backward_grad_x_grad_weight(NamedTuple, Generic[_Array]):
    grad_x: _Array
    grad_weight: _Array

class _add_rms_norm_backward(Operator):
    @overload
    def __call__(
        self,
        grad_residual: ndarray[Any, _Dtype],
        grad_y: Any,
        residual: Any,
        x: Any,
        weight: Any,
        eps: float = 1e-06,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _add_rms_norm_backward_grad_x_grad_weight[ndarray[Any, _Dtype]]:
        """The gradients of add_rms_norm."""
    @overload
    def __call__(
        self,
        grad_residual: _Array,
        grad_y: Any,
        residual: Any,
        x: Any,
        weight: Any,
        eps: float = 1e-06,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _add_rms_norm_backward_grad_x_grad_weight[_Array]:
        """The gradients of add_rms_norm."""

add_rms_norm_backward: _add_rms_norm_backward

class _argsort(Operator):
    def __call__(
        self,
        x: Any,
        axis: int = -1,
        descending: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The indices that sort the elements stably."""

argsort: _argsort

class _bincount(Operator):
    def __call__(
        self,
        x: Any,
        size: int,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The number of occurrences of each integer from 0 to size - 1."""

bincount: _bincount

class _cholesky_factors_info(NamedTuple, Generic[_Array]):
    factors: _Array
    info: Any

class _cholesky(Operator):
    def __call__(
        self,
        x: _Array,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _cholesky_factors_info[_Array]:
        """Cholesky factors of Hermitian matrices, by cuSOLVER."""

cholesky: _cholesky

class _cross_entropy(Operator):
    def __call__(
        self,
        x: Any,
        target: Any,
        ignore_index: int = -100,
        label_smoothing: float = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The cross entropy of each row, as logits, with a target class."""

cross_entropy: _cross_entropy

class _cross_entropy_backward(Operator):
    def __call__(
        self,
        grad: Any,
        x: Any,
        target: Any,
        ignore_index: int = -100,
        label_smoothing: float = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The gradient of cross_entropy."""

cross_entropy_backward: _cross_entropy_backward

class _cumulative_prod(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """Products of the elements up to each element along an axis."""
    @overload
    def __call__(
        self,
        x: _Array,
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Products of the elements up to each element along an axis."""
    @overload
    def __call__(
        self,
        x: _Array,
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The same for an array without dimensions."""

cumulative_prod: _cumulative_prod

class _cumulative_prod_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        x: Any,
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of cumulative_prod."""
    @overload
    def __call__(
        self,
        grad: _Array,
        x: Any,
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of cumulative_prod."""
    @overload
    def __call__(
        self,
        grad: _Array,
        x: Any,
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The same for an array without dimensions."""

cumulative_prod_backward: _cumulative_prod_backward

class _cumulative_sum(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """Sums of the elements up to each element along an axis."""
    @overload
    def __call__(
        self,
        x: _Array,
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Sums of the elements up to each element along an axis."""
    @overload
    def __call__(
        self,
        x: _Array,
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The same for an array without dimensions."""

cumulative_sum: _cumulative_sum

class _cumulative_sum_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of cumulative_sum: sums of grad from each element to the end."""
    @overload
    def __call__(
        self,
        grad: _Array,
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of cumulative_sum: sums of grad from each element to the end."""
    @overload
    def __call__(
        self,
        grad: _Array,
        axis: int = -1,
        include_initial: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The same for an array without dimensions."""

cumulative_sum_backward: _cumulative_sum_backward

class _eig_values_vectors_info(NamedTuple, Generic[_Array]):
    values: _Array
    vectors: _Array
    info: Any

class _eig(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        has_vectors: bool = True,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _eig_values_vectors_info[ndarray[Any, _Dtype]]:
        """Eigenvalues of transposed matrices, by cuSOLVER."""
    @overload
    def __call__(
        self,
        x: _Array,
        has_vectors: bool = True,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _eig_values_vectors_info[_Array]:
        """Eigenvalues of transposed matrices, by cuSOLVER."""

eig: _eig

class _eigh_values_vectors_info(NamedTuple, Generic[_Array]):
    values: _Array
    vectors: _Array
    info: Any

class _eigh_values_vectors_info_2(NamedTuple, Generic[_Array]):
    values: Any
    vectors: _Array
    info: Any

class _eigh(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        has_vectors: bool = True,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _eigh_values_vectors_info[ndarray[Any, _Dtype]]:
        """Eigenvalues of Hermitian matrices, by cuSOLVER."""
    @overload
    def __call__(
        self,
        x: _Array,
        has_vectors: bool = True,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _eigh_values_vectors_info[_Array]:
        """Eigenvalues of Hermitian matrices, by cuSOLVER."""
    @overload
    def __call__(
        self,
        x: _Array,
        has_vectors: bool = True,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _eigh_values_vectors_info_2[_Array]:
        """Eigenvalues of Hermitian matrices, by cuSOLVER."""

eigh: _eigh

class _exponential(Operator):
    def __call__(
        self,
        x: Any,
        key: int,
        sequence: int,
        first: int,
        loc: float,
        scale: float,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Exponential numbers, plus loc."""

exponential: _exponential

class _fft(Operator):
    def __call__(
        self,
        x: _Array,
        inverse: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Fourier transforms along the last dimension, by cuFFT."""

fft: _fft

class _fft_backward(Operator):
    def __call__(
        self,
        grad: _Array,
        inverse: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of fft: the transform in the other direction."""

fft_backward: _fft_backward

class _gather(Operator):
    @overload
    def __call__(
        self,
        source: ndarray[Any, _Dtype],
        index: Any,
        mode: Literal["raise", "wrap", "clip"] = "raise",
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """Rows of source at the given indices: NumPy's take along axis 0.

        Parameters
        ----------
        source
            Array of any dtype.
        index
            Positions along the axis; negative ones count from the end.
        mode
            For positions out of range: an error, modulo the size, or the closest one.
        """
    @overload
    def __call__(
        self,
        source: _Array,
        index: Any,
        mode: Literal["raise", "wrap", "clip"] = "raise",
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Rows of source at the given indices: NumPy's take along axis 0.

        Parameters
        ----------
        source
            Array of any dtype.
        index
            Positions along the axis; negative ones count from the end.
        mode
            For positions out of range: an error, modulo the size, or the closest one.
        """
    @overload
    def __call__(
        self,
        source: ndarray[Any, _Dtype],
        index: Any,
        mode: Literal["raise", "wrap", "clip"] = "raise",
        axis: int = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """Elements of source at the given indices along an axis.

        Parameters
        ----------
        source
            Array of any dtype.
        index
            Positions along the axis; negative ones count from the end.
        mode
            For positions out of range: an error, modulo the size, or the closest one.
        axis
            Dimension of source.
        """
    @overload
    def __call__(
        self,
        source: _Array,
        index: Any,
        mode: Literal["raise", "wrap", "clip"] = "raise",
        axis: int = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Elements of source at the given indices along an axis.

        Parameters
        ----------
        source
            Array of any dtype.
        index
            Positions along the axis; negative ones count from the end.
        mode
            For positions out of range: an error, modulo the size, or the closest one.
        axis
            Dimension of source.
        """
    @overload
    def __call__(
        self,
        source: ndarray[Any, _Dtype],
        index: int,
        mode: Literal["raise", "wrap", "clip"] = "raise",
        axis: int = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The elements of source at one index along an axis, without that axis."""
    @overload
    def __call__(
        self,
        source: _Array,
        index: int,
        mode: Literal["raise", "wrap", "clip"] = "raise",
        axis: int = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The elements of source at one index along an axis, without that axis."""

gather: _gather

class _gather_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        index: Any,
        source: Any,
        mode: Literal["raise", "wrap", "clip"] = "raise",
        axis: int = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of gather: zeros, with the rows of grad added at the given indices."""
    @overload
    def __call__(
        self,
        grad: _Array,
        index: Any,
        source: Any,
        mode: Literal["raise", "wrap", "clip"] = "raise",
        axis: int = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of gather: zeros, with the rows of grad added at the given indices."""
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        index: int,
        source: Any,
        mode: Literal["raise", "wrap", "clip"] = "raise",
        axis: int = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of gather at one index: grad lacks the axis."""
    @overload
    def __call__(
        self,
        grad: _Array,
        index: int,
        source: Any,
        mode: Literal["raise", "wrap", "clip"] = "raise",
        axis: int = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of gather at one index: grad lacks the axis."""

gather_backward: _gather_backward

class _gelu_and_mul(Operator):
    def __call__(
        self,
        x: _Array,
        approximate: Literal["none", "tanh"] = "none",
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The second half of each row times the gelu of the first."""

gelu_and_mul: _gelu_and_mul

class _gelu_and_mul_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        x: Any,
        approximate: Literal["none", "tanh"] = "none",
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of gelu_and_mul."""
    @overload
    def __call__(
        self,
        grad: _Array,
        x: Any,
        approximate: Literal["none", "tanh"] = "none",
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of gelu_and_mul."""

gelu_and_mul_backward: _gelu_and_mul_backward

class _hello(Operator):
    def __call__(
        self,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Prints a line on the device that runs it."""

hello: _hello

class _histogram(Operator):
    @overload
    def __call__(
        self,
        x: Any,
        edges: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The number of elements in each bin between ascending edges."""
    @overload
    def __call__(
        self,
        x: Any,
        bins: int,
        low: float,
        high: float,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The number of elements in each of the equal bins from low to high."""

histogram: _histogram

class _index(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        indices: Sequence[Any],
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """Rows at positions along the first axes: NumPy's x[rows, columns]."""
    @overload
    def __call__(
        self,
        x: _Array,
        indices: Sequence[Any],
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Rows at positions along the first axes: NumPy's x[rows, columns]."""

index: _index

class _index_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        indices: Sequence[Any],
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of index: zeros, with grad added at the positions."""
    @overload
    def __call__(
        self,
        grad: _Array,
        indices: Sequence[Any],
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of index: zeros, with grad added at the positions."""

index_backward: _index_backward

class _index_put(Operator):
    def __call__(
        self,
        x: Any,
        indices: Sequence[Any],
        values: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Writes rows to positions along the first axes, in place."""

index_put: _index_put

class _index_put_backward_grad_x_grad_values(NamedTuple, Generic[_Array]):
    grad_x: _Array
    grad_values: _Array

class _index_put_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        indices: Sequence[Any],
        values: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _index_put_backward_grad_x_grad_values[ndarray[Any, _Dtype]]:
        """The gradients of index_put."""
    @overload
    def __call__(
        self,
        grad: _Array,
        indices: Sequence[Any],
        values: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _index_put_backward_grad_x_grad_values[_Array]:
        """The gradients of index_put."""

index_put_backward: _index_put_backward

class _integers(Operator):
    def __call__(
        self,
        x: Any,
        key: int,
        sequence: int,
        first: int,
        low: int,
        last: int,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Uniform integers from low to low + last, inclusive."""

integers: _integers

class _irfft(Operator):
    def __call__(
        self,
        x: Any,
        n: int,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The inverse of rfft, times n, by cuFFT."""

irfft: _irfft

class _irfft_backward(Operator):
    def __call__(
        self,
        grad: Any,
        n: int,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The gradient of irfft."""

irfft_backward: _irfft_backward

class _join(Operator):
    @overload
    def __call__(
        self,
        a: _Array,
        b: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The rows of two matrices, concatenated."""
    @overload
    def __call__(
        self,
        a: _Array,
        b: Any,
        c: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The rows of three matrices, concatenated."""
    @overload
    def __call__(
        self,
        a: _Array,
        b: Any,
        c: Any,
        d: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The rows of four matrices, concatenated."""

join: _join

class _join_backward_grad_a_grad_b(NamedTuple, Generic[_Array]):
    grad_a: _Array
    grad_b: _Array

class _join_backward_grad_a_grad_b_grad_c(NamedTuple, Generic[_Array]):
    grad_a: _Array
    grad_b: _Array
    grad_c: _Array

class _join_backward_grad_a_grad_b_grad_c_grad_d(NamedTuple, Generic[_Array]):
    grad_a: _Array
    grad_b: _Array
    grad_c: _Array
    grad_d: _Array

class _join_backward(Operator):
    @overload
    def __call__(
        self,
        grad: _Array,
        a: Any,
        b: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _join_backward_grad_a_grad_b[_Array]:
        """The gradients of join: the columns of grad that belong to each matrix."""
    @overload
    def __call__(
        self,
        grad: _Array,
        a: Any,
        b: Any,
        c: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _join_backward_grad_a_grad_b_grad_c[_Array]:
        """The gradients of join: the columns of grad that belong to each matrix."""
    @overload
    def __call__(
        self,
        grad: _Array,
        a: Any,
        b: Any,
        c: Any,
        d: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _join_backward_grad_a_grad_b_grad_c_grad_d[_Array]:
        """The gradients of join: the columns of grad that belong to each matrix."""

join_backward: _join_backward

class _layer_norm(Operator):
    def __call__(
        self,
        x: _Array,
        weight: Any,
        bias: Any,
        eps: float = 1e-05,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """x with mean 0 and variance 1 along the last axis."""

layer_norm: _layer_norm

class _layer_norm_backward_grad_x_grad_weight_grad_bias(NamedTuple, Generic[_Array]):
    grad_x: _Array
    grad_weight: _Array
    grad_bias: _Array

class _layer_norm_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        x: Any,
        weight: Any,
        eps: float = 1e-05,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _layer_norm_backward_grad_x_grad_weight_grad_bias[ndarray[Any, _Dtype]]:
        """The gradients of layer_norm."""
    @overload
    def __call__(
        self,
        grad: _Array,
        x: Any,
        weight: Any,
        eps: float = 1e-05,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _layer_norm_backward_grad_x_grad_weight_grad_bias[_Array]:
        """The gradients of layer_norm."""

layer_norm_backward: _layer_norm_backward

class _leaky_relu(Operator):
    def __call__(
        self,
        x: _Array,
        slope: float = 0.01,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """x if it is positive, else slope times x."""

leaky_relu: _leaky_relu

class _leaky_relu_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        x: Any,
        slope: float = 0.01,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of leaky_relu: grad if x is positive, else slope times grad."""
    @overload
    def __call__(
        self,
        grad: _Array,
        x: Any,
        slope: float = 0.01,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of leaky_relu: grad if x is positive, else slope times grad."""

leaky_relu_backward: _leaky_relu_backward

class _log_softmax(Operator):
    def __call__(
        self,
        x: _Array,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The logarithm of the softmax along the last axis."""

log_softmax: _log_softmax

class _log_softmax_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        y: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of log_softmax, from its result."""
    @overload
    def __call__(
        self,
        grad: _Array,
        y: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of log_softmax, from its result."""

log_softmax_backward: _log_softmax_backward

class _lognormal(Operator):
    def __call__(
        self,
        x: Any,
        key: int,
        sequence: int,
        first: int,
        mean: float,
        sigma: float,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Exponentials of normal numbers."""

lognormal: _lognormal

class _lu_factors_pivots_info(NamedTuple, Generic[_Array]):
    factors: _Array
    pivots: Any
    info: Any

class _lu(Operator):
    def __call__(
        self,
        x: _Array,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _lu_factors_pivots_info[_Array]:
        """LU factors of transposed matrices, by cuSOLVER."""

lu: _lu

class _matmul(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        y: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The product of matrices, by cuBLASLt."""
    @overload
    def __call__(
        self,
        x: _Array,
        y: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The product of matrices, by cuBLASLt."""

matmul: _matmul

class _matmul_backward_grad_x_grad_y(NamedTuple, Generic[_Array]):
    grad_x: _Array
    grad_y: _Array

class _matmul_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        x: Any,
        y: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _matmul_backward_grad_x_grad_y[ndarray[Any, _Dtype]]:
        """The gradients of matmul."""
    @overload
    def __call__(
        self,
        grad: _Array,
        x: Any,
        y: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _matmul_backward_grad_x_grad_y[_Array]:
        """The gradients of matmul."""

matmul_backward: _matmul_backward

class _matmul_backward_backward_grad_grad_grad_x_grad_y(NamedTuple, Generic[_Array]):
    grad_grad: _Array
    grad_x: _Array
    grad_y: _Array

class _matmul_backward_backward(Operator):
    @overload
    def __call__(
        self,
        grad_grad_x: ndarray[Any, _Dtype],
        grad_grad_y: Any,
        grad: Any,
        x: Any,
        y: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _matmul_backward_backward_grad_grad_grad_x_grad_y[ndarray[Any, _Dtype]]:
        """The gradients of matmul_backward."""
    @overload
    def __call__(
        self,
        grad_grad_x: _Array,
        grad_grad_y: Any,
        grad: Any,
        x: Any,
        y: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _matmul_backward_backward_grad_grad_grad_x_grad_y[_Array]:
        """The gradients of matmul_backward."""

matmul_backward_backward: _matmul_backward_backward

class _nonzero(Operator):
    def __call__(
        self,
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The positions of nonzero elements: a row for each dimension."""

nonzero: _nonzero

class _normal(Operator):
    def __call__(
        self,
        x: Any,
        key: int,
        sequence: int,
        first: int,
        loc: float,
        scale: float,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Normal numbers with mean loc."""

normal: _normal

class _permutation(Operator):
    def __call__(
        self,
        n: int,
        key: int,
        sequence: int,
        first: int,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The numbers below n in random order."""

permutation: _permutation

class _piecewise_scale(Operator):
    def __call__(
        self,
        x: _Array,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """0.5 x if x < 0, 2 x if 0 <= x < 1, otherwise 0.1 x."""

piecewise_scale: _piecewise_scale

class _piecewise_scale_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of piecewise_scale: grad times the factor of x."""
    @overload
    def __call__(
        self,
        grad: _Array,
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of piecewise_scale: grad times the factor of x."""

piecewise_scale_backward: _piecewise_scale_backward

class _put(Operator):
    def __call__(
        self,
        x: Any,
        indices: Any,
        values: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Writes rows to positions along the first axis, in place."""

put: _put

class _put_along_axis(Operator):
    def __call__(
        self,
        x: Any,
        indices: Any,
        values: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Writes values to positions along an axis, in place."""

put_along_axis: _put_along_axis

class _put_backward_grad_x_grad_values(NamedTuple, Generic[_Array]):
    grad_x: _Array
    grad_values: _Array

class _put_backward(Operator):
    def __call__(
        self,
        grad: _Array,
        indices: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _put_backward_grad_x_grad_values[_Array]:
        """The gradients of put."""

put_backward: _put_backward

class _qr_factors_vectors(NamedTuple, Generic[_Array]):
    factors: _Array
    vectors: _Array

class _qr(Operator):
    def __call__(
        self,
        x: _Array,
        q: int,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _qr_factors_vectors[_Array]:
        """QR factors of transposed matrices, by cuSOLVER."""

qr: _qr

class _quantize_float8_values_scales(NamedTuple):
    values: Any
    scales: Any

class _quantize_float8(Operator):
    def __call__(
        self,
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _quantize_float8_values_scales:
        """Rows as 8-bit floats, with a scale for each row."""

quantize_float8: _quantize_float8

class _quantize_int8_values_scales(NamedTuple):
    values: Any
    scales: Any

class _quantize_int8(Operator):
    def __call__(
        self,
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _quantize_int8_values_scales:
        """Rows as 8-bit integers, with a scale for each row."""

quantize_int8: _quantize_int8

class _relu(Operator):
    def __call__(
        self,
        x: _Array,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """x if it is positive, else 0."""

relu: _relu

class _relu_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of relu: grad if x is positive, else 0."""
    @overload
    def __call__(
        self,
        grad: _Array,
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of relu: grad if x is positive, else 0."""

relu_backward: _relu_backward

class _repeat(Operator):
    def __call__(
        self,
        x: _Array,
        times: int,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Each row, repeated consecutively."""

repeat: _repeat

class _repeat_backward(Operator):
    def __call__(
        self,
        grad: _Array,
        x: Any,
        times: int,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of repeat."""

repeat_backward: _repeat_backward

class _rfft(Operator):
    def __call__(
        self,
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """Fourier transforms of real numbers, by cuFFT."""

rfft: _rfft

class _rfft_backward(Operator):
    def __call__(
        self,
        grad: Any,
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The gradient of rfft."""

rfft_backward: _rfft_backward

class _rms_norm(Operator):
    def __call__(
        self,
        x: _Array,
        weight: Any,
        eps: float = 1e-06,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """x divided by its root mean square along the last axis."""

rms_norm: _rms_norm

class _rms_norm_backward_grad_x_grad_weight(NamedTuple, Generic[_Array]):
    grad_x: _Array
    grad_weight: _Array

class _rms_norm_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        x: Any,
        weight: Any,
        eps: float = 1e-06,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _rms_norm_backward_grad_x_grad_weight[ndarray[Any, _Dtype]]:
        """The gradients of rms_norm."""
    @overload
    def __call__(
        self,
        grad: _Array,
        x: Any,
        weight: Any,
        eps: float = 1e-06,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _rms_norm_backward_grad_x_grad_weight[_Array]:
        """The gradients of rms_norm."""

rms_norm_backward: _rms_norm_backward

class _rotary(Operator):
    def __call__(
        self,
        q: Any,
        cos: Any,
        sin: Any,
        positions: Any,
        k: Any | None = None,
        interleaved: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Rotary position embedding of queries and keys, in place."""

rotary: _rotary

class _rotary_backward(Operator):
    def __call__(
        self,
        grad_q: Any,
        cos: Any,
        sin: Any,
        positions: Any,
        grad_k: Any | None = None,
        interleaved: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """The gradient of rotary, in place."""

rotary_backward: _rotary_backward

class _scale(Operator):
    def __call__(
        self,
        data: Any,
        factor: complex,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Multiplies data by factor, in place."""

scale: _scale

class _scale_backward(Operator):
    def __call__(
        self,
        grad: _Array,
        factor: complex,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of scale: grad times the conjugate of factor."""

scale_backward: _scale_backward

class _scatter(Operator):
    def __call__(
        self,
        x: _Array,
        indices: Any,
        values: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """A copy of x with values at positions along an axis."""

scatter: _scatter

class _scatter_add(Operator):
    def __call__(
        self,
        x: _Array,
        indices: Any,
        values: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """A copy of x with values added at positions along an axis."""

scatter_add: _scatter_add

class _scatter_add_backward_grad_x_grad_values(NamedTuple, Generic[_Array]):
    grad_x: _Array
    grad_values: _Array

class _scatter_add_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        indices: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _scatter_add_backward_grad_x_grad_values[ndarray[Any, _Dtype]]:
        """The gradients of scatter_add."""
    @overload
    def __call__(
        self,
        grad: _Array,
        indices: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _scatter_add_backward_grad_x_grad_values[_Array]:
        """The gradients of scatter_add."""

scatter_add_backward: _scatter_add_backward

class _scatter_backward_grad_x_grad_values(NamedTuple, Generic[_Array]):
    grad_x: _Array
    grad_values: _Array

class _scatter_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        indices: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _scatter_backward_grad_x_grad_values[ndarray[Any, _Dtype]]:
        """The gradients of scatter and of put_along_axis."""
    @overload
    def __call__(
        self,
        grad: _Array,
        indices: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _scatter_backward_grad_x_grad_values[_Array]:
        """The gradients of scatter and of put_along_axis."""

scatter_backward: _scatter_backward

class _searchsorted(Operator):
    def __call__(
        self,
        x: Any,
        values: Any,
        side: Literal["left", "right"] = "left",
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The positions at which values would be inserted into the ascending array x."""

searchsorted: _searchsorted

class _select(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        mask: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The elements where mask is true, in C order: NumPy's x[mask]."""
    @overload
    def __call__(
        self,
        x: _Array,
        mask: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The elements where mask is true, in C order: NumPy's x[mask]."""

select: _select

class _select_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        mask: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of select: the elements of grad where mask is true, else 0."""
    @overload
    def __call__(
        self,
        grad: _Array,
        mask: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of select: the elements of grad where mask is true, else 0."""

select_backward: _select_backward

class _silu_and_mul(Operator):
    def __call__(
        self,
        x: _Array,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The second half of each row times the silu of the first."""

silu_and_mul: _silu_and_mul

class _silu_and_mul_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of silu_and_mul."""
    @overload
    def __call__(
        self,
        grad: _Array,
        x: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of silu_and_mul."""

silu_and_mul_backward: _silu_and_mul_backward

class _softmax(Operator):
    def __call__(
        self,
        x: _Array,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The softmax along the last axis."""

softmax: _softmax

class _softmax_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        y: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of softmax, from its result."""
    @overload
    def __call__(
        self,
        grad: _Array,
        y: Any,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of softmax, from its result."""

softmax_backward: _softmax_backward

class _solve_x_info(NamedTuple, Generic[_Array]):
    x: _Array
    info: Any

class _solve(Operator):
    @overload
    def __call__(
        self,
        a: ndarray[Any, _Dtype],
        b: Any,
        transposed: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _solve_x_info[ndarray[Any, _Dtype]]:
        """x with x @ a = b, or x @ a^T = b, by cuSOLVER."""
    @overload
    def __call__(
        self,
        a: _Array,
        b: Any,
        transposed: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _solve_x_info[_Array]:
        """x with x @ a = b, or x @ a^T = b, by cuSOLVER."""

solve: _solve

class _sort(Operator):
    def __call__(
        self,
        x: _Array,
        axis: int = -1,
        descending: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The elements sorted along an axis."""

sort: _sort

class _sort_backward(Operator):
    def __call__(
        self,
        grad: _Array,
        x: Any,
        axis: int = -1,
        descending: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of sort: grad at the original positions of the elements."""

sort_backward: _sort_backward

class _sort_by(Operator):
    def __call__(
        self,
        source: _Array,
        x: Any,
        axis: int = -1,
        descending: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The elements of source, in the order that sorts x."""

sort_by: _sort_by

class _svd_u_s_vh_info(NamedTuple, Generic[_Array]):
    u: _Array
    s: _Array
    vh: _Array
    info: Any

class _svd_u_s_vh_info_2(NamedTuple, Generic[_Array]):
    u: _Array
    s: Any
    vh: _Array
    info: Any

class _svd(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        k: int,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _svd_u_s_vh_info[ndarray[Any, _Dtype]]:
        """Singular value decompositions, by cuSOLVER."""
    @overload
    def __call__(
        self,
        x: _Array,
        k: int,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _svd_u_s_vh_info[_Array]:
        """Singular value decompositions, by cuSOLVER."""
    @overload
    def __call__(
        self,
        x: _Array,
        k: int,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _svd_u_s_vh_info_2[_Array]:
        """Singular value decompositions, by cuSOLVER."""

svd: _svd

class _take_along_axis(Operator):
    @overload
    def __call__(
        self,
        source: ndarray[Any, _Dtype],
        indices: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """Elements at positions along an axis, with separate positions for each segment."""
    @overload
    def __call__(
        self,
        source: _Array,
        indices: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Elements at positions along an axis, with separate positions for each segment."""

take_along_axis: _take_along_axis

class _take_along_axis_backward(Operator):
    @overload
    def __call__(
        self,
        grad: ndarray[Any, _Dtype],
        indices: Any,
        source: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of take_along_axis: zeros, with grad added at the indices."""
    @overload
    def __call__(
        self,
        grad: _Array,
        indices: Any,
        source: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of take_along_axis: zeros, with grad added at the indices."""

take_along_axis_backward: _take_along_axis_backward

class _topk_values_indices(NamedTuple, Generic[_Array]):
    values: _Array
    indices: Any

class _topk(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        k: int,
        axis: int = -1,
        largest: bool = True,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _topk_values_indices[ndarray[Any, _Dtype]]:
        """The k largest elements along an axis in descending order, or the smallest in ascending order, and their positions."""
    @overload
    def __call__(
        self,
        x: _Array,
        k: int,
        axis: int = -1,
        largest: bool = True,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _topk_values_indices[_Array]:
        """The k largest elements along an axis in descending order, or the smallest in ascending order, and their positions."""

topk: _topk

class _topk_backward(Operator):
    @overload
    def __call__(
        self,
        grad_values: ndarray[Any, _Dtype],
        indices: Any,
        x: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of topk: zeros, with grad_values at the indices."""
    @overload
    def __call__(
        self,
        grad_values: _Array,
        indices: Any,
        x: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of topk: zeros, with grad_values at the indices."""

topk_backward: _topk_backward

class _topk_backward_backward(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        indices: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The gradient of topk_backward: the elements of x at the indices."""
    @overload
    def __call__(
        self,
        x: _Array,
        indices: Any,
        axis: int = -1,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The gradient of topk_backward: the elements of x at the indices."""

topk_backward_backward: _topk_backward_backward

class _topk_softmax_weights_indices(NamedTuple):
    weights: Any
    indices: Any

class _topk_softmax(Operator):
    def __call__(
        self,
        x: Any,
        k: int,
        renormalize: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _topk_softmax_weights_indices:
        """The k largest values of a softmax along the last axis, and their positions."""

topk_softmax: _topk_softmax

class _topk_softmax_backward(Operator):
    def __call__(
        self,
        grad_weights: Any,
        weights: Any,
        indices: Any,
        x: Any,
        renormalize: bool = False,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> Any:
        """The gradient of topk_softmax."""

topk_softmax_backward: _topk_softmax_backward

class _tril(Operator):
    def __call__(
        self,
        x: _Array,
        k: int = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Matrices with zeros above diagonal k."""

tril: _tril

class _triu(Operator):
    def __call__(
        self,
        x: _Array,
        k: int = 0,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """Matrices with zeros below diagonal k."""

triu: _triu

class _uniform(Operator):
    def __call__(
        self,
        x: Any,
        key: int,
        sequence: int,
        first: int,
        low: float,
        span: float,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Uniform numbers from low up to, but not including, low + span."""

uniform: _uniform

class _unique_values_indices_inverse_indices_counts(NamedTuple, Generic[_Array]):
    values: _Array
    indices: Any
    inverse_indices: Any
    counts: Any

class _unique(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _unique_values_indices_inverse_indices_counts[ndarray[Any, _Dtype]]:
        """The distinct elements in order, the first position of each, the number of its value for each element, and the counts."""
    @overload
    def __call__(
        self,
        x: _Array,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _unique_values_indices_inverse_indices_counts[_Array]:
        """The distinct elements in order, the first position of each, the number of its value for each element, and the counts."""

unique: _unique

class _unique_values(Operator):
    @overload
    def __call__(
        self,
        x: ndarray[Any, _Dtype],
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> ndarray[Any, _Dtype]:
        """The distinct elements in order."""
    @overload
    def __call__(
        self,
        x: _Array,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """The distinct elements in order."""

unique_values: _unique_values
