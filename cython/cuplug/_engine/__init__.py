# SPDX-License-Identifier: Apache-2.0
"""The engine: arrays and operators, found, checked and called. It imports no other wing.

`provider` loads the modules of other wings that `cuplug` lists in `PROVIDERS`.
"""

PROVIDERS: dict[str, str] = {}  # role -> module


def provider(role: str) -> object:
    """Return the module that has a role; the first call imports it."""
    from importlib import import_module  # `import cuplug` needs none of it

    return import_module(PROVIDERS[role])
