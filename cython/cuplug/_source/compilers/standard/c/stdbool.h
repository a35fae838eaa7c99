// SPDX-License-Identifier: Apache-2.0
// C++ has bool.
#pragma once
