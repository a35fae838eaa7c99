# SPDX-License-Identifier: Apache-2.0
from typing import Any

from cuplug.cuda.device_array import DeviceArray

def asarray(x: Any, dtype: Any = None, device: Any = None) -> DeviceArray: ...
