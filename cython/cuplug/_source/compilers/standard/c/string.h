// SPDX-License-Identifier: Apache-2.0
// NVRTC declares memcpy and memset by itself.
#pragma once
