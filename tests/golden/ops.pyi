# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="override, overload-cannot-match"
# Written from the symbol tables of the stock plugins at build time.
from collections.abc import Sequence
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

from cuplug import Operator
from numpy import dtype, ndarray

_Array = TypeVar("_Array")
_Dtype = TypeVar("_Dtype", bound=dtype[Any])

def __getattr__(name: str) -> Operator: ...
def __dir__() -> list[str]: ...

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
        """Rows of source at the given indices: NumPy's take along axis 0."""
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
        """Rows of source at the given indices: NumPy's take along axis 0."""
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
        """The same along any axis."""
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
        """The same along any axis."""
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
        """At one index; the axis is dropped."""
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
        """At one index; the axis is dropped."""

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
        """The gradient of gather: zeros, to whose rows at the given indices those of grad are added."""
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
        """The gradient of gather: zeros, to whose rows at the given indices those of grad are added."""
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
        """The same for one index, whose axis grad has not."""
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
        """The same for one index, whose axis grad has not."""

gather_backward: _gather_backward

class _hello(Operator):
    def __call__(
        self,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> None:
        """Prints a line from where it runs."""

hello: _hello

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
        """x where it is positive, else slope times x."""

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
        """The gradient of leaky_relu: grad where x is positive, else slope times grad."""
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
        """The gradient of leaky_relu: grad where x is positive, else slope times grad."""

leaky_relu_backward: _leaky_relu_backward

class _piecewise_scale(Operator):
    def __call__(
        self,
        x: _Array,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """0.5 x below 0, 2 x below 1, 0.1 x from there on."""

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
        """The gradient of piecewise_scale: grad times the factor that x gets."""
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
        """The gradient of piecewise_scale: grad times the factor that x gets."""

piecewise_scale_backward: _piecewise_scale_backward

class _relu(Operator):
    def __call__(
        self,
        x: _Array,
        *,
        out: Any = None,
        device: Any = None,
        stream: Any = None,
    ) -> _Array:
        """x where it is positive, else 0."""

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
        """The gradient of relu: grad where x is positive, else 0."""
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
        """The gradient of relu: grad where x is positive, else 0."""

relu_backward: _relu_backward

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
