/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the host and CUDA entries of rotary: arrays of three dimensions with any strides. */
#ifndef CUPLUG_PLUGINS_ROTARY_H
#define CUPLUG_PLUGINS_ROTARY_H

#include <cuplug/plugin.h>

/* An array of heads; strides in elements. */
typedef struct rotary_shape {
  int64_t n_heads, of_token, of_head, of_element;
} rotary_shape;

static inline rotary_shape rotary_shape_of(const cuplug_tensor *x) {
  const rotary_shape found = {x->shape[1], x->strides[0], x->strides[1], x->strides[2]};
  return found;
}

#endif
