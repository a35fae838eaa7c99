/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/coalesced.h"

#include "base/status.h"
#include "cuda/channel.h"
#include "cuda/fault.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "entry/entry.h"

#define ALIGNMENT 256 /* of arrays in the block, as of memory from the driver */
#define LEAST_BLOCK ((uint64_t)64 << 10)

/* The layout of the arrays, equal in pinned and device memory: those that are sent, those that are
 * sent and returned, those that are returned; then the pinned ones, only in device memory. */
typedef struct pack {
  cuplug__staged_call *staged;
  cuplug__channel *channel;
  char *device;
  uint64_t offsets[CUPLUG_MAX_ARGUMENTS];
  uint64_t n_sent, received, n_packed, bytes; /* [0, n_sent) and [received, n_packed) are
                                                 transferred */
  uint64_t direct_mask;                       /* bit k: array k is pinned */
} pack;

static int is_direct(const pack *p, uint32_t k) { return p->direct_mask >> k & 1; }

/* Only for arrays of calls that may fit. */
static int fits_pack(pack *p) {
  const cuplug__staged_call *s = p->staged;
  const cuplug_frame *f = s->run->frame;
  uint64_t bytes = 0, n_buffered = 0;
  for (uint32_t k = 0; k < s->n_arrays; k++) {
    if (k >= f->n_inputs && !s->arrays[k].is_known && f->tensors[k].ndim >= 0) return 0;
    bytes += s->arrays[k].bytes;
  }
  for (uint32_t k = 0; k < s->n_arrays && bytes <= CUPLUG__PACKED_PINNED_BYTES; k++) {
    const cuplug__staged_array *x = &s->arrays[k];
    /* In-out arrays change once it is known that nothing has failed. */
    const int is_inout = x->is_sent && x->is_received;
    const uint64_t bit = !is_inout && cuplug__is_for_driver(&x->view, 0, x->bytes);
    p->direct_mask |= bit << k;
    if (!bit) n_buffered += x->bytes;
  }
  return bytes < CUPLUG__PACKED_BYTES || (bytes <= CUPLUG__PACKED_PINNED_BYTES && !n_buffered);
}

static void add(pack *p, uint32_t k) {
  p->offsets[k] = p->bytes;
  p->bytes += (p->staged->arrays[k].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void add_arrays(pack *p, int is_sent, int is_received) {
  for (uint32_t k = 0; k < p->staged->n_arrays; k++) {
    const cuplug__staged_array *x = &p->staged->arrays[k];
    if (x->is_sent == is_sent && x->is_received == is_received && !is_direct(p, k)) add(p, k);
  }
}

static void lay_out(pack *p) {
  add_arrays(p, 1, 0);
  p->received = p->bytes;
  add_arrays(p, 1, 1);
  p->n_sent = p->bytes;
  add_arrays(p, 0, 1);
  p->n_packed = p->bytes;
  for (uint32_t k = 0; k < p->staged->n_arrays; k++)
    if (is_direct(p, k)) add(p, k);
}

/* One copy on the channel's stream. */
static int copy(const pack *p, int to_host, char *host, uint64_t offset, uint64_t bytes) {
  if (!bytes) return CUPLUG_OK;
  return cuplug__driver_copy(to_host, host, p->device + offset, bytes, p->channel->stream,
                             p->staged->run->error);
}

static int copy_direct(const pack *p, int to_host) {
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < p->staged->n_arrays && !status; k++) {
    const cuplug__staged_array *x = &p->staged->arrays[k];
    if (is_direct(p, k) && (to_host ? x->is_received : x->is_sent))
      status = copy(p, to_host, x->view.data, p->offsets[k], x->bytes);
  }
  return status;
}

/* The pinned ones are transferred while the others are read. */
static int send(const pack *p) {
  const cuplug__staged_call *s = p->staged;
  int status = copy_direct(p, 0);
  for (uint32_t k = 0; k < s->n_arrays; k++)
    if (s->arrays[k].is_sent && !is_direct(p, k))
      cuplug__view_read(&s->arrays[k].view, 0, s->arrays[k].bytes,
                        p->channel->pinned + p->offsets[k]);
  return status ? status : copy(p, 0, p->channel->pinned, 0, p->n_sent);
}

static int call_entry(const pack *p) {
  void *addresses[CUPLUG_MAX_ARGUMENTS];
  for (uint32_t k = 0; k < p->staged->n_arrays; k++) addresses[k] = p->device + p->offsets[k];
  cuplug__staged_call_bind_rows(p->staged, 1, addresses);
  return cuplug__call_entry(p->staged->run);
}

/* After a failed call, only pinned outputs are written. */
static int receive(const pack *p) {
  const cuplug__run *run = p->staged->run;
  const uint64_t at = p->received;
  int status = copy(p, 1, p->channel->pinned + at, at, p->n_packed - at);
  if (!status) status = copy_direct(p, 1);
  if (!status) status = cuplug__stream_synchronize(p->channel->stream, run->error);
  return cuplug__prefix_operator_name(run, status);
}

static void write_back(const pack *p) {
  const cuplug__staged_call *s = p->staged;
  for (uint32_t k = 0; k < s->n_arrays; k++)
    if (s->arrays[k].is_received && !is_direct(p, k))
      cuplug__view_write(&s->arrays[k].view, 0, s->arrays[k].bytes,
                         p->channel->pinned + p->offsets[k]);
}

static int run_pack(const pack *p) {
  const cuplug__run *run = p->staged->run;
  int status = cuplug__prefix_operator_name(run, send(p));
  if (!status) status = call_entry(p);
  if (!status) status = receive(p);
  if (!status) status = cuplug__fault_take(run->fault, run->overload, run->error);
  if (status) return status;
  write_back(p);
  return cuplug__progress_tracker_add(&p->staged->tracker, cuplug__staged_bytes(run), run->error);
}

/* It stays with the channel: asking the pool for some would take a good part of a small call. */
static int take_block(pack *p) {
  cuplug__channel *channel = p->channel;
  cuplug_error *error = p->staged->run->error;
  uint64_t bytes = LEAST_BLOCK;
  int status = CUPLUG_OK;
  if (!channel->block || channel->block_bytes < p->bytes) {
    while (bytes < p->bytes) bytes *= 2;
    cuplug__device_free(channel->block, channel->stream, NULL);
    channel->block = NULL;
    channel->block_bytes = 0;
    status =
        cuplug__device_allocate(channel->device, bytes, channel->stream, &channel->block, error);
    if (!status) channel->block_bytes = bytes;
  }
  p->device = channel->block;
  return status;
}

static int take_memory(pack *p) {
  const cuplug__run *run = p->staged->run;
  int status = cuplug__channel_acquire(run->device.id, &p->channel, run->error);
  if (status) return p->channel = NULL, status;
  if (p->n_packed) status = cuplug__channel_pin(p->channel, p->n_packed, run->error);
  return status ? status : take_block(p);
}

int cuplug__run_coalesced(cuplug__staged_call *s) {
  cuplug__run *run = s->run;
  pack p = {.staged = s};
  cuplug__staged_call_whole(s);
  if (!fits_pack(&p)) return CUPLUG__NOT_RUN;
  lay_out(&p);
  int status = cuplug__prefix_operator_name(run, take_memory(&p));
  if (status == CUPLUG_ERROR_MEMORY) {
    cuplug__clear(run->error);
    status = CUPLUG__NOT_RUN;
  } else if (!status) {
    run->stream = p.channel->stream;
    run->fault = p.channel->faults->records;
    status = run_pack(&p);
  }
  if (p.channel) cuplug__channel_release(p.channel);
  return status;
}
