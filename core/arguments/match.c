/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/match.h"

#include "base/describe.h"
#include "base/dtype.h"
#include "base/layout.h"
#include "base/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int cuplug__write_mismatch(cuplug__match *m, int32_t i, int status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  m->error->status = status;
  cuplug__print(m->error->message, m->error->message_bytes, format, list);
  va_end(list);
  if (m->item >= 0) cuplug__prefix(m->error, "item %" PRId64 ": ", m->item);
  cuplug__prefix(m->error, "%s: %s: ", m->s->name, m->s->parameters[i].name);
  return status;
}

/* The array or the scalar that is matched. */
static const cuplug_argument *seen(const cuplug__match *m, int32_t i) {
  const cuplug_argument *a = cuplug__argument(m, i);
  return m->item < 0 ? a : &a->list.items[m->item];
}

int cuplug__report_mismatch(cuplug__match *m, int32_t i, int status) {
  const cuplug_parameter *x = &m->s->parameters[i];
  const int is_list = x->kind == CUPLUG_PARAMETER_ARRAYS && m->item < 0;
  const int is_array = x->kind == CUPLUG_PARAMETER_ARRAY || x->kind == CUPLUG_PARAMETER_INOUT;
  const uint32_t kind = seen(m, i)->kind;
  const int is_number = kind >= CUPLUG_ARGUMENT_BOOL && kind <= CUPLUG_ARGUMENT_COMPLEX;
  const int may_become_one = is_array && (is_number || kind == CUPLUG_ARGUMENT_LIST);
  return cuplug__mismatch(m, i, status, "got %s, expected %s%s%s",
                          cuplug__describe_argument(seen(m, i)).s, is_list ? "a list of " : "",
                          cuplug__describe_parameter(m->s, x).s,
                          may_become_one ? "; pass numpy.array or cuplug.asarray of it" : "");
}

CUPLUG__COLD static int refuse_dtype(cuplug__match *m, int32_t i, int32_t v) {
  const cuplug_argument *a = seen(m, i);
  const cuplug_type_variable *t = &m->s->variables[v];
  if (t->later & cuplug__dtype_bit(cuplug_type(&a->tensor)))
    return cuplug__mismatch(m, i, CUPLUG_ERROR_TYPE,
                            "got %s, expected %s of the ABI that the plugin was compiled for; "
                            "rebuild the plugin with this version of cuplug",
                            cuplug__describe_argument(a).s,
                            cuplug__describe_parameter(m->s, &m->s->parameters[i]).s);
  if (!*t->name || !(m->known_types >> v & 1))
    return cuplug__report_mismatch(m, i, CUPLUG_ERROR_TYPE);
  return cuplug__mismatch(m, i, CUPLUG_ERROR_TYPE, "got %s, expected %s (%s, as in %s)",
                          cuplug__describe_argument(a).s, cuplug__describe_dtype(m->types[v]).s,
                          t->name, m->s->parameters[m->type_from[v]].name);
}

static int match_dtype(cuplug__match *m, int32_t i, const cuplug_parameter *x, uint32_t type) {
  int32_t v = x->type_variable;
  if (m->known_types >> v & 1) return m->types[v] == type ? CUPLUG_OK : refuse_dtype(m, i, v);
  if (!(m->s->variables[v].dtypes & cuplug__dtype_bit(type))) return refuse_dtype(m, i, v);
  m->types[v] = type;
  m->type_from[v] = (int8_t)i;
  m->known_types |= 1ull << v;
  return CUPLUG_OK;
}

CUPLUG__COLD static int refuse_sizes(cuplug__match *m, int32_t i, const cuplug_dim *d,
                                     const int64_t *shape, int32_t n) {
  const char *name = m->s->dim_names[d->value];
  const int64_t *expected = m->sizes[d->value];
  const char *from = m->s->parameters[m->size_from[d->value]].name;
  if (d->kind == CUPLUG_DIM_NAMED)
    return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE,
                            "dimension %s: got %" PRId64 ", expected %" PRId64 " (as in %s)", name,
                            *shape, *expected, from);
  return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE,
                          "dimensions *%s: got %s, expected %s (as in %s)", name,
                          cuplug__describe_tuple(shape, n).s,
                          cuplug__describe_tuple(expected, m->n_sizes[d->value]).s, from);
}

