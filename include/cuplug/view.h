/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file view.h
 * What the typed functions for Cython pass to operators: a view is an array that somebody else
 * owns, with its sizes and strides. It is made from a typed memoryview or from a pointer, whose
 * element type gives the dtype when the code is compiled, or from a cuplug.Array. Not part of the
 * ABI.
 */
#ifndef CUPLUG_VIEW_H
#define CUPLUG_VIEW_H

#include <cuplug/host.h>
#include <stddef.h>

#ifdef __cplusplus
#include <complex>
extern "C" {
#endif

#define CUPLUG_VIEW_NDIM 4
/** Ends the sizes of a view at a pointer. */
#define CUPLUG_VIEW_END INT64_MIN

/** An array. It is passed by value, and compilers keep it in registers. */
typedef struct cuplug_view {
  void *data;
  uint64_t head; /* how a cuplug_argument begins: its kind, and its flags from bit 32 on */
  uint32_t type; /* CUPLUG_FLOAT32, for example */
  uint32_t rank; /* the number of dimensions, the flags below, and from bit 16 on 1 + the number of
                    the GPU, or 0 on the host */
  int64_t shape[CUPLUG_VIEW_NDIM]; /* then, of a strided one of one or two dimensions, the strides
                                      in elements, or in bytes with CUPLUG_UNALIGNED_STRIDES */
  void *stream; /* of a GPU: the stream of the call; NULL: not specified, as for outputs */
  int64_t strides[CUPLUG_VIEW_NDIM]; /* of a strided one of three or four dimensions; nor these */
} cuplug_view;

#define CUPLUG_VIEW_IS_STRIDED 0x100u
#define CUPLUG_VIEW_IS_TENSOR 0x200u /* `data` is a const cuplug_tensor *, but for the dtype */
#define CUPLUG__VIEW_GPU_SHIFT 16
#define CUPLUG__VIEW_GPUS 0xffffu
#define CUPLUG__VIEW_FLAGS(flags) ((uint64_t)(flags) << 32)

/** The sizes and strides that an argument borrows. */
typedef struct cuplug_view_shape {
  int64_t shape[CUPLUG_VIEW_NDIM];
  int64_t strides[CUPLUG_VIEW_NDIM];
} cuplug_view_shape;

/* The dtype of integers by their size. */
#define CUPLUG__SIGNED(type) \
  (sizeof(type) == 8 ? CUPLUG_INT64 : sizeof(type) == 4 ? CUPLUG_INT32 : CUPLUG_INT16)
#define CUPLUG__UNSIGNED(type) (CUPLUG__SIGNED(type) - CUPLUG_INT64 + CUPLUG_UINT64)

#ifdef __cplusplus
extern "C++" {
#define CUPLUG__TYPE(element, value)                                           \
  static inline constexpr uint32_t cuplug_type_at(element *) { return value; } \
  static inline constexpr uint32_t cuplug_type_at(const element *) { return value; }
CUPLUG__TYPE(signed char, CUPLUG_INT8)
CUPLUG__TYPE(short, CUPLUG__SIGNED(short))
CUPLUG__TYPE(int, CUPLUG__SIGNED(int))
CUPLUG__TYPE(long, CUPLUG__SIGNED(long))
CUPLUG__TYPE(long long, CUPLUG__SIGNED(long long))
CUPLUG__TYPE(bool, CUPLUG_BOOL)
CUPLUG__TYPE(unsigned char, CUPLUG_UINT8)
CUPLUG__TYPE(unsigned short, CUPLUG__UNSIGNED(short))
CUPLUG__TYPE(unsigned int, CUPLUG__UNSIGNED(int))
CUPLUG__TYPE(unsigned long, CUPLUG__UNSIGNED(long))
CUPLUG__TYPE(unsigned long long, CUPLUG__UNSIGNED(long long))
CUPLUG__TYPE(float, CUPLUG_FLOAT32)
CUPLUG__TYPE(double, CUPLUG_FLOAT64)
CUPLUG__TYPE(std::complex<float>, CUPLUG_COMPLEX64)
CUPLUG__TYPE(std::complex<double>, CUPLUG_COMPLEX128)
#undef CUPLUG__TYPE
template <class T> static inline constexpr int cuplug_is_const(T *) { return 0; }
template <class T> static inline constexpr int cuplug_is_const(const T *) { return 1; }
}
#define CUPLUG_TYPE_AT(pointer) cuplug_type_at(pointer)
#define CUPLUG_IS_CONST(pointer) cuplug_is_const(pointer)
#else
/** The dtype of the elements at a pointer. */
#define CUPLUG_TYPE_AT(pointer)                         \
  _Generic(*(pointer), signed char                      \
           : CUPLUG_INT8, short                         \
           : CUPLUG__SIGNED(short), int                 \
           : CUPLUG__SIGNED(int), long                  \
           : CUPLUG__SIGNED(long), long long            \
           : CUPLUG__SIGNED(long long), _Bool           \
           : CUPLUG_BOOL, unsigned char                 \
           : CUPLUG_UINT8, unsigned short               \
           : CUPLUG__UNSIGNED(short), unsigned int      \
           : CUPLUG__UNSIGNED(int), unsigned long       \
           : CUPLUG__UNSIGNED(long), unsigned long long \
           : CUPLUG__UNSIGNED(long long), float         \
           : CUPLUG_FLOAT32, double                     \
           : CUPLUG_FLOAT64, float _Complex             \
           : CUPLUG_COMPLEX64, double _Complex          \
           : CUPLUG_COMPLEX128)
#define CUPLUG_IS_CONST(pointer) \
  __builtin_types_compatible_p(__typeof__(&*(pointer)), const __typeof__(*(pointer)) *)
#endif

/** No array, for an optional parameter. */
static inline cuplug_view cuplug_no_view(void) {
  cuplug_view v;
  v.data = v.stream = NULL, v.head = CUPLUG_ARGUMENT_NONE, v.type = CUPLUG_UINT8, v.rank = 0;
  v.shape[0] = v.shape[1] = v.shape[2] = v.shape[3] = 0;
  v.strides[0] = v.strides[1] = v.strides[2] = v.strides[3] = 0;
  return v;
}

/* The view of a memoryview of three or four dimensions; the arguments are those below. */
static inline cuplug_view cuplug__view_of_more(cuplug_view v, uint32_t n, const ptrdiff_t *shape,
                                               const ptrdiff_t *strides, ptrdiff_t element_bytes) {
  ptrdiff_t next = element_bytes;
  int is_contiguous = 1, is_odd = 0;
  for (uint32_t k = n; k-- > 0; next *= shape[k]) {
    v.shape[k] = shape[k];
    if (!strides) continue;
    is_contiguous &= strides[k] == next || shape[k] == 1;
    is_odd |= strides[k] % element_bytes != 0;
    v.strides[k] = strides[k] / element_bytes;
  }
  if (!is_contiguous) v.rank |= CUPLUG_VIEW_IS_STRIDED;
  if (is_contiguous || !is_odd) return v;
  v.head |= CUPLUG__VIEW_FLAGS(CUPLUG_MISALIGNED | CUPLUG_UNALIGNED_STRIDES);
  for (uint32_t k = 0; k < n; k++) v.strides[k] = strides[k];
  return v;
}

/* The view of a memoryview of at most four dimensions. `strides` are in bytes, NULL if the type of
 * the memoryview is C-contiguous. Up to two dimensions have no loops: compilers keep everything in
 * registers. */
static inline cuplug_view cuplug_view_of(uint32_t type, const void *data, uint32_t n,
                                         const ptrdiff_t *shape, const ptrdiff_t *strides,
                                         ptrdiff_t element_bytes, uint64_t head) {
  cuplug_view v = cuplug_no_view();
  v.data = (void *)(uintptr_t)data, v.head = head, v.type = type, v.rank = n;
  if (n > 2) return cuplug__view_of_more(v, n, shape, strides, element_bytes);
  v.shape[0] = shape[0];
  if (n == 2) v.shape[1] = shape[1];
  if (!strides) return v;
  const ptrdiff_t last = strides[n - 1], row = n == 2 ? shape[1] * element_bytes : element_bytes;
  if ((strides[0] == row || shape[0] == 1) && (last == element_bytes || shape[n - 1] == 1))
    return v;
  v.rank |= CUPLUG_VIEW_IS_STRIDED;
  v.shape[n] = strides[0] / element_bytes, v.shape[2 * n - 1] = last / element_bytes;
  if (!(strides[0] % element_bytes || last % element_bytes)) return v;
  v.head |= CUPLUG__VIEW_FLAGS(CUPLUG_MISALIGNED | CUPLUG_UNALIGNED_STRIDES);
  return v.shape[n] = strides[0], v.shape[2 * n - 1] = last, v;
}

/** A view of C-contiguous memory; the sizes end with CUPLUG_VIEW_END. */
static inline cuplug_view cuplug_view_at(uint32_t type, const void *data, int is_read_only,
                                         int64_t a, int64_t b, int64_t c, int64_t d) {
  cuplug_view v = cuplug_no_view();
  v.data = (void *)(uintptr_t)data, v.type = type;
  v.rank = a == CUPLUG_VIEW_END ? 0 : b == CUPLUG_VIEW_END ? 1 : c == CUPLUG_VIEW_END ? 2 : 3;
  if (v.rank == 3 && d != CUPLUG_VIEW_END) v.rank = 4;
  if (data || v.rank) v.head = CUPLUG_ARGUMENT_ARRAY;
  if (is_read_only) v.head |= CUPLUG__VIEW_FLAGS(CUPLUG_READ_ONLY);
  v.shape[0] = a, v.shape[1] = b, v.shape[2] = c, v.shape[3] = d;
  return v;
}

#define CUPLUG__VIEW_AT(pointer, a, b, c, d, ...) \
  cuplug_view_at(CUPLUG_TYPE_AT(pointer), pointer, CUPLUG_IS_CONST(pointer), a, b, c, d)
/** CUPLUG_VIEW_AT(pointer, sizes...): a view of at most four dimensions; of none without sizes. */
#define CUPLUG_VIEW_AT(...) \
  CUPLUG__VIEW_AT(__VA_ARGS__, CUPLUG_VIEW_END, CUPLUG_VIEW_END, CUPLUG_VIEW_END, CUPLUG_VIEW_END, )

/** The view of a tensor that lives as long; NULL is no array. */
static inline cuplug_view cuplug_view_of_tensor(const cuplug_tensor *x) {
  cuplug_view v = cuplug_no_view();
  if (!x) return v;
  v.data = (void *)(uintptr_t)x, v.head = CUPLUG_ARGUMENT_ARRAY, v.rank = CUPLUG_VIEW_IS_TENSOR;
  v.type = cuplug_type(x);
  return v;
}

/** The same view, of a pointer, in the memory of a GPU. */
static inline cuplug_view cuplug_view_on_gpu(cuplug_view view, int32_t device) {
  const int is_number = device >= 0 && device < (int32_t)CUPLUG__VIEW_GPUS;
  const uint32_t gpu = is_number ? 1 + (uint32_t)device : CUPLUG__VIEW_GPUS;
  view.rank =
      (view.rank & ~(CUPLUG__VIEW_GPUS << CUPLUG__VIEW_GPU_SHIFT)) | gpu << CUPLUG__VIEW_GPU_SHIFT;
  return view;
}

/** The same view, on a GPU, in a call that is to run on a CUstream or cudaStream_t. */
static inline cuplug_view cuplug_view_on_stream(cuplug_view view, void *stream) {
  view.stream = stream;
  return view;
}

/** The same memory with elements of another dtype of the same size: float16 for uint16. */
static inline cuplug_view cuplug_view_as(cuplug_view view, uint32_t type) {
  if ((view.type >> 16 & 0xff) == (type >> 16 & 0xff)) view.type = type;
  return view;
}

/** Treats elements of a type that Cython has as elements of one that it does not have. */
static inline void cuplug_view_stand_in(cuplug_view *view, uint32_t type, uint32_t meant) {
  if (view->type == type && !(view->rank & CUPLUG_VIEW_IS_TENSOR)) view->type = meant;
}

/** For an output: scalar.handle is the cuplug_view * that receives it, in its own memory. */
#define CUPLUG_NEW_VIEW 32u
static inline cuplug_argument cuplug_new_view(cuplug_view *place) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_HANDLE, a.flags = CUPLUG_NEW_VIEW, a.scalar.handle = place;
  return a;
}

