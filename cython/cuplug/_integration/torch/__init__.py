# SPDX-License-Identifier: Apache-2.0
"""Operators as PyTorch operators: their schemas, kernels, gradients and batches, from signatures.

No module here depends on a particular operator. `import cuplug` does not import PyTorch.
"""
