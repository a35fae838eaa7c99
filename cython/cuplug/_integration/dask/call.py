# SPDX-License-Identifier: Apache-2.0
"""A call on dask arrays as `dask.array.blockwise`, derived only from the signature.

Arrays may be split along loop dimensions, and along dimensions that the operator declares
independent. Along all others, an array must be one block. Arrays that users have split are not
rechunked.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import dask.array as da
import numpy as np
from dask.array.utils import meta_from_array
from dask.delayed import Delayed

from cuplug._engine.base.numpy_dtypes import numpy_dtype
from cuplug._engine.call.operator import Operator
from cuplug._engine.call.output_tuples import named_outputs
from cuplug._engine.signature.evaluate import ARRAYS, LOOP
from cuplug._engine.signature.parallel_dims import CUT
from cuplug._engine.signature.signature import Parameter, Signature, refuse_handles, signatures_of
from cuplug._engine.signature.spec import ArraySpec
from cuplug._integration.dask.block import Block, Item, Place
from cuplug._integration.dask.chunked import call_in_chunks
from cuplug._integration.frameworks.call import Call, Label, Symbols, Unknown, match

__all__ = ["call_on_blocks"]

_Given = dict[int | str, Any]  # arguments by position or name


@dataclass
class _Input:
    """One array of a call."""

    parameter: Parameter
    place: Place
    array: da.Array
    is_whole: bool  # it was not a dask array
    labels: tuple[Label, ...] = ()


def call_on_blocks(operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the outputs of a call as lazy dask arrays.

    Raises
    ------
    TypeError, ValueError
        The operator rejects the arguments, or an array is split where it must not be.
    """
    refuse_handles(operator, "a call with dask arrays", "call it on x.compute()")
    device = keywords.get("device")
    wanted: _Given = {name: bool(keywords.get(name)) for name in operator.returns}
    given: _Given = dict(enumerate(args))
    given.update((name, x) for name, x in keywords.items() if name not in wanted)
    for name in ("device", "out", "stream"):
        if given.pop(name, None) is not None and name != "device":
            raise TypeError(
                f"{operator.name}: {name}: got a value, expected None (blocks of dask are new)"
            )
    call = _match(operator, given)
    inputs = list(_inputs(call.signature, given))
    _refuse_changes(call.signature, inputs)
    _label(call, inputs)
    if _are_axes_split(call, inputs) and (found := _in_chunks(call, inputs, given, device)):
        return _returned(call.signature, found)
    _check_blocks(call, inputs)
    block = _block(operator, given | wanted, inputs, device)
    left_out = {number for name, number in operator.returns.items() if not wanted[name]}
    return _outputs(call, inputs, block, left_out)


# ---- Arguments -----------------------------------------------------------------------------------


class _Symbols(Symbols):
    """Sizes of dask arrays, which may be unknown until the blocks are computed."""

    def is_open(self, x: Any) -> bool:
        """Add a check that the core lacks: an array without dimensions may be a number."""
        return super().is_open(x) or (isinstance(x, ArraySpec) and not x.shape)

    def unknown(self) -> Any:
        return Unknown()


def _match(operator: Operator, given: _Given) -> Call:
    """Find the overload that accepts the arguments."""
    specs = {key: _spec(operator, key, x) for key, x in given.items()}
    args = [specs[k] for k in sorted(key for key in specs if isinstance(key, int))]
    keywords = {key: x for key, x in specs.items() if isinstance(key, str)}
    return match(operator, signatures_of(operator), args, keywords, _Symbols())


def _spec(operator: Operator, key: int | str, x: Any) -> Any:
    """Return an array as its ArraySpec, and other objects unchanged."""
    if isinstance(x, (list, tuple)):
        return [_spec(operator, key, item) for item in x]
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, type):  # a dtype, whose class has the attributes of arrays
        return x
    if isinstance(x, Delayed):
        raise TypeError(
            f"{operator.name}: {_name(operator, key)}: got an object of dask.delayed, expected an "
            "array (dask.array.from_delayed makes one, of a number with shape=())"
        )
    if not (hasattr(x, "dtype") and hasattr(x, "shape")):
        return x
    try:
        return ArraySpec(x.dtype, tuple(map(_to_size, x.shape)))
    except TypeError:
        raise TypeError(
            f"{operator.name}: {_name(operator, key)}: got "
            f"{x.dtype}[{', '.join(map(str, x.shape))}], expected an array of numbers"
        ) from None


def _name(operator: Operator, key: int | str) -> str:
    """Return the name of an argument in the first overload that has it."""
    if isinstance(key, str):
        return key
    rows = [row.parameters for row in signatures_of(operator)]
    return next((row[key].name for row in rows if key < len(row)), f"argument {key}")


def _to_size(size: float) -> Any:
    """Return a size of a dask array; unknown sizes are NaN."""
    return Unknown() if math.isnan(size) else int(size)


def _inputs(signature: Signature, given: _Given) -> Iterator[_Input]:
    for k, x in enumerate(signature.parameters):
        key = k if k in given else x.name
        value = given.get(key)
        if x.kind == "arrays" and value is not None:
            for item, array in enumerate(value):
                yield _Input(x, (key, item), _as_dask(array), not isinstance(array, da.Array))
        elif isinstance(value, da.Array) or (x.is_array and value is not None):
            yield _Input(x, (key, None), _as_dask(value), not isinstance(value, da.Array))


def _as_dask(x: Any) -> da.Array:
    """Return an array as one block."""
    if isinstance(x, da.Array):
        return x
    if isinstance(x, np.ndarray):
        return da.from_array(x, chunks=x.shape)
    name = f"array-{da.core.tokenize(x)}"
    key = (name, *(0 for _ in x.shape))
    return da.Array({key: x}, name, tuple((n,) for n in x.shape), meta=meta_from_array(x))


