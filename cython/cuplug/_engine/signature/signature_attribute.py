# SPDX-License-Identifier: Apache-2.0
"""The attribute `__signature__` of operators, which imports `inspect` on first use."""

from typing import Any


class CallSignature:
    """The signature of an operator; an empty one for the class, which users do not call."""

    def __get__(self, operator: Any, cls: type) -> Any:
        """Return an inspect.Signature."""
        from cuplug._engine.signature.call_signature import to_inspect

        return to_inspect(() if operator is None else operator.signatures)
