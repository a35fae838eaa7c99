# SPDX-License-Identifier: Apache-2.0
"""A call on dask arrays as `dask.array.blockwise`, from the signature alone.

Arrays are cut along loop dimensions, and along those that the operator calls independent. Along all
others an array must be one block: nothing is joined that its owner has cut.
"""

from __future__ import annotations

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
from cuplug._engine.signature.parallel_dims import CUT, dimension_name, independent, loop_axes
from cuplug._engine.signature.signature import (
    GROUP_KINDS,
    Parameter,
    Signature,
    refuse_handles,
    signatures_of,
)
from cuplug._engine.signature.spec import ArraySpec
from cuplug._engine.signature.symbolic import Misfit, Walked, walk
from cuplug._integration.frameworks.dask_block import Block, Item, Place
from cuplug._integration.frameworks.dask_sizes import BlockSizes, Unknown, output_sizes, to_size

__all__ = ["call_on_blocks"]

Label = tuple[str, int]  # of a dimension: the name, and which of a group
_Given = dict[int | str, Any]  # arguments by position or name


@dataclass
class _Input:
    """One array of a call."""

    parameter: Parameter
    place: Place
    array: da.Array
    is_whole: bool  # it was no dask array
    labels: tuple[Label, ...] = ()


def call_on_blocks(operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the outputs of a call as dask arrays; nothing is computed.

    Raises
    ------
    TypeError, ValueError
        The operator does not take the arguments, or an array is cut where it must not be.
    """
    refuse_handles(operator, "a call with dask arrays", "call it on x.compute()")
    if operator.returns:
        raise TypeError(
            f"{operator.name}: got dask arrays, expected others: it has optional outputs; call it "
            "on x.compute()"
        )
    device = keywords.get("device")
    given: _Given = dict(enumerate(args))
    given.update(keywords)
    for name in ("device", "out", "stream"):
        if given.pop(name, None) is not None and name != "device":
            raise TypeError(f"{operator.name}: {name}: seen with dask arrays, whose blocks are new")
    signature, walked = _match(operator, given)
    inputs = list(_inputs(signature, given))
    _refuse_changes(signature, inputs)
    cut = independent(signature, operator.properties[walked.row])
    whole = loop_axes(signature, walked.names)
    if whole is not None:
        cut = {LOOP}
    _label(signature, inputs, cut, whole or set(), len(walked.names[LOOP]))
    _check_blocks(signature, inputs, cut)
    block = _block(operator, given, inputs, device)
    return _outputs(signature, walked, inputs, cut, block)


# ---- Arguments -----------------------------------------------------------------------------------


def _match(operator: Operator, given: _Given) -> tuple[Signature, Walked]:
    """Find the row that takes the arguments; the core is asked where it can be told all sizes."""
    rows = signatures_of(operator)
    specs = {key: _spec(operator, key, x) for key, x in given.items()}
    tried = range(len(rows))
    if not any(map(_is_unknown, specs.values())):
        positional = [specs[k] for k in sorted(key for key in specs if isinstance(key, int))]
        named = {key: x for key, x in specs.items() if isinstance(key, str)}
        row = operator.infer(*positional, **named).row
        tried = range(row, row + 1)
    error = Misfit("")
    for row in tried:
        try:
            walked = walk([rows[row]], _in_order(rows[row], specs), BlockSizes())
            return rows[row], Walked(row, walked.names, walked.outputs)
        except Misfit as misfit:
            error = misfit
    raise TypeError(str(error)) from None


def _spec(operator: Operator, key: int | str, x: Any) -> Any:
    """Return an array without its elements, and what is none as it is."""
    if isinstance(x, (list, tuple)):
        return [_spec(operator, key, item) for item in x]
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, Delayed):
        raise TypeError(
            f"{operator.name}: {_name(operator, key)}: seen an object of dask.delayed, wanted an "
            "array (dask.array.from_delayed makes one, of a number with shape=())"
        )
    if not (hasattr(x, "dtype") and hasattr(x, "shape")):
        return x
    try:
        return ArraySpec(x.dtype, tuple(map(to_size, x.shape)))
    except TypeError:
        raise TypeError(
            f"{operator.name}: {_name(operator, key)}: seen "
            f"{x.dtype}[{', '.join(map(str, x.shape))}], wanted an array of numbers"
        ) from None


def _name(operator: Operator, key: int | str) -> str:
    """Return the name of an argument, as the first row that has it says."""
    if isinstance(key, str):
        return key
    rows = [row.parameters for row in signatures_of(operator)]
    return next((row[key].name for row in rows if key < len(row)), f"argument {key}")


def _is_unknown(spec: Any) -> bool:
    """Say whether the core cannot tell of an argument: without dimensions, it may be a number."""
    if isinstance(spec, list):
        return any(map(_is_unknown, spec))
    if not isinstance(spec, ArraySpec):
        return False
    return not spec.shape or any(isinstance(size, Unknown) for size in spec.shape)


def _in_order(signature: Signature, specs: _Given) -> list[Any]:
    """Return the arguments in the order of the parameters, with the defaults of those left out."""
    names = [x.name for x in signature.parameters]
    strange = [key for key in specs if key not in (*names, *range(len(names)))]
    if strange:
        raise Misfit(f"{signature.name}: seen the argument {strange[0]!r}, wanted {names}")
    ordered = []
    for k, x in enumerate(signature.parameters):
        if k not in specs and x.name not in specs and not x.has_default:
            raise Misfit(f"{signature.name}: {x.name}: it is missing")
        value = specs.get(k, specs.get(x.name, x.default))
        is_number = x.kind not in ARRAYS and isinstance(value, ArraySpec) and not value.shape
        ordered.append(Unknown() if is_number else value)
    return ordered


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
                f"{signature.name}: {x.parameter.name}: seen in a call on dask arrays, wanted "
                "a NumPy array or the like, as it is changed in place"
            )
    if not signature.outputs:
        raise TypeError(f"{signature.name}: seen dask arrays, and it has no outputs to compute")


# ---- Dimensions ----------------------------------------------------------------------------------


def _label(
    signature: Signature, inputs: list[_Input], cut: set[str], whole: set[int], n_loop: int
) -> None:
    """Name each dimension of each array: those of one name are one index of `blockwise`.

    Those that are not cut, as the loop dimensions in `whole`, are an index of their own, without a
    name: there is nothing to align.
    """
    alone = count()
    for x in inputs:
        dims = x.parameter.dims if x.parameter.kind in ARRAYS else ()  # of a number: none
        n_group = x.array.ndim - sum(kind not in GROUP_KINDS for kind, _ in dims)
        labels: list[Label] = []
        for kind, value in dims:
            name = dimension_name(signature, kind, value)
            first = n_loop - n_group if kind == "loop" else 0
            numbers = range(first, first + (n_group if kind in GROUP_KINDS else 1))
            are_cut = [name in cut and not (kind == "loop" and k in whole) for k in numbers]
            labels += [
                (name, k) if is_cut else ("", next(alone))
                for k, is_cut in zip(numbers, are_cut, strict=True)
            ]
        x.labels = tuple(labels)


def _check_blocks(signature: Signature, inputs: list[_Input], cut: set[str]) -> None:
    for x in inputs:
        for k, ((name, _), n) in enumerate(zip(x.labels, x.array.numblocks, strict=True)):
            if n > 1 and name not in cut:
                shape = signature.shape(x.parameter)
                array = x.parameter.name
                error = ValueError(
                    f"{signature.name}: {array}: seen {n} blocks along dimension {k} of [{shape}], "
                    f"wanted one: pass {array}.rechunk({{{k}: -1}})"
                )
                vars(error)[CUT] = array, k - x.array.ndim
                raise error


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
    if device is not None:
        keywords["device"] = device if isinstance(device, int) else str(device)
    args = tuple(kept[k] for k in positions)
    whole = frozenset(x.place for x in inputs if x.is_whole)
    return Block(pickle.dumps(operator), args, keywords, places, whole)


def _outputs(
    signature: Signature, walked: Walked, inputs: list[_Input], cut: set[str], block: Block
) -> Any:
    pairs = [part for x in inputs for part in (x.array, x.labels)]
    if len(signature.outputs) == 1:
        return _output(signature, walked, 0, pairs, cut, block)
    loop = tuple(dict.fromkeys(label for x in inputs for label in x.labels if label[0] in cut))
    meta = np.empty((0,) * len(loop), dtype=object)
    # One task for all outputs, whose blocks are tuples.
    together = da.blockwise(block, loop, *pairs, token=signature.name, dtype=object, meta=meta)
    first = [inputs[0].array, ()] if inputs else []
    outputs = tuple(
        _output(signature, walked, k, [together, loop], cut, Item(k), first)
        for k in range(len(signature.outputs))
    )
    names = tuple(x.name for x in signature.outputs)
    return named_outputs(signature.name, names, outputs) if all(names) else outputs


def _output(
    signature: Signature,
    walked: Walked,
    number: int,
    pairs: list[Any],
    cut: set[str],
    function: Any,
    first: list[Any] | None = None,
) -> da.Array:
    output, spec = signature.outputs[number], walked.outputs[number]
    labels: list[Label] = []
    new: dict[Label, tuple[float, ...]] = {}
    given = {label for own in pairs[1::2] for label in own}
    numbers = _loop_numbers(signature, walked)
    for k, (kind, value, sizes) in enumerate(output_sizes(signature, output, walked.names, spec)):
        name = LOOP if kind == "reduced" else dimension_name(signature, kind, value)
        for at, size in enumerate(sizes):
            label = (name, numbers[at] if name == LOOP else at)
            if name not in cut or label not in given:
                label = (f"output {k}", at)
                new[label] = (size,)
            labels.append(label)
    meta = meta_from_array((first or pairs)[0]._meta, spec.ndim, numpy_dtype(spec.dtype))
    token = "-".join(filter(None, (signature.name, output.name)))
    return da.blockwise(
        function, labels, *pairs, new_axes=new, token=token, dtype=meta.dtype, meta=meta
    )


def _loop_numbers(signature: Signature, walked: Walked) -> list[int]:
    """Return which loop dimension each one of the outputs is."""
    every, axes = range(len(walked.names[LOOP])), loop_axes(signature, walked.names)
    is_kept = not signature.reduces or walked.names["keepdims"]
    return [k for k in every if is_kept or k not in (axes or ())]
