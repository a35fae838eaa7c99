# SPDX-License-Identifier: Apache-2.0
from typing import NamedTuple

class LastCall(NamedTuple):
    operator: str
    device: str
    staged: bool
    path: str

def last_call() -> LastCall | None: ...
