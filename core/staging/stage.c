/* SPDX-License-Identifier: Apache-2.0 */
/* Offloaded host arrays: described, then coalesced or in slices if that pays, or whole, or, if the
 * GPU's memory has no room, in parts as large as fit.
 *
 * Small calls are coalesced: all arrays are consecutive in one block, so that there is one copy to
 * the device, one back, and one wait, which cost more than the bytes. Pinned arrays have their own
 * copies. */
#include "staging/stage.h"

#include "base/layout.h"
#include "base/status.h"
#include "cuda/channel.h"
#include "cuda/fault.h"
#include "cuda/gpus.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "entry/entry.h"
#include "entry/services.h"
#include "staging/slices.h"
#include "staging/staged_call.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* The maximum bytes of all arrays of coalesced calls, if some need buffers, and if all are pinned:
 * larger calls gain more from concurrent slices than these cost. */
#define COALESCED_BYTES ((uint64_t)1 << 20)
#define COALESCED_PINNED_BYTES ((uint64_t)8 << 20)

#define ALIGNMENT 256 /* of arrays in the block, as of memory from the driver */
#define LEAST_BLOCK ((uint64_t)64 << 10)

/* Where coalesced arrays are, in this order: from SENT to BOTH they are sent, from BOTH to RECEIVED
 * they are returned; the others are only in the block. */
enum { SENT, BOTH, RECEIVED, OTHERS, N_GROUPS };

/* The part under way. */
typedef struct part {
  cuplug__staged_call *staged;
  cuplug__channel *channel;
  uint64_t first, n;                  /* rows */
  void *blocks[CUPLUG_MAX_ARGUMENTS]; /* device memory of each array */
  int is_back;                        /* some of it may be: it must not be run again */
  int is_coalesced;
  uint64_t direct_mask; /* if it is coalesced, bit k: array k is pinned */
  /* In the channel's block, and in its pinned buffers. */
  uint64_t offsets[CUPLUG_MAX_ARGUMENTS], ends[N_GROUPS];
} part;

/* ---- Coalesced arrays ------------------------------------------------------------------------ */

static int is_direct(const part *p, uint32_t k) { return p->direct_mask >> k & 1; }

/* Returns whether a call that is described whole can be coalesced. */
static int fits_block(part *p) {
  const cuplug__staged_call *s = p->staged;
  const cuplug_frame *f = s->run->frame;
  uint64_t bytes = 0, n_buffered = 0;
  for (uint32_t k = 0; k < s->n_arrays; k++) {
    if (k >= f->n_inputs && !s->arrays[k].is_known && f->tensors[k].ndim >= 0) return 0;
    bytes += s->arrays[k].bytes;
  }
  for (uint32_t k = 0; k < s->n_arrays && bytes <= COALESCED_PINNED_BYTES; k++) {
    const cuplug__staged_array *x = &s->arrays[k];
    /* In-out arrays change once it is known that nothing has failed. */
    const int is_inout = x->is_sent && x->is_received;
    const uint64_t bit = !is_inout && cuplug__is_for_driver(&x->view, 0, x->bytes);
    p->direct_mask |= bit << k;
    if (!bit) n_buffered += x->bytes;
  }
  return bytes < COALESCED_BYTES || (bytes <= COALESCED_PINNED_BYTES && !n_buffered);
}

static int group_of(const part *p, uint32_t k) {
  const cuplug__staged_array *x = &p->staged->arrays[k];
  if (is_direct(p, k) || !x->is_known) return OTHERS;
  return !x->is_received ? SENT : x->is_sent ? BOTH : RECEIVED;
}

