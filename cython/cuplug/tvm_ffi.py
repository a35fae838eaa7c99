# SPDX-License-Identifier: Apache-2.0
"""Operators as tvm-ffi functions, for programs that call these."""

from __future__ import annotations

from threading import Lock
from typing import Any

from cuplug._engine.base.public import public
from cuplug._engine.call.operator import Operator
from cuplug._engine.modules.exported import export_function
from cuplug._engine.signature.signature import Signature, refuse_handles, signatures_of

__all__ = ["function"]


@public
def function(operator: Operator, name: str | None = None, *, n_outputs: int = 0) -> Any:
    """Make a tvm-ffi function that calls an operator.

    It takes the operator's arguments by position, and returns new tensors. On a GPU it runs on the
    current stream of tvm-ffi.

    Parameters
    ----------
    operator : Operator
    name : str, optional
        Registers the function globally, so that code in any language finds it by this name.
    n_outputs : int, optional
        How many of the last arguments are tensors for the outputs. If it is the number of the
        operator's outputs, the function returns None. The default is 0.

    Returns
    -------
    tvm_ffi.Function

    Raises
    ------
    TypeError
        If the operator has handles.
    ValueError
        If the operator does not have `n_outputs` outputs.

    Examples
    --------
    >>> gather = cuplug.tvm_ffi.function(cuplug.ops.gather, "cuplug.gather")
    >>> gather(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(index))
    """
    import tvm_ffi

    if not isinstance(operator, Operator):
        raise TypeError(
            f"tvm_ffi.function: operator: got {type(operator).__name__}, expected cuplug.Operator"
        )
    refuse_handles(operator, "a function of tvm-ffi", "call it from Python")
    counts = {len(x.outputs) for x in signatures_of(operator)}
    if n_outputs and counts != {n_outputs}:
        raise ValueError(
            f"tvm_ffi.function: n_outputs: got {n_outputs}, expected 0 or {max(counts)} "
            f"(those of {operator.name})"
        )

    def call(*args: Any) -> Any:
        on_gpu = next((x for x in args if _is_on_gpu(x)), None)
        stream = tvm_ffi.get_raw_stream(on_gpu.device) if on_gpu is not None else 0
        own: dict[str, Any] = {"stream": stream} if stream else {}
        if not n_outputs:
            return operator(*args, **own)
        out = args[-1] if n_outputs == 1 else args[-n_outputs:]
        operator(*args[:-n_outputs], out=out, **own)
        return None

    made, known = tvm_ffi.convert(call), {_plain_parameters(x) for x in signatures_of(operator)}
    n_parameters = known.pop() if len(known) == 1 else None
    if n_parameters is None or (n_outputs or max(counts)) != max(n_outputs, 1):
        if name is not None:
            tvm_ffi.register_global_func(name, made, override=True)
        return made
    with _lock:
        own = name or f"cuplug.function.{operator.name}"
        export_function(operator, n_parameters, n_outputs, made.__chandle__(), own)
        made = tvm_ffi.get_global_func(own)
        if name is None:
            tvm_ffi.registry.remove_global_func(own)
    return made


_lock = Lock()


def _plain_parameters(signature: Signature) -> int | None:
    """Return the number of parameters if the core calls such operators without Python."""
    plain = {"array", "inout", "scalar", "string", "choice"}
    own = (*signature.parameters, *signature.outputs)
    is_plain = all(x.kind in plain for x in signature.parameters)
    optional = any(x.has_default for x in signature.outputs)
    return len(signature.parameters) if is_plain and not optional and len(own) <= 64 else None


def _is_on_gpu(x: Any) -> bool:
    return getattr(getattr(x, "device", None), "type", "") == "cuda"
