/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar arguments: conversion to the declared dtype, with range checks. */
#ifndef CUPLUG_CORE_BASE_SCALAR_H
#define CUPLUG_CORE_BASE_SCALAR_H

#include <cuplug/host.h>

/* Converts `from` for a scalar of dtype `type` (a cuplug_type_id). Returns CUPLUG_OK,
 * CUPLUG_ERROR_TYPE where the kind does not fit, or CUPLUG_ERROR_VALUE where the value does not. */
int cuplug__convert_scalar(const cuplug_argument *from, uint32_t type, cuplug_scalar *to);

#endif