static void coalesce(part *p) {
  uint64_t bytes = 0;
  for (int group = 0; group < N_GROUPS; group++) {
    for (uint32_t k = 0; k < p->staged->n_arrays; k++) {
      if (group_of(p, k) != group) continue;
      p->offsets[k] = bytes;
      bytes += (p->staged->arrays[k].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    p->ends[group] = bytes;
  }
  p->is_coalesced = 1;
}

/* Its block stays with the channel: a request to the pool would take a good part of a small call.
 */
static int take_block(part *p) {
  cuplug__channel *channel = p->channel;
  cuplug_error *error = p->staged->run->error;
  uint64_t bytes = LEAST_BLOCK;
  int status = p->ends[RECEIVED] ? cuplug__channel_pin(channel, p->ends[RECEIVED], error) : 0;
  if (!status && (!channel->block || channel->block_bytes < p->ends[OTHERS])) {
    while (bytes < p->ends[OTHERS]) bytes *= 2;
    cuplug__device_free(channel->block, channel->stream, NULL);
    channel->block = NULL;
    channel->block_bytes = 0;
    status =
        cuplug__device_allocate(channel->device, bytes, channel->stream, &channel->block, error);
    if (!status) channel->block_bytes = bytes;
  }
  for (uint32_t k = 0; k < p->staged->n_arrays && !status; k++)
    p->blocks[k] = (char *)channel->block + p->offsets[k];
  return status;
}

/* On the channel's stream. */
static int copy(const part *p, int to_host, char *host, uint64_t offset, uint64_t bytes) {
  if (!bytes) return CUPLUG_OK;
  return cuplug__driver_copy(to_host, host, (char *)p->channel->block + offset, bytes,
                             p->channel->stream, p->staged->run->error);
}

static int copy_direct(const part *p, int to_host) {
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < p->staged->n_arrays && !status; k++) {
    const cuplug__staged_array *x = &p->staged->arrays[k];
    if (is_direct(p, k) && (to_host ? x->is_received : x->is_sent))
      status = copy(p, to_host, x->view.data, p->offsets[k], x->bytes);
  }
  return status;
}

/* Between the other arrays and pinned memory. */
static void copy_buffered(const part *p, int to_host) {
  for (uint32_t k = 0; k < p->staged->n_arrays; k++) {
    const cuplug__staged_array *x = &p->staged->arrays[k];
    if (!is_direct(p, k) && (to_host ? x->is_received : x->is_sent))
      cuplug__view_copy(&x->view, to_host, 0, x->bytes, p->channel->pinned + p->offsets[k]);
  }
}

/* The pinned ones are transferred while the others are read. */
static int send_block(const part *p) {
  int status = copy_direct(p, 0);
  copy_buffered(p, 0);
  return status ? status : copy(p, 0, p->channel->pinned, 0, p->ends[BOTH]);
}

/* To pinned memory: after a failed call, only pinned outputs are written. */
static int receive_block(part *p) {
  const uint64_t at = p->ends[SENT];
  p->is_back = 1;
  int status = copy(p, 1, p->channel->pinned + at, at, p->ends[RECEIVED] - at);
  return status ? status : copy_direct(p, 1);
}

/* ---- One part, step by step ------------------------------------------------------------------ */

/* All memory is allocated before any transfer: if it does not suffice, little is lost. */
static int allocate(part *p) {
  const cuplug__run *run = p->staged->run;
  int status = CUPLUG_OK;
  if (p->is_coalesced) return take_block(p);
  for (uint32_t k = 0; k < p->staged->n_arrays && !status; k++) {
    const cuplug__staged_array *x = &p->staged->arrays[k];
    if (x->is_known)
      status = cuplug__device_allocate(run->device.id, cuplug__staged_array_bytes(x, p->n),
                                       run->stream, &p->blocks[k], run->error);
  }
  return status;
}

static int transfer(part *p, uint32_t k, int to_host) {
  const cuplug__staged_array *x = &p->staged->arrays[k];
  if (!(to_host ? x->is_received : x->is_sent)) return CUPLUG_OK;
  return cuplug__transfer(p->channel, to_host, &x->view, cuplug__staged_array_place(x, p->first),
                          p->blocks[k], cuplug__staged_array_bytes(x, p->n), &p->staged->tracker,
                          p->staged->run->error);
}

static int send(part *p) {
  int status = allocate(p);
  if (!status && p->is_coalesced) return send_block(p);
  for (uint32_t k = 0; k < p->staged->n_arrays && !status; k++) status = transfer(p, k, 0);
  return status;
}

static int run_entry(part *p) {
  cuplug__run *run = p->staged->run;
  cuplug__staged_call_bind_rows(p->staged, p->n, p->blocks);
  int status = cuplug__call_entry(run);
  for (uint32_t k = run->frame->n_inputs; k < p->staged->n_arrays; k++) /* which the entry
                                                                           requested */
    if (!p->staged->arrays[k].is_known) p->blocks[k] = run->tensors[k].data;
  if (status) return status;
  if (p->is_coalesced) status = receive_block(p);
  if (!status) status = cuplug__stream_synchronize(run->stream, run->error);
  if (status) return cuplug__prefix_operator_name(run, status);
  cuplug__staged_call_offset_fault(p->staged, run->fault, p->first);
  return cuplug__fault_take(run->fault, run->overload, run->error);
}

/* Memory on the host for an output whose size the run has found. */
static int give_memory(part *p, uint32_t k) {
  const cuplug__run *run = p->staged->run;
  cuplug__staged_array *x = &p->staged->arrays[k];
  int status = cuplug__allocate_output(run, k, (cuplug_device){CUPLUG_CPU, 0});
  x->bytes = (uint64_t)cuplug__n_bytes(&run->tensors[k]);
  x->is_received = !status;
  cuplug__view_bytes(&x->view, run->frame->tensors[k].data, x->bytes);
  return status;
}

static int receive(part *p) {
  const cuplug__run *run = p->staged->run;
  int status = CUPLUG_OK;
  if (p->is_coalesced) {
    copy_buffered(p, 1);
    return cuplug__progress_tracker_add(&p->staged->tracker, cuplug__staged_bytes(run), run->error);
  }
  p->is_back = 1;
  for (uint32_t k = 0; k < p->staged->n_arrays && !status; k++) {
    if (!p->staged->arrays[k].is_known && p->blocks[k]) status = give_memory(p, k);
    if (!status) status = transfer(p, k, 1);
  }
  return status;
}

static int run_part(part *p) {
  const cuplug__run *run = p->staged->run;
  p->is_back = 0;
  int status = cuplug__prefix_operator_name(run, send(p));
  if (!status) status = run_entry(p);
  if (!status) status = cuplug__prefix_operator_name(run, receive(p));
  for (uint32_t k = 0; k < p->staged->n_arrays; k++) {
    if (!p->is_coalesced) cuplug__device_free(p->blocks[k], run->stream, NULL);
    p->blocks[k] = NULL;
  }
  return status;
}

/* ---- All parts ------------------------------------------------------------------------------- */

CUPLUG__COLD static void explain_memory(const cuplug__staged_call *s) {
  const cuplug_frame *f = s->run->frame;
  cuplug_error *error = s->run->error;
  const char *before = "; the call needs";
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    char name[CUPLUG__NAME_BYTES];
    if (!s->arrays[k].is_known) continue;
    cuplug__name_tensor(name, s->run->overload, k, f->n_inputs);
    cuplug__append(error, "%s %s (%lld bytes)", before, name,
                   (long long)cuplug__n_bytes(&f->tensors[k]));
    before = ",";
  }
  cuplug__append(error, " at once: %s",
                 s->n_rows > 1 || s->is_share ? "one step of the loop dimensions is that large"
                 : f->loop_ndim               ? "its loop dimensions cannot be split"
                                              : "its signature has no loop dimensions");
}

