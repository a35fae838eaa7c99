# SPDX-License-Identifier: Apache-2.0
"""Python functions of arrays as operators: traced, written as C, compiled by `expressions`."""
