# SPDX-License-Identifier: Apache-2.0
from typing import Any

from cuplug._engine.base.public import PublicCall
from cuplug._engine.call.operator import Operator

def define_described(
    signature: str,
    sources: list[Any],
    handle: int,
    call: int,
    place: str,
    plugin: str,
    path: str,
    doc: str,
    made: PublicCall,
) -> tuple[Operator, int]: ...
def rebind_described(at: int, handle: int, call: int) -> None: ...
