# SPDX-License-Identifier: Apache-2.0
from typing import Any

def is_of_transform(tensor: Any, name: str) -> bool: ...
