/* SPDX-License-Identifier: Apache-2.0 */
/* Discrete Fourier transforms along the last dimension by cuFFT, without a factor.
 *
 *   fft(x, inverse)   out[..., k] = sum_j x[..., j] exp(-2 pi i j k / n), or +2 with `inverse`
 *   rfft(x)           of real numbers: elements 0 to n // 2
 *   irfft(x, n)       n real numbers, with `inverse`, whose transform begins with x
 *   fft_backward(grad, inverse), rfft_backward(grad, x), irfft_backward(grad, n)
 *                     the gradients: the transforms in the other direction. Elements that represent
 *                     two of a real number's transform count half as much, or twice
 *
 * float32 and complex64, or float64 and complex128. Plans are cached for each type, size and batch.
 * The library provides a call's workspace. */
#include "linalg/spectrum.h"

#include "linalg/library.h"

#include <cuplug/format.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PLANS 64 /* number of cached plans */

enum {
  REAL_TO_COMPLEX = 0x2a,
  COMPLEX_TO_REAL = 0x2c,
  COMPLEX = 0x29,
  DOUBLE = 0x40
}; /* cufftType */
enum { FORWARD = -1, INVERSE = 1 };

/* The functions of the library, which return 0 on success. */
typedef struct cufft {
  int (*create)(int *plan);
  int (*destroy)(int plan);
  int (*set_auto_allocation)(int plan, int is_on);
  int (*make)(int plan, int rank, long long *n, long long *in_embed, long long in_stride,
              long long in_distance, long long *out_embed, long long out_stride,
              long long out_distance, int type, long long batch, size_t *bytes);
  int (*set_work_area)(int plan, void *workspace);
  int (*set_stream)(int plan, void *stream);
  int (*complex_single)(int plan, void *in, void *out, int direction);
  int (*complex_double)(int plan, void *in, void *out, int direction);
  int (*from_single)(int plan, void *in, void *out);
  int (*from_double)(int plan, void *in, void *out);
  int (*to_single)(int plan, void *in, void *out);
  int (*to_double)(int plan, void *in, void *out);
} cufft;

static const library cufft_library = {
    "cuFFT",
    "nvidia-cufft",
    {"libcufft.so.12", "libcufft.so.11"},
    {
        "cufftCreate",
        "cufftDestroy",
        "cufftSetAutoAllocation",
        "cufftMakePlanMany64",
        "cufftSetWorkArea",
        "cufftSetStream",
        "cufftExecC2C",
        "cufftExecZ2Z",
        "cufftExecR2C",
        "cufftExecD2Z",
        "cufftExecC2R",
        "cufftExecZ2D",
    },
};

typedef struct plan {
  int type, handle;
  int64_t n, batch;
  size_t bytes;
} plan;

/* The state of a GPU. */
typedef struct transforms {
  cufft functions;
  pthread_mutex_t lock; /* of the plans */
  plan plans[MAX_PLANS];
  int n_plans, oldest;
} transforms;

CUPLUG_ENTRY int make_transforms(const cuplug_call *call, void **state) {
  void *addresses[CUPLUG_MAX_FUNCTIONS];
  const int status = library_open(call, &cufft_library, addresses);
  if (status) return status;
  transforms *new = calloc(1, sizeof *new);
  if (!new) return cuplug_fail(call, CUPLUG_ERROR_MEMORY, "no memory for plans of cuFFT");
  memcpy(&new->functions, addresses, sizeof new->functions);
  pthread_mutex_init(&new->lock, NULL);
  *state = new;
  return CUPLUG_OK;
}

/* Call it with the lock held. */
static int make_plan(const cufft *f, plan *p) {
  long long n = p->n;
  int code = f->create(&p->handle);
  if (code) return code;
  code = f->set_auto_allocation(p->handle, 0);
  if (!code) code = f->make(p->handle, 1, &n, NULL, 1, 0, NULL, 1, 0, p->type, p->batch, &p->bytes);
  if (code) f->destroy(p->handle);
  return code;
}

