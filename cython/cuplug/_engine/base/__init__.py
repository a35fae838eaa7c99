# SPDX-License-Identifier: Apache-2.0
"""The ground: the core as Cython sees it, its errors and dtypes, the flags of compilers. Knows no
array and no operator.
"""
