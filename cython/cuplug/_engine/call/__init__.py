# SPDX-License-Identifier: Apache-2.0
"""Operators as Python callables, and one call of theirs. Knows no search path."""
