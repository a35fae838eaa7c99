/* SPDX-License-Identifier: Apache-2.0 */
/* One call in two halves, bind and run, for the core and the Cython layer. Not installed: it may
 * change at any time. */
#ifndef CUPLUG_INTERNAL_FRAME_H
#define CUPLUG_INTERNAL_FRAME_H

#include <internal/signature.h>

CUPLUG__BEGIN_C

typedef struct cuplug_frame cuplug_frame;

/* Gives an output of unknown size its memory: sets tensor->data for tensor->shape, on
 * tensor->device. Returns a status. Called on the thread that called cuplug_run. */
typedef int cuplug_allocate(void *user, cuplug_frame *frame, uint32_t tensor, cuplug_error *error);

/* Allocates a workspace on a GPU, the `number`-th of this call, which the caller frees after the
 * run; *pointer remains NULL if the pool is to provide it. Returns a status. The GPU has been
 * entered.
 */
typedef int cuplug_keep_workspace(void *user, const cuplug_frame *frame, uint32_t number,
                                  uint64_t bytes, void **pointer, cuplug_error *error);

/* Sets the shapes of outputs of a bound frame that a signature cannot express: shrinks or drops
 * dimensions of frame->tensors[n_inputs ...]. `error` may be NULL. Returns a status. */
typedef int cuplug_reshape(cuplug_frame *frame, cuplug_error *error);

#define CUPLUG_MAX_STORED 1024 /* words of shapes and strides that a call makes */
#define CUPLUG_MAX_ITEMS 256   /* of lists of numbers of a call; further lists are in `blocks` */

#define CUPLUG_COPY_ITEMS (1ull << 63) /* in copy_mask: of arrays of lists that are apart */

/* One call under way, in the caller's stack frame. Filled by cuplug_bind; nothing in it needs to be
 * prepared, and only its `blocks` need to be freed. Fields marked (set) may be set by
 * the caller between bind and run. */
struct cuplug_frame {
  cuplug_operator *op;
  const cuplug_signature *signature; /* of the row that matched */
  uint32_t row;                      /* its number */
  uint32_t n_tensors;                /* arrays in signature order, then outputs */
  uint32_t n_inputs;                 /* tensors that are parameters: the outputs begin here */
  uint32_t n_scalars;
  uint64_t copy_mask; /* bit k: tensor k must be passed as a C-contiguous, aligned copy */
  uint64_t
      unaligned_stride_mask; /* of these, those that only a copy helps: CUPLUG_UNALIGNED_STRIDES */
  cuplug_device home;        /* the device of the arrays; type 0: there is none */
  cuplug_device
      device;   /* (set) where to run, and after the run where it ran. Bind leaves the arrays'
                   GPU, or type 0: the host entry, unless the row has none or prefers CUDA */
  void *stream; /* (set) CUstream; NULL: the legacy default stream, and without arrays cuplug_run
                   waits for it */
  cuplug_handle **made;                /* (set) where the handle that it makes goes */
  cuplug_allocate *allocate;           /* (set) for outputs of unknown size */
  cuplug_progress *progress;           /* (set) while host arrays are offloaded; may be NULL */
  cuplug_keep_workspace *keep_scratch; /* (set) NULL: the pool gives it */
  void *user;                          /* (set) the first argument of these */
  void *blocks;                        /* memory of lists, for cuplug_free_blocks; NULL: none */
  cuplug_tensor *apart;    /* the arrays of all lists, one list behind the other, where they are not
                              among `tensors`: of lists T[n][each], and where there are too many */
  uint32_t n_apart;        /* if `apart` is set */
  const uint64_t *origins; /* (set) of the arrays that are read: see cuplug_check_origin */
  uint32_t n_origins;
  uint64_t origin;      /* of the outputs, after the run on a GPU */
  int32_t keeps_layout; /* 1: by cuplug_keep_layout */
  int32_t offloaded;    /* after the run: 1 when host arrays went through the GPU */
  uint32_t
      runs_with_gil; /* 1: on the host it takes microseconds: keep locks, as Python's, around it */
  uint8_t parameter[CUPLUG_MAX_ARGUMENTS];     /* parameter number of each tensor */
  cuplug_tensor tensors[CUPLUG_MAX_ARGUMENTS]; /* outputs: (set) data; shape and dtype are filled */
  int64_t n_bytes[CUPLUG_MAX_ARGUMENTS]; /* of tensors without strides; -1: a size is unknown */
  cuplug_scalar scalars[CUPLUG_MAX_ARGUMENTS]; /* outside of the run, handles are cuplug_handle */
  uint64_t none_mask;                          /* bit k: scalar k is None */
  uint64_t supplied_mask;                      /* bit k: output k was given by cuplug_set_output */
  int32_t loop_ndim;                           /* the broadcast shape of `...` */
  int64_t loop_shape[CUPLUG_MAX_NDIM];
  uint32_t n_stored;                  /* words of `storage` in use */
  int64_t storage[CUPLUG_MAX_STORED]; /* shapes and strides made here */
  uint32_t n_items;
  int64_t items[CUPLUG_MAX_ITEMS]; /* of lists of numbers; floats by their bits */
};

