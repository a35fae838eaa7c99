// SPDX-License-Identifier: Apache-2.0
// CUDA's headers include this one, which a package of its own has for Python: NVRTC needs nothing
// of it. Where CUDA's is there, it is found first.
#pragma once
