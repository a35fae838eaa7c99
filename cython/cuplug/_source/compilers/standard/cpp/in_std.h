// SPDX-License-Identifier: Apache-2.0
// The C++ standard library of CUDA, under the name that C++ has for it.
#pragma once
namespace cuda::std {}
namespace std {
using namespace cuda::std;
}
