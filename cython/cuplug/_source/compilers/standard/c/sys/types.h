// SPDX-License-Identifier: Apache-2.0
// The unsigned types that glibc's header of this name declares in every source that nvcc compiles.
#pragma once
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