static int find_plan(transforms *t, int type, int64_t n, int64_t batch, plan **found) {
  plan new = {type, 0, n, batch, 0};
  for (int k = 0; k < t->n_plans; k++) {
    plan *p = &t->plans[k];
    if (p->type == type && p->n == n && p->batch == batch) return *found = p, 0;
  }
  const int code = make_plan(&t->functions, &new);
  if (code) return code;
  const int is_full = t->n_plans == MAX_PLANS;
  *found = &t->plans[is_full ? t->oldest : t->n_plans++];
  if (is_full) t->oldest = (t->oldest + 1) % MAX_PLANS;
  if (is_full) t->functions.destroy((*found)->handle);
  **found = new;
  return 0;
}

static int run(const cufft *f, const plan *p, void *in, void *out, int direction) {
  switch (p->type) {
  case COMPLEX:
    return f->complex_single(p->handle, in, out, direction);
  case COMPLEX | DOUBLE:
    return f->complex_double(p->handle, in, out, direction);
  case REAL_TO_COMPLEX:
    return f->from_single(p->handle, in, out);
  case REAL_TO_COMPLEX | DOUBLE:
    return f->from_double(p->handle, in, out);
  case COMPLEX_TO_REAL:
    return f->to_single(p->handle, in, out);
  default:
    return f->to_double(p->handle, in, out);
  }
}

/* The library writes to the input of transforms to real numbers. */
static int copy_input(const cuplug_call *call, int64_t n, double weight, void **in) {
  const cuplug_tensor *x = &call->tensors[0];
  void *copy = cuplug_workspace(call, (uint64_t)(cuplug_n_elements(x) * cuplug_element_bytes(x)));
  if (!copy) return CUPLUG_ERROR_MEMORY;
  const int status = spectrum_weigh(call, x, *in, copy, n, weight);
  *in = copy;
  return status;
}

static int transform_locked(const cuplug_call *call, transforms *t, int type, int64_t n,
                            int64_t batch, void *in, int direction) {
  const cufft *f = &t->functions;
  plan *p;
  int code = find_plan(t, type, n, batch, &p);
  if (!code) {
    void *workspace = p->bytes ? cuplug_workspace(call, p->bytes) : NULL;
    if (p->bytes && !workspace) return CUPLUG_ERROR_MEMORY;
    code = f->set_work_area(p->handle, workspace);
  }
  if (!code) code = f->set_stream(p->handle, call->stream);
  if (!code) code = run(f, p, in, call->outputs[0].data, direction);
  if (!code) return CUPLUG_OK;
  return cuplug_failf(call, CUPLUG_ERROR_CUDA, "cuFFT: error %d for %lld transforms of %lld", code,
                      (long long)batch, (long long)n);
}

/* Multiplies the inputs of transforms to real numbers that represent two elements by `weight`. */
static int transform(const cuplug_call *call, int kind, int64_t n, int direction, double weight) {
  const cuplug_tensor *x = &call->tensors[0], *out = &call->outputs[0];
  const cuplug_tensor *whole = kind == COMPLEX_TO_REAL ? out : x;
  const int64_t n_elements = cuplug_n_elements(whole);
  const uint32_t of = cuplug_type(whole);
  const int type = kind | (of == CUPLUG_FLOAT64 || of == CUPLUG_COMPLEX128 ? DOUBLE : 0);
  void *in = x->data;
  if (!n_elements) return CUPLUG_OK;
  int status = kind == COMPLEX_TO_REAL ? copy_input(call, n, weight, &in) : CUPLUG_OK;
  if (status) return status;
  transforms *t = call->state;
  pthread_mutex_lock(&t->lock);
  status = transform_locked(call, t, type, n, n_elements / n, in, direction);
  pthread_mutex_unlock(&t->lock);
  return status;
}

static int64_t last_size(const cuplug_tensor *x) { return x->shape[x->ndim - 1]; }

