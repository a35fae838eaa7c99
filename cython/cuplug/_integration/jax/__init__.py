# SPDX-License-Identifier: Apache-2.0
"""Operators as functions of JAX: their calls in XLA, gradients and batches, from signatures.

No module here depends on a particular operator. `import cuplug` does not import JAX.
"""
