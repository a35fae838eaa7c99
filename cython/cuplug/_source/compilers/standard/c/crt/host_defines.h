// SPDX-License-Identifier: Apache-2.0
// CUDA's headers include this file, which a separate Python package contains. NVRTC needs none of
// its contents. If CUDA's file exists, it is found first.
#pragma once