def _refuse_changes(signature: Signature, inputs: list[_Input]) -> None:
    for x in inputs:
        if x.parameter.is_inout:
            raise TypeError(
                f"{signature.name}: {x.parameter.name}: got a Dask array, expected "
                "a NumPy array or the like, as it is changed in place"
            )
    if not signature.outputs:
        raise TypeError(f"{signature.name}: got dask arrays, expected other arrays (no outputs)")


# ---- Dimensions ----------------------------------------------------------------------------------


def _label(call: Call, inputs: list[_Input]) -> None:
    """Label each dimension of each array. Equal labels are one index of `blockwise`.

    Each dimension that is not split has its own index without a name, since it is not aligned.
    """
    alone = count()
    for x in inputs:
        is_array = x.parameter.kind in ARRAYS  # a number has no dimensions
        labels = call.labels(x.parameter, x.array.ndim) if is_array else []
        x.labels = tuple(label or ("", next(alone)) for label in labels)


def _check_blocks(call: Call, inputs: list[_Input]) -> None:
    for x in inputs:
        for k, ((name, _), n) in enumerate(zip(x.labels, x.array.numblocks, strict=True)):
            if n > 1 and not name:
                shape = call.signature.shape(x.parameter)
                array = x.parameter.name
                error = ValueError(
                    f"{call.operator.name}: {array}: got {n} blocks along dimension {k} of "
                    f"[{shape}], expected one: pass {array}.rechunk({{{k}: -1}})"
                )
                vars(error)[CUT] = array, k - x.array.ndim
                raise error


def _are_axes_split(call: Call, inputs: list[_Input]) -> bool:
    """Return whether an array is split along an axis of a reduction or a scan."""
    ndim, axes = len(call.names[LOOP]) if call.whole else 0, call.whole or ()
    return any(
        n > 1 and k + ndim - x.array.ndim in axes
        for x in inputs
        for k, n in enumerate(x.array.numblocks)
    )


def _in_chunks(call: Call, inputs: list[_Input], given: _Given, device: Any) -> Any:
    arrays = {x.parameter.name: x.array for x in inputs}
    names = [x.name for x in call.signature.parameters]
    rest = {names[key] if isinstance(key, int) else key: x for key, x in given.items()}
    rest = {name: x for name, x in rest.items() if name not in arrays}
    return call_in_chunks(call, arrays, rest | _device(device))


def _device(device: Any) -> dict[str, Any]:
    """Return the keyword for the device of a task."""
    if device is None:
        return {}
    return {"device": device if isinstance(device, int) else str(device)}


# ---- Tasks ---------------------------------------------------------------------------------------


def _block(operator: Operator, given: _Given, inputs: list[_Input], device: Any) -> Block:
    places = tuple(x.place for x in inputs)
    alone = {key for key, item in places if item is None}
    lists = {key for key, item in places if item is not None}
    kept = {
        key: None if key in alone else [None] * len(x) if key in lists else x
        for key, x in given.items()
    }
    positions = sorted(key for key in kept if isinstance(key, int))
    keywords = {key: x for key, x in kept.items() if isinstance(key, str)}
    keywords |= _device(device)
    args = tuple(kept[k] for k in positions)
    moved = (x for x in inputs if x.is_whole and not x.parameter.is_on_host)
    whole = frozenset(x.place for x in moved)
    return Block(pickle.dumps(operator), args, keywords, places, whole)


def _outputs(call: Call, inputs: list[_Input], block: Block, left_out: set[int]) -> Any:
    signature = call.signature
    pairs = [part for x in inputs for part in (x.array, x.labels)]
    if len(signature.outputs) == 1:
        return None if left_out else _output(call, 0, pairs, block)
    loop = tuple(dict.fromkeys(label for x in inputs for label in x.labels if label[0]))
    meta = np.empty((0,) * len(loop), dtype=object)
    # One task computes all outputs. Its blocks are tuples.
    together = da.blockwise(block, loop, *pairs, token=signature.name, dtype=object, meta=meta)
    first = [inputs[0].array, ()] if inputs else []
    outputs = tuple(
        None if k in left_out else _output(call, k, [together, loop], Item(k), first)
        for k in range(len(signature.outputs))
    )
    return _returned(signature, outputs)


def _returned(signature: Signature, outputs: tuple[Any, ...]) -> Any:
    """Return outputs as a call does: one, or a tuple, which is named if they have names."""
    names = tuple(x.name for x in signature.outputs)
    if len(names) == 1:
        return outputs[0]
    return named_outputs(signature.name, names, outputs) if all(names) else outputs


def _output(
    call: Call, number: int, pairs: list[Any], function: Any, first: list[Any] | None = None
) -> da.Array:
    output, spec = call.signature.outputs[number], call.outputs[number]
    given = {label for own in pairs[1::2] for label in own}
    labels: list[Label] = []
    new: dict[Label, tuple[float, ...]] = {}
    sizes = zip(call.labels(output, spec.ndim), call.shape(output, spec), strict=True)
    for at, (label, size) in enumerate(sizes):
        if label is None or label not in given:
            label = (f"output {number}", at)
            new[label] = (math.nan if isinstance(size, Unknown) else int(size),)
        labels.append(label)
    meta = meta_from_array((first or pairs)[0]._meta, spec.ndim, numpy_dtype(spec.dtype))
    token = "-".join(filter(None, (call.operator.name, output.name)))
    return da.blockwise(
        function, labels, *pairs, new_axes=new, token=token, dtype=meta.dtype, meta=meta
    )
