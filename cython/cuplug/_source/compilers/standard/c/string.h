// SPDX-License-Identifier: Apache-2.0
// NVRTC declares memcpy and memset.
#pragma once