/* The sizes of a name: of one dimension, or of a group. */
static inline __attribute__((always_inline)) int
match_sizes(cuplug__match *m, int32_t i, const cuplug_dim *d, const int64_t *shape, int32_t n) {
  const int64_t name = d->value;
  if (m->known_sizes >> name & 1) {
    const int same = m->n_sizes[name] == n && cuplug__same_sizes(m->sizes[name], shape, n);
    return same ? CUPLUG_OK : refuse_sizes(m, i, d, shape, n);
  }
  m->known_sizes |= 1ull << name;
  m->sizes[name] = shape;
  m->n_sizes[name] = n;
  m->size_from[name] = (int8_t)i;
  return CUPLUG_OK;
}

/* Broadcasts a shape into the loop shape, by NumPy's rules. */
static int match_loop(cuplug__match *m, int32_t i, const int64_t *shape, int32_t ndim) {
  cuplug_frame *f = m->frame;
  int32_t grow = ndim - f->loop_ndim;
  if (!m->loop_mask) {
    for (int32_t k = 0; k < ndim; k++) f->loop_shape[k] = shape[k];
    f->loop_ndim = ndim;
    return CUPLUG_OK;
  }
  if (!grow && cuplug__same_sizes(f->loop_shape, shape, ndim)) return CUPLUG_OK;
  m->broadcasts = 1;
  if (grow > 0) {
    memmove(f->loop_shape + grow, f->loop_shape, (size_t)f->loop_ndim * sizeof(*shape));
    for (int32_t k = 0; k < grow; k++) f->loop_shape[k] = 1;
    f->loop_ndim = ndim;
  }
  int64_t *loop = f->loop_shape + f->loop_ndim - ndim;
  for (int32_t k = 0; k < ndim; k++) {
    if (loop[k] == 1) loop[k] = shape[k];
    if (loop[k] == shape[k] || shape[k] == 1) continue;
    return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE,
                            "dimensions ...: got size %" PRId64 ", expected 1 or %" PRId64
                            " to be broadcast with the other arrays",
                            shape[k], loop[k]);
  }
  return CUPLUG_OK;
}

static int match_shape(cuplug__match *m, int32_t i, const cuplug_parameter *x,
                       const cuplug_tensor *t) {
  const cuplug_dim *end = x->dims + x->n_dims;
  const int64_t *shape = t->shape;
  int32_t n_groups = 0;
  for (const cuplug_dim *d = x->dims; d < end; d++)
    n_groups += d->kind == CUPLUG_DIM_VARIADIC || d->kind == CUPLUG_DIM_LOOP;
  int32_t group_ndim = t->ndim - (x->n_dims - n_groups);
  if (t->ndim > CUPLUG_MAX_NDIM || group_ndim < 0 || (group_ndim > 0 && !n_groups))
    return cuplug__report_mismatch(m, i, CUPLUG_ERROR_VALUE);
  for (const cuplug_dim *d = x->dims; d < end; d++) {
    int status = CUPLUG_OK, n = 1;
    if (d->kind == CUPLUG_DIM_NAMED) {
      status = match_sizes(m, i, d, shape, 1);
    } else if (d->kind == CUPLUG_DIM_VARIADIC) {
      status = match_sizes(m, i, d, shape, n = group_ndim);
    } else if (d->kind == CUPLUG_DIM_LOOP) {
      status = match_loop(m, i, shape, n = group_ndim);
      m->loop_mask |= 1ull << m->frame->n_tensors;
    } else if (d->kind == CUPLUG_DIM_FIXED && *shape != d->value) { /* formulas: check_formulas */
      status = cuplug__report_mismatch(m, i, CUPLUG_ERROR_VALUE);
    }
    if (status) return status;
    shape += n;
  }
  return CUPLUG_OK;
}

