# SPDX-License-Identifier: Apache-2.0
"""Operators as functions of JAX: their calls in XLA, gradients and batches, from signatures.

Nothing here knows an operator; `import cuplug` does not import JAX.
"""
