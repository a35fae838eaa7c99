# SPDX-License-Identifier: Apache-2.0
"""Source text -> machine code, by NVRTC and the C compiler, kept on disk. Knows no operator."""
