# SPDX-License-Identifier: Apache-2.0
"""The stock operators that functions of arrays are made of, whatever plugins a user adds."""

from functools import cache

from cuplug.lookup.find import find_stock

stock = cache(find_stock)  # to look for one takes longer than a call
