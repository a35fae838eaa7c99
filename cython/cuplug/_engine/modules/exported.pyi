# SPDX-License-Identifier: Apache-2.0
from cuplug._engine.call.operator import Operator

def export_function(
    operator: Operator, n_parameters: int, n_outputs: int, other: int, name: str
) -> None: ...
