# SPDX-License-Identifier: Apache-2.0
"""Where plugins are and what is in their tables. Runs none of their code, and makes no operator."""
