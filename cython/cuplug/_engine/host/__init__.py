# SPDX-License-Identifier: Apache-2.0
"""Host memory for large outputs, and the progress of long copies."""
