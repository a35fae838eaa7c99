# SPDX-License-Identifier: Apache-2.0
"""Operators as Python callables, and their calls. It uses no search path."""
