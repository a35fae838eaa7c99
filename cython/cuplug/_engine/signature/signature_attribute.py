# SPDX-License-Identifier: Apache-2.0
"""The attribute `__signature__` of operators; `inspect` is imported when somebody asks for it."""

from typing import Any


class CallSignature:
    """Of an operator; of the class, which nobody calls, an empty one."""

    def __get__(self, operator: Any, cls: type) -> Any:
        """Return an inspect.Signature."""
        from cuplug._engine.signature.call_signature import to_inspect

        return to_inspect(() if operator is None else operator.signatures)
