# SPDX-License-Identifier: Apache-2.0
from typing import Any

from cuplug._engine.base.public import PublicCall
from cuplug._engine.call.operator import Operator

def define_adopted(
    adopted: Any,
    plugin: str,
    path: str,
    doc: str,
    made: PublicCall,
    gradient: str = "",
    linear: str = "",
) -> Operator: ...
