# SPDX-License-Identifier: Apache-2.0
"""Python functions of arrays as operators: traced, translated to C, compiled by `expressions`."""
