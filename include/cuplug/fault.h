/* SPDX-License-Identifier: Apache-2.0 */
/* The record by which kernels report bad data. Part of the plugin ABI. */
#ifndef CUPLUG_FAULT_H
#define CUPLUG_FAULT_H

#include <stdint.h>

/** The record of a kernel that finds bad data: the kernel continues without touching memory out of
 * range, and the host raises the error afterwards. Written by cuplug_fault_index and similar
 * functions, in memory that host and devices share. The first fault is kept. */
typedef struct cuplug_fault {
  uint32_t claimed;  /* 1 from the first fault on */
  int32_t status;    /* written last; nonzero: the record is complete */
  uint32_t tensor;   /* number of the offending tensor in call->tensors */
  uint32_t text;     /* the number of a text of the table, CUPLUG_FAULT; 0: none */
  int64_t position;  /* flat element number in that tensor */
  int64_t value;     /* the offending value */
  int64_t low, high; /* values allowed: low <= value < high */
  uint32_t *summary; /* set to 1 by the first fault: one word for all records */
  int64_t reserved_tail;
} cuplug_fault;

#endif