/** Makes a view an argument. `own` receives the fields that the argument borrows. As a call, it
 * would require the view in memory. */
static inline __attribute__((always_inline)) void
cuplug_set_view(cuplug_argument *argument, cuplug_view view, cuplug_view_shape *own) {
  const uint32_t code = view.type >> 24, bits = view.type >> 16 & 0xff, ndim = view.rank & 0xff;
  const uint32_t gpu = view.rank >> CUPLUG__VIEW_GPU_SHIFT;
  if (view.rank & CUPLUG_VIEW_IS_TENSOR) {
    *argument = cuplug_array((const cuplug_tensor *)view.data);
    argument->flags |= (uint32_t)(view.head >> 32);
  } else {
    const uintptr_t alignment = bits >> (code == CUPLUG_COMPLEX64 >> 24 ? 4 : 3);
    if ((uintptr_t)view.data & (alignment - 1)) view.head |= CUPLUG__VIEW_FLAGS(CUPLUG_MISALIGNED);
    own->shape[0] = view.shape[0];
    if (view.rank > 1) {
      own->shape[1] = view.shape[1];
      own->shape[2] = view.shape[2], own->shape[3] = view.shape[3];
    }
    const int is_strided = (view.rank & CUPLUG_VIEW_IS_STRIDED) != 0;
    if (is_strided && ndim > 2) { /* no loop, for which the view would be in memory */
      own->strides[0] = view.strides[0], own->strides[1] = view.strides[1];
      own->strides[2] = view.strides[2], own->strides[3] = view.strides[3];
    }
    argument->kind = (uint32_t)view.head, argument->flags = (uint32_t)(view.head >> 32);
    argument->tensor.data = view.data;
    argument->tensor.device.type = gpu ? CUPLUG_CUDA : CUPLUG_CPU;
    argument->tensor.device.id = gpu ? (int32_t)gpu - 1 : 0;
    argument->tensor.ndim = (int32_t)ndim;
    argument->tensor.shape = own->shape;
    argument->tensor.strides = !is_strided ? NULL : ndim > 2 ? own->strides : own->shape + ndim;
    argument->tensor.byte_offset = 0;
  }
  argument->tensor.dtype.code = (uint8_t)code, argument->tensor.dtype.bits = (uint8_t)bits;
  argument->tensor.dtype.lanes = (uint16_t)(view.type & 0xffff);
}

