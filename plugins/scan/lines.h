/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the host and CUDA entries of scans: the elements of a line. */
#ifndef CUPLUG_PLUGINS_SCAN_LINES_H
#define CUPLUG_PLUGINS_SCAN_LINES_H

#include "elements.h"

/* n elements of each line, from the first on or, with step -1, from the last one back. Inputs and
 * outputs begin at different positions, and their lines may have different lengths. */
typedef struct scan_lines {
  elements_axis in, out;
  int64_t n_lines, n, step, first_in, first_out;
  int has_initial; /* the first output is the result for no elements */
} scan_lines;

static inline scan_lines scan_lines_of(const cuplug_call *call, int is_backward) {
  const int64_t axis = call->scalars[0].i, initial = call->scalars[1].i != 0;
  scan_lines s = {elements_around(&call->tensors[0], axis),
                  elements_around(&call->outputs[0], axis),
                  0,
                  0,
                  0,
                  0,
                  0,
                  0};
  s.n_lines = s.in.n_outer * s.in.width;
  s.n = is_backward ? s.out.m : s.in.m;
  s.step = is_backward ? -s.in.width : s.in.width;
  s.first_in = is_backward ? (s.in.m - 1) * s.in.width : 0;
  s.first_out = is_backward ? (s.out.m - 1) * s.in.width : initial * s.in.width;
  s.has_initial = initial && !is_backward;
  return s;
}

/* Where element 0 of a line is read and written. Others follow at distances of `step`. */
ELEMENTS_INLINE int64_t scan_from(const scan_lines *s, int64_t line) {
  return elements_line(&s->in, line) + s->first_in;
}
ELEMENTS_INLINE int64_t scan_to(const scan_lines *s, int64_t line) {
  return elements_line(&s->out, line) + s->first_out;
}

#endif
