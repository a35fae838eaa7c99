# SPDX-License-Identifier: Apache-2.0
"""Operators inside of the libraries of others, made from signatures alone.

Each module serves one library, and imports it; `import cuplug` imports none of them. Nothing here
knows an operator.
"""