/** A list: `n` views, integers or numbers, which cuplug_set_items converts to arguments. NULL is
 * None. */
#define CUPLUG_LIST_OF_VIEWS 64u
#define CUPLUG_LIST_OF_INTS 128u
#define CUPLUG_LIST_OF_FLOATS 256u
static inline cuplug_argument cuplug__list_of(uint32_t what, const void *items, uint32_t n) {
  cuplug_argument a = cuplug_list_argument((const cuplug_argument *)items, n);
  a.flags = what;
  return items || n ? a : cuplug_none();
}
static inline cuplug_argument cuplug_views(const cuplug_view *items, uint32_t n) {
  return cuplug__list_of(CUPLUG_LIST_OF_VIEWS, items, n);
}
static inline cuplug_argument cuplug_ints(const int64_t *items, uint32_t n) {
  return cuplug__list_of(CUPLUG_LIST_OF_INTS, items, n);
}
static inline cuplug_argument cuplug_floats(const double *items, uint32_t n) {
  return cuplug__list_of(CUPLUG_LIST_OF_FLOATS, items, n);
}

/** Makes such a list an argument; its items are written to `items`, with the fields that they
   borrow. */
static inline void cuplug_set_items(cuplug_argument *of, cuplug_argument *items,
                                    cuplug_view_shape *shapes) {
  const void *given = of->list.items;
  for (uint32_t k = 0; k < of->list.n; k++)
    if (of->flags == CUPLUG_LIST_OF_VIEWS)
      cuplug_set_view(&items[k], ((const cuplug_view *)given)[k], &shapes[k]);
    else if (of->flags == CUPLUG_LIST_OF_INTS)
      items[k] = cuplug_int(((const int64_t *)given)[k]);
    else
      items[k] = cuplug_float(((const double *)given)[k]);
  of->flags = 0, of->list.items = items;
}

#ifdef __cplusplus
}
#endif
#endif