/* The host, or the GPU, that an array's memory belongs to; type 0: neither. */
static cuplug_device memory_space_of(cuplug_device device) {
  if (cuplug__is_cuda(device)) return (cuplug_device){CUPLUG_CUDA, device.id};
  return (cuplug_device){cuplug__is_host(device) ? CUPLUG_CPU : 0, 0};
}

CUPLUG__COLD static int refuse_device(cuplug__match *m, int32_t i, cuplug_device device) {
  const cuplug_frame *f = m->frame;
  if (m->s->parameters[i].words & CUPLUG_WORD_HOST)
    return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE,
                            "got an array on %s, expected one on the host, whose memory the entry "
                            "reads; copy it there before the call",
                            cuplug__describe_device(device).s);
  if (!cuplug__is_cuda(device) && !cuplug__is_host(device))
    return cuplug__mismatch(m, i, CUPLUG_ERROR_TYPE,
                            "got an array on %s, expected the host or a CUDA device",
                            cuplug__describe_device(device).s);
  return cuplug__mismatch(
      m, i, CUPLUG_ERROR_VALUE, "got an array on %s, expected %s (as %s); move one to the other",
      cuplug__describe_device(memory_space_of(device)).s, cuplug__describe_device(f->home).s,
      m->s->parameters[m->memory_space_from].name);
}

/* All arrays except host arrays are on the host, or all on one GPU. */
static int match_device(cuplug__match *m, int32_t i, cuplug_device device) {
  cuplug_frame *f = m->frame;
  if (m->s->parameters[i].words & CUPLUG_WORD_HOST)
    return cuplug__is_host(device) ? CUPLUG_OK : refuse_device(m, i, device);
  cuplug_device home = memory_space_of(device);
  if (home.type && !f->home.type) {
    f->home = home;
    m->memory_space_from = (int8_t)i;
  }
  if (home.type && f->home.type == home.type && f->home.id == home.id) return CUPLUG_OK;
  return refuse_device(m, i, device);
}

CUPLUG__COLD static int refuse_memory(cuplug__match *m, int32_t i, const cuplug_tensor *t,
                                      int64_t n_bytes) {
  if (n_bytes < 0)
    return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE, "got shape %s, expected %s",
                            cuplug__describe_tuple(t->shape, t->ndim).s,
                            cuplug__has_unknown(t) ? "sizes of at least 0"
                                                   : "less than 2^63 bytes");
  if (seen(m, i)->tensor.data)
    return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE,
                            "got a byte offset of %" PRIu64
                            ", expected one that stays within the address space",
                            seen(m, i)->tensor.byte_offset);
  return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE,
                          "got a null pointer, expected an array with memory");
}

/* Sizes are not negative, their product is below 2^63 bytes, and there is memory for it. */
static int match_memory(cuplug__match *m, int32_t i, const cuplug_tensor *t) {
  int64_t n_bytes = cuplug__n_bytes(t);
  m->frame->n_bytes[m->frame->n_tensors] = n_bytes;
  if (n_bytes > m->largest_bytes) m->largest_bytes = n_bytes;
  const int lacks_memory = n_bytes && !t->data && m->needs_memory;
  return n_bytes < 0 || lacks_memory ? refuse_memory(m, i, t, n_bytes) : CUPLUG_OK;
}

CUPLUG__COLD static int refuse_ndim(cuplug__match *m, int32_t i) {
  return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE,
                          "got %s, expected 0 to %d dimensions and their sizes",
                          cuplug__describe_argument(seen(m, i)).s, CUPLUG_MAX_NDIM);
}

CUPLUG__COLD static int refuse_strides(cuplug__match *m, int32_t i, const cuplug_tensor *t) {
  return cuplug__mismatch(
      m, i, CUPLUG_ERROR_VALUE, "got strides %s for shape %s, expected elements within 2^62 bytes",
      cuplug__describe_tuple(t->strides, t->ndim).s, cuplug__describe_tuple(t->shape, t->ndim).s);
}

