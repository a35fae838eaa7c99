// SPDX-License-Identifier: Apache-2.0
// CUDA's C++ standard library, in the namespace std.
#pragma once
namespace cuda::std {}
namespace std {
using namespace cuda::std;
}