/* How many rows to try after n were too many; 0: it cannot be less. Coalesced arrays are tried
 * without their block. */
static uint64_t fewer_rows(part *p, uint64_t n) {
  cuplug__staged_call *s = p->staged;
  if (p->is_coalesced) return p->is_coalesced = 0, n;
  if (n > 1) return (n + 1) / 2;
  return s->n_rows == 1 && !s->is_share && cuplug__staged_call_rows(s) ? (s->n_rows + 1) / 2 : 0;
}

static int run_all(part *p) {
  cuplug__staged_call *s = p->staged;
  uint64_t n_done = 0;
  int status = CUPLUG_OK;
  if (!s->is_share && !p->is_coalesced) cuplug__staged_call_whole(s);
  uint64_t most = s->n_rows;
  while (!status && n_done < s->n_rows) {
    p->first = s->first_row + n_done;
    p->n = cuplug__min(most, s->n_rows - n_done);
    status = run_part(p);
    if (!status) {
      n_done += p->n;
    } else if (status == CUPLUG_ERROR_MEMORY && !p->is_back) {
      most = fewer_rows(p, p->n);
      if (!most) return explain_memory(s), status;
      cuplug__clear(s->run->error);
      status = CUPLUG_OK;
    }
  }
  return status;
}

/* After an error the outputs and in-out arrays hold the results of earlier parts. */
static int run_parts(part *p) {
  cuplug__run *run = p->staged->run;
  int status = cuplug__channel_acquire(run->device.id, &p->channel, run->error);
  if (status) return cuplug__prefix_operator_name(run, status);
  run->stream = p->channel->stream;
  run->fault = p->channel->faults->records;
  status = run_all(p);
  cuplug__channel_release(p->channel);
  return status;
}

