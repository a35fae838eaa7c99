# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans of dask arrays that are split along the axes: a tree, or a chain, of tasks.

The operators for the tasks are from `cuplug._source.expressions.chunked`. A task of the first
step returns `Values` for its blocks. Later tasks receive the values of several blocks.
"""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.array.core import unify_chunks
from dask.array.dispatch import concatenate_lookup
from dask.array.utils import meta_from_array
from dask.highlevelgraph import HighLevelGraph

from cuplug._engine.base.numpy_dtypes import numpy_dtype
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.evaluate import ARRAYS, LOOP
from cuplug._integration.dask.block import Block, Item, gpu_of, only_block, sent
from cuplug._integration.frameworks.call import Call
from cuplug._source.expressions.chunked import N_ELEMENTS, Chunked, chunked

__all__ = ["call_in_chunks"]

Arrays = tuple[Any, ...]


class Values(NamedTuple):
    """The accumulated state of a reduction or scan: arrays, and the number of elements."""

    arrays: Arrays
    n_elements: int


class Nothing(NamedTuple):
    """Blocks without elements, for a reduction without an identity."""

    blocks: Arrays


def call_in_chunks(
    call: Call, arrays: Mapping[str, da.Array], given: Mapping[str, Any]
) -> tuple[da.Array, ...] | None:
    """Return the outputs of a reduction or a scan; None if it needs one block along its axes.

    Parameters
    ----------
    call : Call
        The call. Its unsplittable loop dimensions are the axes.
    arrays : mapping of str to dask.array.Array
        The arrays, by parameter.
    given : mapping of str to object
        The other arguments, by parameter, and `device`.
    """
    parameters = {x.name: x for x in call.signature.parameters}
    if not all(parameters[name].kind in ARRAYS for name in arrays):
        return None  # a number that is not yet known
    specs = [*(call.given[name] for name in arrays), *call.outputs]
    found = chunked(call.operator, [numpy_dtype(x.dtype).name for x in specs])
    if found is None:
        return None
    ndim = len(call.names[LOOP])
    labels = tuple(range(ndim))
    pairs = [part for x in arrays.values() for part in (x, labels[ndim - x.ndim :])]
    chunks, unified = unify_chunks(*pairs)
    pairs = [part for x in unified for part in (x, labels[ndim - x.ndim :])]
    scheme = _Scheme(call, found, tuple(arrays), given, pairs, chunks, labels)
    return scheme.reduced() if call.signature.reduces else scheme.scanned()


@dataclass
class _Scheme:
    """One call, with arrays that are split in the same places."""

    call: Call
    found: Chunked
    names: tuple[str, ...]
    given: Mapping[str, Any]
    pairs: list[Any]
    chunks: Mapping[int, Sequence[float]]
    labels: tuple[int, ...]

    def reduced(self) -> tuple[da.Array, ...] | None:
        """Return the outputs of a reduction, computed by a tree of tasks."""
        axes, starts = tuple(sorted(self.call.whole or ())), []
        lengths = tuple(sum(self.chunks[k]) for k in axes) if self.found.is_chosen else ()
        if any(map(math.isnan, lengths)):
            return None  # the numbers of elements are unknown
        if lengths:
            starts = [part for k in axes for part in (_starts(self.chunks[k]), (k,))]
        block = self._block(self.found.chunk, axis=axes, keepdims=True)
        values = self._objects(
            _Chunk(block, axes, tuple(map(int, lengths)), self.found.has_identity),
            [*self.pairs, *starts],
            {k: (1,) * len(self.chunks[k]) for k in axes},
        )
        keepdims = bool(self.call.names["keepdims"])
        whole = self._block(self.call.operator, axis=axes, keepdims=keepdims)
        combine = _Combine(pickle.dumps(self.found.combine), self._scalars(), axes)
        together = da.reduction(
            values,
            _unchanged,
            _Aggregate(
                pickle.dumps(self.found.aggregate),
                self._scalars(),
                axes,
                keepdims,
                self.found.counts,
                whole,
            ),
            combine=combine,
            axis=axes,
            keepdims=keepdims,
            concatenate=False,
            dtype=object,
            meta=_meta(len(self.labels) if keepdims else len(self.labels) - len(axes)),
            name=None,
        )
        return self._outputs(together)

    def scanned(self) -> tuple[da.Array, ...] | None:
        """Return the outputs of a scan. The last value of a block is passed to the next one."""
        axis = next(iter(self.call.whole or ()))
        if self.found.counts and any(map(math.isnan, self.chunks[axis])):
            return None
        found, pairs = self.found, self.pairs
        local = self._objects(_Scan(self._block(found.chunk, axis=axis)), pairs)
        inclusive = self._block(found.inclusive, axis=axis) if found.inclusive else None
        joined = _Join(pickle.dumps(found.combine), self._scalars())
        last = self._objects(_Last(inclusive, joined, axis), [local, self.labels, *pairs])
        carried = self._carried(last, joined, axis)
        numbers = [_starts(self.chunks[axis]), (axis,)] if found.counts else []
        aggregate = pickle.dumps(found.aggregate)
        offset = int(found.inclusive is None) if found.counts else None
        finish = _Finish(joined, aggregate, self._scalars(), axis, offset)
        return self._outputs(
            self._objects(finish, [local, self.labels, carried, self.labels, *numbers])
        )

    def _carried(self, last: da.Array, joined: _Join, axis: int) -> da.Array:
        """Return the values of all elements before each block: a chain of tasks along the axis."""
        name = f"{self.call.operator.name}-carried-{da.core.tokenize(last.name, joined)}"
        tasks: dict[Any, Any] = {}
        for at in itertools.product(*map(range, last.numblocks)):
            before = (*at[:axis], at[axis] - 1, *at[axis + 1 :])
            key, end = (name, *at), (last.name, *before)
            if at[axis] == 0:
                tasks[key] = ()
            elif at[axis] == 1:
                tasks[key] = end
            else:
                tasks[key] = (joined, (name, *before), end)
        graph = HighLevelGraph.from_collections(name, tasks, dependencies=[last])
        return da.Array(graph, name, last.chunks, meta=last._meta)

    def _objects(self, function: Any, pairs: list[Any], chunks: Any = None) -> da.Array:
        """Return an array whose blocks are a function's results."""
        return da.blockwise(
            function,
            self.labels,
            *pairs,
            adjust_chunks=chunks,
            align_arrays=False,
            token=self.call.operator.name,
            dtype=object,
            meta=_meta(len(self.labels)),
        )

    def _outputs(self, together: da.Array) -> tuple[da.Array, ...]:
        labels = tuple(range(together.ndim))
        metas = [
            meta_from_array(self.pairs[0]._meta, together.ndim, numpy_dtype(x.dtype))
            for x in self.call.outputs
        ]
        name = self.call.operator.name
        return tuple(
            da.blockwise(Item(k), labels, together, labels, token=name, dtype=meta.dtype, meta=meta)
            for k, meta in enumerate(metas)
        )

    def _scalars(self) -> dict[str, Any]:
        return {name: self.given[name] for name in self.found.scalars if name in self.given}

    def _block(self, operator: Operator, **fixed: Any) -> Block:
        keywords = dict(self.given) | dict.fromkeys(self.names) | fixed
        places = tuple((name, None) for name in self.names)
        return Block(pickle.dumps(operator), (), keywords, places, frozenset())


