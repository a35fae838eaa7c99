# SPDX-License-Identifier: Apache-2.0
"""The GPUs: their choice, memory and streams, and cuplug's arrays on them. It uses no operator."""
