# SPDX-License-Identifier: Apache-2.0
"""Sharding strategies for PyTorch's DTensor: the dimensions along which arrays may be split."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from cuplug._engine.signature.evaluate import ARRAYS
from cuplug._engine.signature.signature import Parameter
from cuplug._engine.signature.spec import ArraySpec
from cuplug._integration.frameworks.call import Call, Label
from cuplug._integration.torch.fake import matched
from cuplug._integration.torch.schema import Entry

__all__ = ["add_strategy"]

# numbers and sizes of the dimensions along which an array may be split
_Dims = dict[Label, tuple[int, Any]]
_known: set[Any] = set()  # overloads that are registered, or have no strategy


def add_strategy(entry: Entry) -> None:
    """Register the strategy of an overload once, in processes that use DTensor.

    Overloads that modify tensors or have lists of tensors have none.
    """
    if "torch.distributed.tensor" not in sys.modules or entry.call in _known:
        return
    try:
        from torch.distributed.tensor.experimental import register_sharding
    except ImportError:  # before PyTorch 2.6
        return
    overload = entry.overload
    if overload.has_tensor and overload.n_outputs and not (overload.mutated or overload.has_lists):
        register_sharding(entry.call)(partial(_placements, entry))
    _known.add(entry.call)


def _placements(entry: Entry, *args: Any) -> list[tuple[list[Any], list[Any]]]:
    """Return the placements of outputs and arguments that a call accepts, along one mesh axis."""
    specs = [_spec(x) for x in args]
    call = matched(entry.whole, entry.named(specs))
    parameters = {x.name: x for x in call.signature.parameters}
    pairs = zip(entry.names, specs, strict=False)
    inputs = [_dims(call, parameters[n], x) if isinstance(x, ArraySpec) else None for n, x in pairs]
    outputs = [*map(partial(_dims, call), call.signature.outputs, call.outputs)]
    labels = [label for label in outputs[0] if _is_common(label, outputs, inputs)]
    return [
        ([_placed(x, label) for x in outputs], [_placed(x, label) for x in inputs])
        for label in (None, *labels)
    ]


def _spec(x: Any) -> Any:
    """Return cuplug's description of the tensor of a DTensor, and other arguments unchanged."""
    return ArraySpec(x.tensor_meta.dtype, x.shape) if hasattr(x, "tensor_meta") else x


def _dims(call: Call, x: Parameter, spec: ArraySpec) -> _Dims:
    """Return dimensions, omitting dimensions of size 1, which are broadcast."""
    labels = call.labels(x, spec.ndim) if x.kind in (*ARRAYS, "output") else []
    pairs = zip(labels, enumerate(spec.shape), strict=False)
    return {x: dim for x, dim in pairs if x and labels.count(x) == 1 and dim[1] != 1}


def _is_common(label: Label, outputs: list[_Dims], inputs: list[_Dims | None]) -> bool:
    """Return whether all outputs and some inputs have a dimension, with the same size."""
    sizes = [x[label][1] for x in (*outputs, *inputs) if x and label in x]
    n_made = sum(label in x for x in outputs)
    return n_made == len(outputs) < len(sizes) and all(size == sizes[0] for size in sizes)


def _placed(dims: _Dims | None, label: Label | None) -> Any:
    from torch.distributed.tensor import Replicate, Shard

    if dims is None:  # not a tensor
        return None
    return Shard(dims[label][0]) if label in dims else Replicate()
