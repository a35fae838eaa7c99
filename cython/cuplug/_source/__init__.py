# SPDX-License-Identifier: Apache-2.0
"""Run-time compilation: compilers, kernels, operators from source. It imports only the engine."""
