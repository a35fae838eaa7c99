# SPDX-License-Identifier: Apache-2.0
"""Which protocol reads the arrays of a library, and the readers. Knows no signature and no call."""
