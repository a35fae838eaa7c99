# SPDX-License-Identifier: Apache-2.0
"""Names -> operators: what is found, listed, loaded, reloaded, made ready."""
