# SPDX-License-Identifier: Apache-2.0
from typing import Any

from cuplug.base.public import PublicCall
from cuplug.call.operator import Operator

def define_adopted(
    adopted: Any, plugin: str, path: str, doc: str, made: PublicCall
) -> Operator: ...