const char *cuplug__refuse_written(const cuplug_argument *a, int contiguous,
                                   uint32_t takes_strides) {
  if (a->flags & CUPLUG_READ_ONLY) return "a read-only array, expected a writable one";
  if (a->flags & CUPLUG_MISALIGNED) return "a misaligned array, expected an aligned one";
  if (contiguous) return NULL;
  if (!takes_strides) return "an array that is not C-contiguous, expected a C-contiguous one";
  return cuplug__shares_elements(&a->tensor)
             ? "an array whose elements share memory, expected one with memory for each"
             : NULL;
}

/* ---- Guarantees ------------------------------------------------------------------------------ */

static int has_other_address(const cuplug_parameter *x, const cuplug_tensor *t) {
  return ((uintptr_t)cuplug__first_element(t) & x->address_mask) != 0;
}

static int has_other_elements(const cuplug_parameter *x, const cuplug_tensor *t) {
  const int32_t last = t->ndim - 1;
  return x->has_unit_stride && last >= 0 && t->shape[last] > 1 && t->strides[last] != 1;
}

/* Rows are as far apart as in a contiguous array, or by multiples of the alignment. On a GPU, a
 * host array with negative strides may begin anywhere. */
static int has_other_rows(const cuplug_parameter *x, const cuplug_tensor *t) {
  const int64_t element = cuplug_element_bytes(t);
  for (int32_t k = 0; x->address_mask && k < t->ndim; k++) {
    const int64_t step = t->strides[k] * element;
    if (t->shape[k] > 1 && (step < 0 || (k < t->ndim - 1 && step & x->address_mask))) return 1;
  }
  return 0;
}

int cuplug__breaks_guarantees(const cuplug_parameter *x, const cuplug_tensor *t) {
  if (has_other_address(x, t)) return 1;
  return !cuplug__is_contiguous(t) &&
         (x->is_contiguous || has_other_elements(x, t) || has_other_rows(x, t));
}

cuplug__text cuplug__describe_broken(const cuplug_parameter *x, const cuplug_tensor *t) {
  cuplug__text text;
  const uint32_t alignment = x->address_mask + 1;
  char multiples[80];
  snprintf(multiples, sizeof multiples, "multiples of %u bytes, and none below 0", alignment);
  if (has_other_address(x, t))
    snprintf(text.s, sizeof text.s, "got the address 0x%" PRIxPTR ", expected a multiple of %u",
             (uintptr_t)cuplug__first_element(t), alignment);
  else
    snprintf(text.s, sizeof text.s, "got strides %.60s, expected %s",
             cuplug__describe_tuple(t->strides, t->ndim).s,
             x->is_contiguous           ? "those of a C-contiguous array"
             : has_other_elements(x, t) ? "1 in the last dimension"
                                        : multiples);
  return text;
}

CUPLUG__COLD static int refuse_guarantees(cuplug__match *m, int32_t i, const cuplug_tensor *t) {
  return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE, "%s (it is changed in place)",
                          cuplug__describe_broken(&m->s->parameters[i], t).s);
}

/* 1 if a tensor fits because an earlier one did, whose parameter is equal. */
static inline int is_repeated(cuplug__match *m, const cuplug_tensor *t) {
  const uint32_t k = m->frame->n_tensors, like = m->item < 0 ? m->like[k] : k;
  const cuplug_tensor *before = &m->frame->tensors[like];
  if (like == k || !t->data || memcmp(&t->device, &before->device, CUPLUG__TYPE_BYTES) ||
      !cuplug__same_sizes(t->shape, before->shape, t->ndim))
    return 0;
  m->loop_mask |= (m->loop_mask >> like & 1) << k;
  m->frame->n_bytes[k] = m->frame->n_bytes[like];
  return 1;
}

static __attribute__((noinline)) int match_tensor(cuplug__match *m, int32_t i,
                                                  const cuplug_tensor *t) {
  const cuplug_parameter *x = &m->s->parameters[i];
  int status;
  if ((status = match_dtype(m, i, x, cuplug_type(t)))) return status;
  if ((status = match_shape(m, i, x, t))) return status;
  if ((status = match_device(m, i, t->device))) return status;
  return match_memory(m, i, t);
}

