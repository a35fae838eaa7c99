# SPDX-License-Identifier: Apache-2.0
"""NumPy functions called with cuplug arrays: cuplug computes them on the arrays' device."""

from __future__ import annotations

import inspect
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from cuplug._engine.array.array import Array
from cuplug._engine.array.promotion import NUMBERS, kind_of
from cuplug._source.expressions.functions import named
from cuplug.array_api.beyond import numpy_creation, numpy_linalg
from cuplug.array_api.beyond.host_values import on_the_host, together, with_lists
from cuplug.array_api.beyond.numpy_attributes import memory_order
from cuplug.array_api.beyond.outputs import into_out
from cuplug.array_api.conversion import MAX_NDIM, asarray, gpu_in
from cuplug.array_api.views import axes_of, shape_of

standard = import_module("cuplug.array_api")

# Methods of arrays compute them. NumPy's own code copies to the host if one raises TypeError.
_BY_METHODS = {
    *("all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "max", "mean"),
    *("min", "nonzero", "prod", "put", "repeat", "reshape", "round", "searchsorted", "squeeze"),
    *("std", "sum", "take", "transpose", "var"),
}
_METHODS = {"amax": "max", "amin": "min", "around": "round"} | {x: x for x in _BY_METHODS}
# NumPy's names of parameters -> names in methods.
_PARAMETERS = {"a_max": "max", "a_min": "min", "ind": "indices"}
# NumPy's implementation reads attributes, or prints.
_BY_ATTRIBUTES = {
    *("array2string", "array_repr", "array_str", "imag", "iscomplexobj", "isrealobj", "ndim"),
    *("real", "shape", "size"),
}
# They are called with `like=`.
_CREATING = numpy_creation.MADE
# It writes elements of the host to files, or compares addresses.
_OF_THE_HOST = {"save", "savetxt", "savez", "savez_compressed"}
_OF_THE_HOST |= {"may_share_memory", "shares_memory"}


def _where(condition: Any, *given: Any) -> Any:
    if not given:
        return standard.nonzero(condition)
    condition, *values = with_lists((condition, *given))
    return standard.where(standard.astype(condition, "bool", copy=False), *values)


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if not isinstance(dst, Array):
        np.copyto(dst, np.asarray(src), casting, np.asarray(where))
        return
    if not isinstance(src, Array):
        given = np.empty(np.shape(src), dst.dtype)
        np.copyto(given, src, casting)
        src = asarray(given, device=dst.device)
    if not np.can_cast(src.dtype, dst.dtype, casting):
        raise TypeError(f"numpy.copyto: src: got {src.dtype}, expected {dst.dtype} ({casting})")
    if where is True:
        dst[...] = src
        return
    chosen = asarray(where, device=dst.device)
    if chosen.ndim and kind_of(chosen.dtype) != "bool":
        raise TypeError(f"numpy.copyto: where: got {chosen.dtype}, expected bool")
    chosen = standard.broadcast_to(chosen != 0, dst.shape)
    values = standard.broadcast_to(standard.astype(src, dst.dtype, copy=False), dst.shape)
    dst[...] = standard.where(chosen, values, dst)


def _joining(name: str) -> Any:
    """Return a function that concatenates arrays, with a dtype and an output if these are given."""
    join = getattr(standard, name)

    def call(
        arrays: Any,
        axis: Any = 0,
        out: Any = None,
        *,
        dtype: Any = None,
        casting: Any = "same_kind",
    ) -> Any:
        if out is not None and dtype is not None:
            raise TypeError(f"numpy.{name}: got out and dtype, expected one of them")
        wanted = dtype if out is None else out.dtype
        device = next(x.device for x in [*arrays, out] if isinstance(x, Array))
        given = [
            x if isinstance(x, (Array, np.ndarray)) else asarray(x, device=device) for x in arrays
        ]
        if wanted is not None:
            given = [x.astype(wanted, casting=casting, copy=False) for x in given]
        found = join(given, **({"axis": axis} if name in ("concat", "stack") else {}))
        return into_out(found, out)

    return call


def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    given = [standard.ravel(x) for x in together("numpy.meshgrid", *xi)]
    found = standard.meshgrid(*given, indexing=indexing)
    if not sparse:
        return tuple(x.copy() for x in found) if copy else tuple(found)
    places = [*range(len(given))]
    if indexing == "xy" and len(given) > 1:
        places[:2] = 1, 0
    shapes = [[-1 if at == place else 1 for at in range(len(given))] for place in places]
    parts = [standard.reshape(x, shape) for x, shape in zip(given, shapes, strict=True)]
    return tuple(x.copy() for x in parts) if copy else tuple(parts)


def _squared(m: Array) -> Array:
    """Return an array of matrices, in which vectors are rows."""
    return standard.broadcast_to(m, (m.size, m.size)) if m.ndim == 1 else m


def _roll(a: Array, shift: Any, axis: Any = None) -> Array:
    by = np.broadcast(
        on_the_host("numpy.roll: shift", shift, "integers"), 0 if axis is None else axis
    )
    pairs = [(int(n), None if axis is None else int(k)) for n, k in by]
    if axis is None:
        return standard.roll(a, sum(n for n, _ in pairs))
    if not pairs:
        return a.copy()
    return standard.roll(a, tuple(n for n, _ in pairs), axis=tuple(k for _, k in pairs))


def _diff(a: Array, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Array:
    along = axes_of("numpy.diff", axis, a.ndim)[0]
    ends = []
    for end in (prepend, append):
        part = None if end is None or end is np._NoValue else asarray(end, device=a.device)
        if part is not None and not part.ndim:
            shape = (*a.shape[:along], 1, *a.shape[along + 1 :])
            part = standard.broadcast_to(part, shape)
        ends.append(part)
    found: Array = standard.diff(a, n=n, axis=along, prepend=ends[0], append=ends[1])
    return found


def _sort(a: Array, axis: Any = -1, kind: Any = None, order: Any = None, **keywords: Any) -> Any:
    found = a.flatten() if axis is None else a.copy()
    found.sort(axis=0 if axis is None else axis, kind=kind, **keywords)
    return found


def _argwhere(a: Array) -> Array:
    if a.ndim:
        return standard.argwhere(a)  # type: ignore[no-any-return]
    found: Array = standard.zeros((int(bool(a)), 0), dtype="int64", device=a.device)
    return found


def _take_along_axis(arr: Array, indices: Array, axis: Any = -1) -> Array:
    if axis is None:
        arr, axis = standard.reshape(arr, (-1,)), 0
    return standard.take_along_axis(arr, indices, axis=axis)  # type: ignore[no-any-return]


def _of_two(
    transform: Any, a: Any, s: Any = None, axes: Any = (-2, -1), *more: Any, **keywords: Any
) -> Any:
    return transform(a, s, axes, *more, **keywords)


_ADAPTED: dict[str, Any] = {
    "numpy.argwhere": _argwhere,
    "numpy.diff": _diff,
    "numpy.sort": _sort,
    "numpy.take_along_axis": _take_along_axis,
    "numpy.copy": lambda a, order="C", subok=False: a.copy(order),
    "numpy.copyto": _copyto,
    "numpy.concatenate": _joining("concat"),
    "numpy.broadcast_arrays": lambda *x, subok=False: standard.broadcast_arrays(*x),
    "numpy.meshgrid": _meshgrid,
    "numpy.roll": _roll,
    "numpy.tril": lambda m, k=0: standard.tril(_squared(m), k=k),
    "numpy.triu": lambda m, k=0: standard.triu(_squared(m), k=k),
    **{f"numpy.{name}": _joining(name) for name in ("hstack", "stack", "vstack")},
    "numpy.where": _where,
    **{
        f"numpy.fft.{name}2": partial(_of_two, getattr(np.fft, f"{name}n"))
        for name in ("fft", "ifft", "rfft", "irfft")
    },
    **{f"numpy.linalg.{name}": getattr(numpy_linalg, name) for name in numpy_linalg.__all__},
}
# Functions of numpy.linalg and numpy.fft that multiply or only rearrange, and keep integers.
_OF_INTEGERS = {"cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot"}
_OF_INTEGERS |= {"outer", "tensordot", "trace", "vecdot", "fftshift", "ifftshift"}


def call_numpy(array: Array, function: Any, types: Any, args: Any, keywords: Any) -> Any:
    """Return the result of a NumPy function for cuplug's arrays, as one of these.

    `array` is one of them, or the value of `like=`. Functions that are not in `cuplug.array_api`
    raise TypeError, on the host and on a GPU.
    """
    if not all(issubclass(x, (Array, np.ndarray)) for x in types):
        return NotImplemented
    name = function.__name__
    if name in _CREATING and function.__module__ == "numpy":
        return _CREATING[name](array.device, *args, **keywords)
    if name.endswith("_like"):
        return _new_like(function, args, keywords)
    own = _own(function)
    if own is not None:
        if own is not _copyto:
            args, keywords = _as_ours(args, keywords)
            args, keywords = _as_arrays(own, args, keywords)
        if function.__module__ != "numpy" and name not in _OF_INTEGERS:
            args = [_as_floats(x) for x in args]
            keywords = {key: _as_floats(x) for key, x in keywords.items()}
        return own(*args, **keywords)
    if name in _METHODS and function.__module__ == "numpy":
        return _by_method(_METHODS[name], function, args, keywords)
    is_on_gpu = gpu_in([*args, *keywords.values()], MAX_NDIM) is not None
    if name in _BY_ATTRIBUTES or (name in _OF_THE_HOST and not is_on_gpu):
        return function._implementation(*args, **keywords)
    raise TypeError(
        f"{_full_name(function)}: got a cuplug.Array{' in GPU memory' * is_on_gpu}, expected an "
        "array of NumPy's (cuplug.array_api has no such function); use x.numpy()"
    )


def _as_floats(x: Any) -> Any:
    is_whole = isinstance(x, Array) and kind_of(x.dtype) in ("bool", "int", "uint")
    return standard.astype(x, "float64") if is_whole else x


def _by_method(name: str, function: Any, args: Any, keywords: Any) -> Any:
    """Call a method with the arguments that are not NumPy's defaults."""
    parameters = inspect.signature(function).parameters
    given = inspect.signature(function).bind(*args, **keywords).arguments
    given |= given.pop("kwargs", {})
    device = gpu_in([*args, *keywords.values()], MAX_NDIM)
    out = {"out": given.pop("out")} if "out" in given else {}
    (x, *values), _ = _as_ours([*given.values()], {})
    if not isinstance(x, Array):
        if name == "put" or isinstance(x, np.ndarray):
            raise TypeError(f"{_full_name(function)}: got {_kind(x)}, expected a cuplug.Array")
        x = asarray(x, device="cpu" if device is None else device)
    if name == "clip":
        x, *values = with_lists((x, *values))
    known = dict(zip([*given][1:], values, strict=True)) | out
    known = {
        key: y
        for key, y in known.items()
        if key not in parameters or y is not parameters[key].default
    }
    places = [known.pop(key) for key in ("shape", "axes") if key in known]
    renamed = _PARAMETERS | ({"v": "values"} if name == "put" else {})
    return getattr(x, name)(*places, **{renamed.get(key, key): y for key, y in known.items()})


def _kind(x: Any) -> str:
    return f"{type(x).__module__}.{type(x).__name__}"


def _full_name(function: Any) -> str:
    return f"{function.__module__}.{function.__name__}"


@cache
def _own(function: Any) -> Any:
    """Return the function that replaces a NumPy function; None if none does, or a method does."""
    full = _full_name(function)
    if full in _ADAPTED:
        return _ADAPTED[full]
    room, _, name = full.rpartition(".")
    space = {"numpy": standard, "numpy.linalg": standard.linalg, "numpy.fft": standard.fft}.get(
        room
    )
    name = named(name) if room == "numpy" else name
    if (
        space is None
        or name in _METHODS.keys() | _BY_ATTRIBUTES | _CREATING.keys()
        or name not in space.__all__
    ):
        return None
    own = getattr(space, name)
    if "beyond" in standard._HOMES.get(name, "") and space is standard:
        return own  # with NumPy's parameters
    return lambda *args, **keywords: _bound(own, function, args, keywords)


def _bound(own: Any, function: Any, args: Any, keywords: Any) -> Any:
    """Call a function of the standard, which takes most parameters by name only."""
    n = sum(
        x.kind in (x.POSITIONAL_ONLY, x.VAR_POSITIONAL)
        for x in inspect.signature(own).parameters.values()
    )
    try:
        given = inspect.signature(function).bind(*args, **keywords)
    except ValueError:  # NumPy does not describe its parameters
        return own(*args, **keywords)
    names = [*given.arguments]
    if (
        names
        and inspect.signature(function).parameters[names[0]].kind
        == inspect.Parameter.VAR_POSITIONAL
    ):
        return own(*args, **keywords)
    out = None if "out" in inspect.signature(own).parameters else given.arguments.pop("out", None)
    if given.arguments.get("norm", "") is None:  # NumPy's default
        del given.arguments["norm"]
    names, values = [*given.arguments], [*given.arguments.values()]
    known = dict(zip(names[n:], values[n:], strict=True))
    places, known = _as_arrays(own, values[:n], known)
    return into_out(own(*places, **known), out)


@cache
def _parameters(own: Any) -> dict[str, bool]:
    """Return the names of parameters, and whether each is an array."""
    return {
        name: name != "out" and each.annotation in ("Array", "Array | None")
        for name, each in inspect.signature(own).parameters.items()
    }


def _as_arrays(own: Any, args: Any, keywords: Any) -> Any:
    """Return arguments with numbers and lists as arrays, if their parameters are arrays."""
    known = _parameters(own)
    device = next((x.device for x in (*args, *keywords.values()) if isinstance(x, Array)), None)

    def read(name: str, x: Any) -> Any:
        is_read = known.get(name) and isinstance(x, (list, tuple, *NUMBERS, np.generic))
        return asarray(x, device=device) if is_read and device is not None else x

    places = [read(name, x) for name, x in zip(known, args, strict=False)]
    named_ones = {name: read(name, x) for name, x in keywords.items()}
    return [*places, *args[len(places) :]], named_ones


def _as_ours(args: Any, keywords: Any) -> Any:
    """Return arguments with host arrays of NumPy as cuplug arrays."""
    if gpu_in([*args, *keywords.values()], MAX_NDIM) is not None:
        return args, keywords

    def ours(x: Any) -> Any:
        if isinstance(x, (list, tuple)) and any(isinstance(y, Array) for y in x):
            return [ours(y) for y in x]
        return asarray(x, device="cpu") if isinstance(x, np.ndarray) else x

    return [ours(x) for x in args], {name: ours(x) for name, x in keywords.items()}


def _new_like(function: Any, args: Any, keywords: Any) -> Array:
    """Return a new array on the device of another one, with its order of dimensions in memory."""
    name = _full_name(function)
    x, given = _bound_like(function, *args, **keywords)
    shape = x.shape if given.get("shape") is None else shape_of(f"{name}: shape", given["shape"])
    axes = memory_order(x, given.get("order", "K"), len(shape), name)
    dtype = x.dtype if given.get("dtype") is None else given["dtype"]
    values = [given["fill_value"]] if "fill_value" in given else []
    made = getattr(standard, function.__name__.removesuffix("_like"))(
        [shape[k] for k in axes],
        *values,
        dtype=dtype,
        device=given.get("device") or getattr(x, "device", None),
    )
    found: Array = standard.permute_dims(made, [axes.index(k) for k in range(len(axes))])
    return found


def _bound_like(function: Any, x: Any, *args: Any, **keywords: Any) -> tuple[Any, dict[str, Any]]:
    """Return the array and the other arguments by name, also of functions without a signature."""
    values = ("fill_value",) if function.__name__ == "full_like" else ()
    names = (*values, "dtype", "order", "subok", "shape")
    given = dict(zip(names, args, strict=False)) | keywords
    return x, given
