# SPDX-License-Identifier: Apache-2.0
"""The program of an image: it calls a plugin, a stock operator and an operator from an expression.

The image has no compiler: it contains the code of the expression.
"""

import cuplug
import numpy as np
from cuplug.ops import gather, half

shifted = cuplug.elementwise("shifted(x: T) -> T", "3 * x + 1")


def main() -> None:
    """Print the results of the three operators."""
    x = np.arange(4, dtype=np.float32)
    print(half(x), gather(x, np.array([3, 0])), shifted(x))


if __name__ == "__main__":
    main()
