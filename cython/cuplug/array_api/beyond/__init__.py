# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy beyond the standard, composed of the standard's: as fast, and on GPUs."""
