// SPDX-License-Identifier: Apache-2.0
// NVRTC has assert by itself.
#pragma once
