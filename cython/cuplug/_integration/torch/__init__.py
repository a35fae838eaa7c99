# SPDX-License-Identifier: Apache-2.0
"""Operators as PyTorch operators: their schemas, kernels, gradients and batches, from signatures.

Nothing here knows an operator; `import cuplug` does not import PyTorch.
"""
