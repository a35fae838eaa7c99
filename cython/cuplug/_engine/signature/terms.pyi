# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence

def parse_terms(
    signature: str, text: str, what: str, own: Sequence[str] | None
) -> list[tuple[tuple[tuple[int, int, int], ...], str]]: ...
