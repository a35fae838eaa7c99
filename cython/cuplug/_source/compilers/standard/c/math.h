// SPDX-License-Identifier: Apache-2.0
// NVRTC declares the functions. <cuda/std/cmath> also has these macros, and takes most of a second.
#pragma once
#pragma nv_diagnostic push
#pragma nv_diag_suppress 47 // <cuda/std/cmath> may be included before

#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4

#pragma nv_diagnostic pop