def _meta(ndim: int) -> Any:
    return np.empty((0,) * ndim, dtype=object)


def _starts(chunks: Sequence[float]) -> da.Array:
    """Return the number of the first element of each chunk, as one block for each."""
    return da.from_array(np.cumsum([0, *chunks[:-1]], dtype=np.int64), chunks=1)


# ---- Tasks ---------------------------------------------------------------------------------------


def _unchanged(x: Any, axis: Any = None, keepdims: Any = None) -> Any:
    return x


def _tuple(x: Any) -> Arrays:
    return tuple(x) if isinstance(x, tuple) else (x,)


def _flat(blocks: Any) -> Iterator[Any]:
    if not isinstance(blocks, list):
        yield blocks
    else:
        for block in blocks:
            yield from _flat(block)


def _joined(blocks: Any, axis: int) -> Values | Nothing:
    """Return the values of several blocks, concatenated along an axis."""
    found = list(_flat(blocks))
    some = [x for x in found if isinstance(x, Values)]
    if not some:
        return found[0]  # type: ignore[no-any-return]
    arrays = zip(*(x.arrays for x in some), strict=True)
    concatenate = concatenate_lookup.dispatch(type(some[0].arrays[0]))
    joined = tuple(concatenate(x, axis=axis) for x in arrays)
    return Values(joined, sum(x.n_elements for x in some))