/* ---- One way after the other ----------------------------------------------------------------- */

static int run_slices(cuplug__staged_call *s) {
  const int32_t device = s->run->device.id;
  int status = cuplug__gpu_slot_acquire(device, &s->tracker, s->run->error);
  if (status) return status;
  status = cuplug__run_slices(s);
  cuplug__gpu_slot_release(device);
  return status;
}

static int run_staged(cuplug__staged_call *s) {
  part p = {.staged = s};
  int status = CUPLUG__NOT_RUN;
  if (!s->is_share) {
    cuplug__staged_call_whole(s);
    if (fits_block(&p)) coalesce(&p);
  }
  if (!p.is_coalesced && (s->is_share || cuplug__staged_call_rows(s)) && cuplug__suits_slices(s))
    status = run_slices(s);
  if (status == CUPLUG__NOT_RUN) status = run_parts(&p);
  return status ? status : cuplug__progress_tracker_end(&s->tracker, s->run->error);
}

int cuplug__run_staged(cuplug__run *run, uint64_t first_row, uint64_t n_rows) {
  cuplug__staged_call *s = cuplug__staged_call_new(run);
  if (!s) return CUPLUG_ERROR_MEMORY;
  run->frame->offloaded = 1;
  s->is_share = n_rows > 0;
  if (s->is_share) {
    cuplug__staged_call_rows(s);
    s->first_row = first_row;
    s->n_rows = n_rows;
  }
  cuplug__progress_tracker_start(&s->tracker, run->frame->progress, run->frame->user,
                                 s->is_share ? n_rows * s->row_bytes : cuplug__staged_bytes(run));
  const int status = run_staged(s);
  free(s);
  return status;
}

/* ---- Turns ----------------------------------------------------------------------------------- */

#define PERIOD_NS 100000000 /* after which a waiting thread reports */
#define N_PERIODS 20        /* after which it continues in any case */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_given = PTHREAD_COND_INITIALIZER;
static int n_running[CUPLUG__MAX_GPUS]; /* under the lock */
static _Thread_local int n_own;

/* 1 with a slot, 0 after a period without one. */
static int begin(int32_t device, int at_most) {
  struct timespec end;
  int code = 0;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += PERIOD_NS;
  if (end.tv_nsec >= 1000000000) end.tv_nsec -= 1000000000, end.tv_sec++;
  pthread_mutex_lock(&lock);
  while (!code && n_running[device] >= at_most)
    code = pthread_cond_timedwait(&is_given, &lock, &end);
  const int has_turn = n_running[device] < at_most;
  n_running[device] += has_turn;
  pthread_mutex_unlock(&lock);
  return has_turn;
}

int cuplug__gpu_slot_acquire(int32_t device, cuplug__progress_tracker *tracker,
                             cuplug_error *error) {
  for (int k = n_own ? N_PERIODS : 0; !begin(device, k < N_PERIODS ? CUPLUG__GPU_SLOTS : INT32_MAX);
       k++) {
    int status = cuplug__progress_tracker_add(tracker, 0, error);
    if (status) return status;
  }
  n_own++;
  return CUPLUG_OK;
}

void cuplug__gpu_slot_release(int32_t device) {
  pthread_mutex_lock(&lock);
  n_running[device]--;
  pthread_cond_broadcast(&is_given);
  pthread_mutex_unlock(&lock);
  n_own--;
}