static int transform_complex(const cuplug_call *call, int is_inverse) {
  const int64_t n = last_size(&call->tensors[0]);
  return transform(call, COMPLEX, n, is_inverse ? INVERSE : FORWARD, 1);
}

static int transform_to_real(const cuplug_call *call, double weight) {
  return transform(call, COMPLEX_TO_REAL, last_size(&call->outputs[0]), INVERSE, weight);
}

CUPLUG_ENTRY int fft_cuda(const cuplug_call *call) {
  return transform_complex(call, call->scalars[0].i != 0);
}
CUPLUG_ENTRY int fft_backward_cuda(const cuplug_call *call) {
  return transform_complex(call, call->scalars[0].i == 0);
}

CUPLUG_ENTRY int irfft_cuda(const cuplug_call *call) { return transform_to_real(call, 1); }
CUPLUG_ENTRY int rfft_backward_cuda(const cuplug_call *call) {
  return transform_to_real(call, 0.5);
}

CUPLUG_ENTRY int rfft_cuda(const cuplug_call *call) {
  return transform(call, REAL_TO_COMPLEX, last_size(&call->tensors[0]), FORWARD, 1);
}
CUPLUG_ENTRY int irfft_backward_cuda(const cuplug_call *call) {
  const cuplug_tensor *out = &call->outputs[0];
  const int status = rfft_cuda(call);
  if (status || !cuplug_n_elements(out)) return status;
  return spectrum_weigh(call, out, out->data, out->data, last_size(&call->tensors[0]), 2);
}

#define PROPERTIES CUPLUG_STATE(make_transforms)

CUPLUG_CUDA_OPERATOR(fft_cuda,
                     "fft(x: T[..., n], inverse: bool = False) -> T[..., n] "
                     "where T: complex64 | complex128, n > 0",
                     "Fourier transforms along the last dimension, by cuFFT." PROPERTIES
                         CUPLUG_GRADIENT(fft_backward) CUPLUG_LINEAR(x));
CUPLUG_CUDA_OPERATOR(
    fft_backward_cuda,
    "fft_backward(grad: T[..., n], inverse: bool = False) -> T[..., n] "
    "where T: complex64 | complex128, n > 0",
    "The gradient of fft: the transform in the other direction." PROPERTIES CUPLUG_GRADIENT(fft)
        CUPLUG_LINEAR(grad));
#define REAL(real, complex)                                                                     \
  CUPLUG_CUDA_OPERATOR(                                                                         \
      rfft_cuda, "rfft(x: " real "[..., n]) -> " complex "[..., n // 2 + 1] where n > 0",       \
      "Fourier transforms of real numbers, by cuFFT." PROPERTIES CUPLUG_GRADIENT(rfft_backward) \
          CUPLUG_LINEAR(x));                                                                    \
  CUPLUG_CUDA_OPERATOR(rfft_backward_cuda,                                                      \
                       "rfft_backward(grad: " complex "[..., n // 2 + 1], x: " real             \
                       "[..., n]) -> " real "[..., n] where n > 0",                             \
                       "The gradient of rfft." PROPERTIES CUPLUG_GRADIENT(rfft)                 \
                           CUPLUG_LINEAR(grad));                                                \
  CUPLUG_CUDA_OPERATOR(irfft_cuda,                                                              \
                       "irfft(x: " complex "[..., m], n: int) -> " real "[..., n] "             \
                       "where n > 0, m == n // 2 + 1",                                          \
                       "The inverse of rfft, times n, by cuFFT." PROPERTIES CUPLUG_GRADIENT(    \
                           irfft_backward) CUPLUG_LINEAR(x));                                   \
  CUPLUG_CUDA_OPERATOR(irfft_backward_cuda,                                                     \
                       "irfft_backward(grad: " real "[..., n], n: int) -> " complex             \
                       "[..., n // 2 + 1] where n > 0",                                         \
                       "The gradient of irfft." PROPERTIES CUPLUG_GRADIENT(irfft)               \
                           CUPLUG_LINEAR(grad))
REAL("float32", "complex64");
REAL("float64", "complex128");
