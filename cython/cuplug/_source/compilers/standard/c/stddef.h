// SPDX-License-Identifier: Apache-2.0
// NVRTC defines size_t, ptrdiff_t and NULL.
#pragma once
#ifndef offsetof
#define offsetof(type, member) ((size_t)((char *)&((type *)0)->member - (char *)0))
#endif
