// SPDX-License-Identifier: Apache-2.0
// NVRTC declares abs, malloc and free.
#pragma once
