# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators on xarray's arrays: `xarray.apply_ufunc`, derived from the signature.

If all arrays of a signature have only loop dimensions, arrays are broadcast by the names of their
dimensions and keep their coordinates. For other signatures, only the user knows the meaning of the
dimensions.
"""

from __future__ import annotations

from typing import Any

import xarray

from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.parallel_dims import CUT
from cuplug._engine.signature.signature import Signature, signatures_of

__all__ = ["call_on_labelled"]

_LABELLED = (xarray.DataArray, xarray.Dataset, xarray.Variable)


def call_on_labelled(operator: Operator, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the results of an element-wise operator; NotImplemented for others."""
    signatures = signatures_of(operator)
    n_outputs = {len(signature.outputs) for signature in signatures}
    if (
        not all(map(_is_elementwise, signatures))
        or len(n_outputs) > 1
        or "out" in keywords
        or operator.returns
    ):
        return NotImplemented
    given: dict[int | str, Any] = dict(enumerate(args))
    given.update(keywords)
    arrays = {key: x for key, x in given.items() if _has_dimensions(x)}
    if not any(isinstance(x, _LABELLED) for x in arrays.values()):
        return NotImplemented  # it only resembles xarray's arrays

    def call(*plain: Any) -> Any:
        now = given | dict(zip(arrays, plain, strict=True))
        return operator(
            *(now[k] for k in range(len(args))), **{name: now[name] for name in keywords}
        )

    try:
        return xarray.apply_ufunc(
            call, *arrays.values(), output_core_dims=[()] * n_outputs.pop(), dask="allowed"
        )
    except ValueError as error:
        if (cut := vars(error).get(CUT)) is None:
            raise
        array, dim = cut
        raise _in_terms_of_xarray(str(error), array, dim, list(arrays.values())) from None


def _in_terms_of_xarray(message: str, array: str, dim: int, arrays: list[Any]) -> ValueError:
    """Return the error of a call on dask arrays, with the xarray method as remedy."""
    chunks = "-1"  # the variables of a dataset may have different dimensions
    if not any(isinstance(x, xarray.Dataset) for x in arrays):
        # `apply_ufunc` returns arrays whose last dimensions are all dimensions, by their first use.
        dims = list(dict.fromkeys(name for x in arrays for name in getattr(x, "dims", ())))
        chunks = f"{{{dims[dim]!r}: -1}}"
    problem = message.partition(": pass ")[0]
    return ValueError(f"{problem}; pass {array}.chunk({chunks})")


def _is_elementwise(signature: Signature) -> bool:
    kinds = {x.kind for x in signature.parameters}
    dims = {x.dims for x in signature.arrays}
    is_mapped = bool(signature.outputs) and not signature.reduces and dims == {(("loop", 0),)}
    return is_mapped and not kinds & {"inout", "arrays"}


def _has_dimensions(x: Any) -> bool:
    is_dtype = isinstance(x, type)  # its class has the attributes of arrays
    return isinstance(x, _LABELLED) or (not is_dtype and bool(getattr(x, "shape", ())))
