# SPDX-License-Identifier: Apache-2.0
"""The text of signatures, parsed, and what it says of arguments. Knows no file and no array."""
