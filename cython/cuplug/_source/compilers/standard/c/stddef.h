// SPDX-License-Identifier: Apache-2.0
// NVRTC has size_t, ptrdiff_t and NULL by itself.
#pragma once
#ifndef offsetof
#define offsetof(type, member) ((size_t)((char *)&((type *)0)->member - (char *)0))
#endif
