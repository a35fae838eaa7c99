/* SPDX-License-Identifier: Apache-2.0 */
#include "staging/packed.h"

#include "base/status.h"
#include "cuda/fault.h"
#include "cuda/lane.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "entry/entry.h"
#include "entry/run.h"
#include "host/view.h"
#include "host/watch.h"
#include "staging/parcel.h"
#include "staging/transfer.h"

#define ALIGNMENT 256 /* of arrays in the block, as of memory from the driver */

/* Where the arrays lie, in pinned and alike in device memory: those that are sent, those that are
 * sent and come back, those that come back. */
typedef struct pack {
  cuplug__shipment *shipment;
  cuplug__lane *lane;
  char *device;
  uint64_t offsets[CUPLUG_MAX_ARGUMENTS];
  uint64_t n_sent, received, bytes; /* [0, n_sent) is sent, [received, bytes) comes back */
} pack;

static int fits_pack(const cuplug__shipment *s) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < s->n_parcels; k++) {
    if (!s->parcels[k].is_known && s->run->frame->tensors[k].ndim >= 0) return 0;
    bytes += s->parcels[k].bytes + ALIGNMENT;
  }
  return bytes <= CUPLUG__PACKED_BYTES;
}

static void add_arrays(pack *p, int is_sent, int is_received) {
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++) {
    const cuplug__parcel *x = &p->shipment->parcels[k];
    if (x->is_sent != is_sent || x->is_received != is_received) continue;
    p->offsets[k] = p->bytes;
    p->bytes += (x->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
}

static void lay_out(pack *p) {
  add_arrays(p, 1, 0);
  p->received = p->bytes;
  add_arrays(p, 1, 1);
  p->n_sent = p->bytes;
  add_arrays(p, 0, 1);
}

static int send(const pack *p) {
  const cuplug__shipment *s = p->shipment;
  for (uint32_t k = 0; k < s->n_parcels; k++)
    if (s->parcels[k].is_sent)
      cuplug__view_read(&s->parcels[k].view, 0, s->parcels[k].bytes,
                        p->lane->pinned + p->offsets[k]);
  if (!p->n_sent) return CUPLUG_OK;
  return cuplug__driver_copy(0, p->device, p->lane->pinned, p->n_sent, p->lane->stream,
                             s->run->error);
}

static int call_entry(const pack *p) {
  void *addresses[CUPLUG_MAX_ARGUMENTS];
  for (uint32_t k = 0; k < p->shipment->n_parcels; k++) addresses[k] = p->device + p->offsets[k];
  cuplug__shipment_show(p->shipment, 1, addresses);
  return cuplug__call_entry(p->shipment->run);
}

/* Nothing is written to arrays of a call that has failed. */
static int receive(const pack *p) {
  const cuplug__run *run = p->shipment->run;
  const uint64_t bytes = p->bytes - p->received;
  int status = CUPLUG_OK;
  if (bytes)
    status = cuplug__driver_copy(1, p->lane->pinned + p->received, p->device + p->received, bytes,
                                 p->lane->stream, run->error);
  if (!status) status = cuplug__stream_synchronize(p->lane->stream, run->error);
  return cuplug__named(run, status);
}

static void write_back(const pack *p) {
  const cuplug__shipment *s = p->shipment;
  for (uint32_t k = 0; k < s->n_parcels; k++)
    if (s->parcels[k].is_received)
      cuplug__view_write(&s->parcels[k].view, 0, s->parcels[k].bytes,
                         p->lane->pinned + p->offsets[k]);
}

static int run_pack(const pack *p, cuplug__watch *watch) {
  const cuplug__run *run = p->shipment->run;
  int status = cuplug__named(run, send(p));
  if (!status) status = call_entry(p);
  if (!status) status = receive(p);
  if (!status) status = cuplug__fault_take(run->fault, run->error);
  if (status) return status;
  write_back(p);
  return cuplug__watch_add(watch, p->n_sent + p->bytes - p->received, run->error);
}

static int take_memory(pack *p) {
  const cuplug__run *run = p->shipment->run;
  void *block = NULL;
  int status = cuplug__lane_take(run->device.id, &p->lane, run->error);
  if (status) return p->lane = NULL, status;
  status = cuplug__lane_pin(p->lane, p->bytes, run->error);
  if (!status)
    status = cuplug__device_allocate(run->device.id, p->bytes, p->lane->stream, &block, run->error);
  p->device = block;
  return status;
}

int cuplug__run_packed(cuplug__shipment *s, cuplug__watch *watch, int *fits) {
  cuplug__run *run = s->run;
  pack p = {.shipment = s};
  cuplug__shipment_whole(s);
  *fits = fits_pack(s);
  if (!*fits) return CUPLUG_OK;
  lay_out(&p);
  int status = cuplug__named(run, take_memory(&p));
  *fits = status != CUPLUG_ERROR_MEMORY;
  if (!status) {
    run->stream = p.lane->stream;
    run->fault = p.lane->fault;
    cuplug__fault_rename(run->fault, &run->overload->names);
    status = run_pack(&p, watch);
  }
  if (!p.lane) return *fits ? status : CUPLUG_OK;
  cuplug__device_free(p.device, p.lane->stream, NULL);
  cuplug__lane_give(p.lane);
  return *fits ? status : CUPLUG_OK;
}
