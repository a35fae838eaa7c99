# SPDX-License-Identifier: Apache-2.0
KINDS: tuple[str, ...]
TYPES: tuple[str, ...]
CHECKED: tuple[str, ...]
MAX_BYTES: int
MAX_MANY: int
