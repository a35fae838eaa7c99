# SPDX-License-Identifier: Apache-2.0
"""Names -> operators: finding, listing, loading, reloading and preparing them."""
