// SPDX-License-Identifier: Apache-2.0
// NVRTC declares printf by itself.
#pragma once