static int leave_out(cuplug__match *m, int32_t i, const cuplug_argument *a) {
  cuplug_frame *f = m->frame;
  if (m->item >= 0 || !cuplug__is_left_out(&m->s->parameters[i], a))
    return cuplug__report_mismatch(m, i, CUPLUG_ERROR_TYPE);
  f->n_bytes[f->n_tensors] = 0;
  f->tensors[f->n_tensors++] = (cuplug_tensor){.ndim = -1};
  return CUPLUG_OK;
}

static int64_t no_sizes; /* of arrays without dimensions whose shape is a null pointer */

int cuplug__match_array(cuplug__match *m, int32_t i, const cuplug_argument *a) {
  cuplug_frame *f = m->frame;
  uint32_t k = f->n_tensors;
  cuplug_tensor *t = &f->tensors[k];
  int status;
  f->parameter[k] = (uint8_t)i;
  if (a->kind != CUPLUG_ARGUMENT_ARRAY) return leave_out(m, i, a);
  /* Field by field, as the caller has just written them: wider loads would wait for its stores. */
  t->data = cuplug__first_element(&a->tensor);
  t->device = a->tensor.device;
  t->ndim = a->tensor.ndim;
  t->dtype = a->tensor.dtype;
  t->shape = a->tensor.shape;
  t->strides = a->tensor.strides;
  t->byte_offset = 0;
  if (!cuplug__has_sizes(t)) return refuse_ndim(m, i);
  if (!t->shape) t->shape = &no_sizes;
  if (a->flags & CUPLUG_BYTE_SWAPPED)
    return cuplug__mismatch(m, i, CUPLUG_ERROR_TYPE, "got %s, expected native byte order",
                            cuplug__describe_argument(a).s);
  if (!is_repeated(m, t) && (status = match_tensor(m, i, t))) return status;
  int contiguous = cuplug__is_contiguous(t);
  if (!contiguous && !cuplug__has_possible_strides(t)) return refuse_strides(m, i, t);
  const int is_broken = m->s->has_guarantees && cuplug__breaks_guarantees(&m->s->parameters[i], t);
  if (m->s->parameters[i].is_inout) {
    m->inout_mask |= 1ull << k;
    const char *wrong = cuplug__refuse_written(a, contiguous, m->takes_strides);
    if (wrong)
      return cuplug__mismatch(m, i, CUPLUG_ERROR_VALUE, "got %s (it is changed in place)", wrong);
    if (is_broken) return refuse_guarantees(m, i, t);
  } else if (a->flags & CUPLUG_MISALIGNED || (!contiguous && !m->takes_strides) || is_broken) {
    f->copy_mask |= 1ull << k;
    if (a->flags & CUPLUG_UNALIGNED_STRIDES) f->unaligned_stride_mask |= 1ull << k;
  }
  if (contiguous) t->strides = NULL;
  f->n_tensors = k + 1;
  return CUPLUG_OK;
}

int32_t cuplug_required_shape(const cuplug_frame *f, uint32_t k, int64_t shape[CUPLUG_MAX_NDIM]) {
  const cuplug_tensor *t = &f->tensors[k];
  const cuplug_parameter *x = &f->signature->parameters[f->parameter[k]];
  int32_t before = 0;
  while (before < x->n_dims && x->dims[before].kind != CUPLUG_DIM_LOOP) before++;
  const int32_t has_loop = before < x->n_dims, after = has_loop ? x->n_dims - 1 - before : 0;
  if (!has_loop) before = t->ndim;
  const int32_t loop = has_loop ? f->loop_ndim : 0, ndim = before + loop + after;
  if (ndim > CUPLUG_MAX_NDIM) return ndim;
  for (int32_t d = 0; d < before; d++) shape[d] = t->shape[d];
  for (int32_t d = 0; d < loop; d++) shape[before + d] = f->loop_shape[d];
  for (int32_t d = 1; d <= after; d++) shape[ndim - d] = t->shape[t->ndim - d];
  return ndim;
}
