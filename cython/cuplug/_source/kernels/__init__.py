# SPDX-License-Identifier: Apache-2.0
"""Kernels that users launch themselves: modules, launches, variables, arguments."""
