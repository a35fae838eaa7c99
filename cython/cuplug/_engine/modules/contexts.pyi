# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence

def open_with_context(path: str, names: Sequence[str]) -> dict[str, tuple[int, int]]: ...