/* Matches arguments (in the order of the signature's parameters; missing ones at the end are
 * absent) against the operator's rows, in the order of the table. Checks number, kinds, dtypes,
 * ranks, dimensions, layout, devices, ranges; converts scalars; computes the outputs' shapes and
 * dtypes. Tensors that are C-contiguous have no strides before cuplug_run; outputs that are to be
 * allocated otherwise have some.
 *
 * If an input would have to be copied first (not C-contiguous, misaligned, or to be broadcast), its
 * bit in `copy_mask` is set, and the caller either passes such copies (shapes from
 * cuplug_required_shape) in a second bind, or gives up: cuplug_run rejects a frame for which
 * cuplug_required_copies is not 0. In-out arrays are never copied but rejected. [thread-safe]
 * [no-cuda] */
int cuplug_bind(cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                cuplug_frame *frame, cuplug_error *error);

/* The same against a single overload, for arguments that were passed by its parameters' names:
 * other overloads may use other names. Without `needs_memory`, arrays have no memory, and the frame
 * must not be run. *n_matched: the number of parameters that fitted. `error` may be NULL.
 * [thread-safe] [no-cuda] */
int cuplug_bind_overload(cuplug_operator *op, uint32_t row, const cuplug_argument *args,
                         uint32_t n_args, uint32_t needs_memory, cuplug_frame *frame,
                         int32_t *n_matched, cuplug_error *error);

typedef struct cuplug_bound_call cuplug_bound_call;

/* Continues a call: with the error of the entry, valid until the thread's next call, or with NULL
 * if the call must be bound, and nothing was run. */
typedef int cuplug_call_otherwise(const cuplug_bound_call *bound, const cuplug_argument *args,
                                  uint32_t n_parameters, uint32_t n_outputs,
                                  const cuplug_error *failed);
#define CUPLUG_ANY_OVERLOAD UINT32_MAX
struct cuplug_bound_call {
  cuplug_operator *op;
  uint32_t row; /* the overload; or CUPLUG_ANY_OVERLOAD */
  cuplug_call_otherwise *otherwise;
};

/* Binds and runs a call on the host whose arguments and outputs, which follow each other, are like
 * those of a call that this thread has bound before, and that this overload takes. Returns 0 if it
 * has run; else what `otherwise` returns. [thread-safe] */
int cuplug_call_again(const cuplug_bound_call *bound, const cuplug_argument *args,
                      uint32_t n_parameters, uint32_t n_outputs);

/* Frees the `blocks` of a frame when it is no longer used. After a bind that failed there are none:
 * NULL is accepted. [thread-safe] [no-cuda] */
void cuplug_free_blocks(void *blocks);

/* If an overload treats all elements of its arrays equally, and the inputs have one layout without
 * gaps that is not C order, sets it for the outputs: cuplug_run then passes all arrays in memory
 * order, and none is copied. Call it before outputs get memory. [thread-safe] [no-cuda] */
void cuplug_keep_layout(cuplug_frame *frame);

/* The part of copy_mask that requires copies, with the current `device`: arrays of the host that
 * are offloaded, or that the host entry receives in blocks, are made contiguous on the way.
 * [thread-safe] */
uint64_t cuplug_required_copies(const cuplug_frame *frame);

/* Refuses a place where a frame without arrays cannot run, before its outputs are allocated: there
 * is nothing to be cut. [thread-safe] [no-cuda] */
int cuplug_check_device(const cuplug_frame *frame, cuplug_error *error);

/* The shape that input tensor k of a bound frame must have after broadcasting. Returns its ndim.
 * [thread-safe] [no-cuda] */
int32_t cuplug_required_shape(const cuplug_frame *frame, uint32_t k,
                              int64_t shape[CUPLUG_MAX_NDIM]);

/* Writes the copy of input tensor k that `copy_mask` requires, in that shape; it is not in
 * `unaligned_stride_mask`, and on the host. Large ones on several threads. [thread-safe]
 * [no-cuda] */
void cuplug_copy_input(const cuplug_frame *frame, uint32_t k, void *to);

/* Takes `given` as output k (from 0): checks dtype, shape, layout, device, read-only, and that its
 * memory overlaps no input and no other output given. [thread-safe] [no-cuda] */
int cuplug_set_output(cuplug_frame *frame, uint32_t k, const cuplug_argument *given,
                      cuplug_error *error);

/* Leaves out optional output k (from 0): the entry sees it with ndim -1. After a bind all of them
 * are there. [thread-safe] [no-cuda] */
static inline void cuplug_leave_out(cuplug_frame *frame, uint32_t k) {
  frame->tensors[frame->n_inputs + k].ndim = -1;
  frame->tensors[frame->n_inputs + k].strides = NULL;
  frame->n_bytes[frame->n_inputs + k] = 0;
}

/* Runs a bound frame whose outputs have memory. Host arrays with frame->device set to CUDA are
 * offloaded to the GPU [syncs]; otherwise, host arrays run on the host entry before it returns;
 * device arrays are [stream-ordered]. A fault of an earlier call of this thread on a GPU is raised
 * here, with the name of its operator, before anything is run. [thread-safe] */
int cuplug_run(cuplug_frame *frame, cuplug_error *error);

/* How often an entry, or a body of a loop on a thread of the team, came back with another rounding
 * direction, with subnormal numbers flushed, or with traps. The core has undone it. [thread-safe]
 */
uint64_t cuplug_n_rounding_changes(void);

CUPLUG__END_C
#endif
