# SPDX-License-Identifier: Apache-2.0
"""The stock operators that functions of arrays are made of, whatever plugins a user adds."""

from functools import cache

from cuplug._engine.call.operator import Operator


@cache  # to look for one takes longer than a call
def stock(name: str) -> Operator:
    """Return the stock operator of a name."""
    from cuplug._engine.lookup.find import find_stock  # which takes longer than `asarray`

    return find_stock(name)
