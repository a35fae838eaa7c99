# SPDX-License-Identifier: Apache-2.0
"""The lowest room: the core's declarations for Cython, its errors and dtypes, and compiler flags.
It uses no array and no operator.
"""
