// SPDX-License-Identifier: Apache-2.0
// NVRTC defines assert.
#pragma once
