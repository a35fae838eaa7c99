# SPDX-License-Identifier: Apache-2.0
"""NumPy functions that the standard lacks, composed of the standard's. They also run on GPUs."""
