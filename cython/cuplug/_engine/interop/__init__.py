# SPDX-License-Identifier: Apache-2.0
"""The readers of arrays, and the protocol for each library. They use no signature and no call."""
