# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy

def numpy_dtype(name: str) -> numpy.dtype[Any]: ...
def name_of_descr(descr: Any) -> str: ...