@dataclass(frozen=True)
class _Chunk:
    """The values of a block."""

    block: Block
    axes: tuple[int, ...]
    lengths: tuple[int, ...]  # of the array along the axes, if elements are chosen
    has_identity: bool

    def __call__(self, *blocks: Any) -> Values | Nothing:
        """Reduce the block along the axes."""
        n_arrays = len(blocks) - len(self.lengths)
        arrays = [only_block(x) for x in blocks[:n_arrays]]
        shape = np.broadcast_shapes(*(tuple(x.shape) for x in arrays))
        sizes = [shape[k] for k in self.axes]
        if not (math.prod(sizes) or self.has_identity):
            return Nothing(tuple(arrays))
        found = _tuple(self.block(*arrays))
        if self.lengths:
            starts = [int(only_block(x)[0]) for x in blocks[n_arrays:]]
            found = (found[0], self._number(found[1], sizes, starts))
        return Values(found, math.prod(sizes))

    def _number(self, number: Any, sizes: list[int], starts: list[int]) -> Any:
        """Return the number of an element in the array from its number in the block."""
        found, step = 0, 1
        for size, start, length in zip(sizes[::-1], starts[::-1], self.lengths[::-1], strict=True):
            found = found + (number % size + start) * step
            number, step = number // size, step * length
        return found


@dataclass(frozen=True)
class _Combine:
    """The single value of several blocks."""

    operator: bytes
    scalars: dict[str, Any]
    axes: tuple[int, ...]

    def __call__(self, blocks: Any, axis: Any = None, keepdims: Any = None) -> Values | Nothing:
        """Reduce the values."""
        found = _joined(blocks, self.axes[0])
        if isinstance(found, Nothing):
            return found
        reduce = pickle.loads(self.operator)
        arrays = reduce(*found.arrays, **self.scalars, axis=self.axes[0], keepdims=True)
        return Values(_tuple(arrays), found.n_elements)


@dataclass(frozen=True)
class _Aggregate(_Combine):
    """The outputs for the last group of blocks."""

    keepdims: bool
    counts: bool
    whole: Block

    def __call__(self, blocks: Any, axis: Any = None, keepdims: Any = None) -> Any:
        """Reduce the values to outputs. Blocks without elements are rejected as in any call."""
        found = _joined(blocks, self.axes[0])
        if isinstance(found, Nothing):
            return _tuple(self.whole(*found.blocks))
        keywords = self.scalars | ({N_ELEMENTS: found.n_elements} if self.counts else {})
        reduce = pickle.loads(self.operator)
        return _tuple(reduce(*found.arrays, **keywords, axis=self.axes, keepdims=self.keepdims))


@dataclass(frozen=True)
class _Join:
    """Values of preceding elements and of these. The values of no elements are an empty tuple."""

    operator: bytes
    scalars: dict[str, Any]

    def __call__(self, first: Arrays, second: Arrays) -> Arrays:
        """Combine the values element by element."""
        if not (first and second):
            return first or second
        return _tuple(pickle.loads(self.operator)(*first, *second, **self.scalars))


@dataclass(frozen=True)
class _Scan:
    """The values of a block, scanned as if it were the first."""

    block: Block

    def __call__(self, *blocks: Any) -> Arrays:
        """Scan the block."""
        return _tuple(self.block(*map(only_block, blocks)))


@dataclass(frozen=True)
class _Last:
    """The value of all elements in a block."""

    inclusive: Block | None
    joined: _Join
    axis: int

    def __call__(self, local: Arrays, *blocks: Any) -> Arrays:
        """Return the last value of an inclusive scan."""
        if not local[0].shape[self.axis]:
            return ()
        ends = tuple(map(self._end, local))
        if self.inclusive is None:
            return ends
        arrays = [only_block(x) for x in blocks]
        ndim = max(x.ndim for x in arrays)
        last = [x if x.ndim < ndim - self.axis else self._end(x, x.ndim - ndim) for x in arrays]
        return self.joined(ends, _tuple(self.inclusive(*last)))

    def _end(self, x: Any, offset: int = 0) -> Any:
        return x[(*(slice(None),) * (self.axis + offset), slice(-1, None))]


@dataclass(frozen=True)
class _Finish:
    """The outputs of a block, from the values of the preceding elements."""

    joined: _Join
    operator: bytes
    scalars: dict[str, Any]
    axis: int
    offset: int | None  # for the number of elements; None: unused

    def __call__(self, local: Arrays, before: Arrays, *start: Any) -> Arrays:
        """Combine both, element by element."""
        values = self.joined(before, local)
        keywords = dict(self.scalars)
        if self.offset is not None:
            first, shape = int(only_block(start[0])[0]) + self.offset, values[0].shape
            count = np.arange(first, first + shape[self.axis], dtype=np.int64)
            count = count.reshape([-1 if k == self.axis else 1 for k in range(len(shape))])
            gpu = gpu_of(values[0])
            keywords[N_ELEMENTS] = sent(count, gpu) if gpu else count
        return _tuple(pickle.loads(self.operator)(*values, **keywords))
