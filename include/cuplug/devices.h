/* SPDX-License-Identifier: Apache-2.0 */
/* The host API on devices: memory, copies, streams. Part of <cuplug/host.h>, which includes it. */
#ifndef CUPLUG_DEVICES_H
#define CUPLUG_DEVICES_H

#include <cuplug/operators.h>

CUPLUG__BEGIN_C

typedef struct cuplug_device_info {
  uint32_t struct_bytes;      /* in: sizeof(cuplug_device_info); out: what was filled of it */
  int32_t compute_capability; /* 90 for 9.0 */
  uint64_t memory_bytes;
  char name[128];
} cuplug_device_info;

/** The number of CUDA devices. An error says why there is none to use: no driver, no GPU, driver
 * too old, forked child. [thread-safe] */
CUPLUG_API int cuplug_n_devices(int32_t *n, int32_t *driver_version, cuplug_error *error);
/** [thread-safe] */
CUPLUG_API int cuplug_query_device(int32_t id, cuplug_device_info *info, cuplug_error *error);

/** Device memory from the stream-ordered pool; `stream` as in cuplug_options. Freeing is
 * stream-ordered too. [thread-safe] [stream-ordered] */
CUPLUG_API int cuplug_allocate_device(int32_t device, uint64_t bytes, void *stream, void **pointer,
                                      cuplug_error *error);
CUPLUG_API int cuplug_free_device(int32_t device, void *pointer, void *stream, cuplug_error *error);

/** What is held of a GPU, in bytes. */
typedef struct cuplug_memory_info {
  uint32_t struct_bytes; /* in: sizeof(cuplug_memory_info); out: what was filled of it */
  uint32_t reserved;     /* 0 */
  uint64_t total_bytes;
  uint64_t free_bytes;     /* for any process; what the pool has reserved is not free */
  uint64_t reserved_bytes; /* by the pool, from the GPU */
  uint64_t used_bytes;     /* of these: arrays, outputs and workspaces now */
  uint64_t most_used_bytes;
  uint64_t pinned_bytes; /* of the host, for copies to and from this GPU */
} cuplug_memory_info;
/** [thread-safe] */
CUPLUG_API int cuplug_query_memory(int32_t device, cuplug_memory_info *info, cuplug_error *error);

/** Gives memory that nobody uses back to the GPU, and that of idle staging lanes to it and to the
 * host. Waits for the default stream: what work on other streams still has to free stays.
 *
 * Without it the pool keeps up to an eighth of the GPU's memory when arrays are freed, and what is
 * beyond that goes back whenever a stream is waited for; up to 16 idle lanes keep their pinned
 * memory, at most 256 MiB for each GPU, and up to 16 MiB of the GPU's each. Where an allocation
 * fails all of this is given back and it is tried once more. `freed_bytes` may be NULL.
 * [thread-safe] [syncs] */
CUPLUG_API int cuplug_trim(int32_t device, uint64_t *freed_bytes, cuplug_error *error);

/** Called when that did not suffice: gives back what other caches of this process keep of a GPU,
 * and writes what they hold then for the error message, as ", PyTorch 3.00 GiB". The GPU's context
 * is current, and no lock is held. It is called on the thread that wants memory, an entry's too. */
#define CUPLUG_HELD_BYTES 128
typedef void cuplug_reclaim(int32_t device, char held[CUPLUG_HELD_BYTES]);
/** The one of this process; NULL: none. After it, the allocation is tried a last time.
 * [thread-safe] [no-cuda] */
CUPLUG_API void cuplug_set_reclaim(cuplug_reclaim *reclaim);

/** Does what the first call of an operator would do: loads its code and makes its states. On a GPU
 * it also starts CUDA, makes the pool, looks for code for the GPU, and has the driver load kernels:
 * not of drivers before CUDA 12.5, of plugins compiled by CUDA before 12.1 or with kernels in
 * several files, or at run time. ERROR_VALUE: op has no CUDA entry. [thread-safe] [loads] */
CUPLUG_API int cuplug_prepare(cuplug_operator *op, cuplug_device device, cuplug_error *error);

/** Copies between host memory and a device, through pinned staging where it is pageable, after the
 * work already on the stream. Raises faults of this thread's earlier calls. [thread-safe]
 * [syncs] */
CUPLUG_API int cuplug_copy_to_device(int32_t device, void *to, const void *from, uint64_t bytes,
                                     void *stream, cuplug_error *error);
CUPLUG_API int cuplug_copy_to_host(int32_t device, void *to, const void *from, uint64_t bytes,
                                   void *stream, cuplug_error *error);

/** One of the two, with a report; `user` is the first argument of `progress`. [thread-safe] [syncs]
 */
CUPLUG_API int cuplug_copy_watched(int32_t device, int to_host, void *to, const void *from,
                                   uint64_t bytes, void *stream, cuplug_progress *progress,
                                   void *user, cuplug_error *error);

/** Host memory for arrays of 32 KiB or so and more: freed blocks are kept for the next ones, of
 * those below 16 MiB up to 64 MiB, of larger ones up to an eighth of the machine's memory, whose
 * pages the system may take at any time. Aligned to 256 bytes, not cleared. NULL for no bytes and
 * when there is no memory. [thread-safe] [no-cuda], like the next three */
CUPLUG_API void *cuplug_allocate_host(uint64_t bytes);
/** Keeps the contents, as realloc does; NULL leaves the old memory as it is. */
CUPLUG_API void *cuplug_reallocate_host(void *pointer, uint64_t bytes);
CUPLUG_API void cuplug_free_host(void *pointer); /* of the two above, or NULL */
/** Gives all that is kept back to the system. Returns how much it was. */
CUPLUG_API uint64_t cuplug_trim_host(void);

/** The GPU of a stream, -1 for a default one, which every GPU has; whether it is captured in a CUDA
 * graph now. [thread-safe] */
CUPLUG_API int cuplug_query_stream(void *stream, int32_t *device, int32_t *is_captured,
                                   cuplug_error *error);
/** The GPU of memory. ERROR_CUDA where it is none that CUDA knows. [thread-safe] */
CUPLUG_API int cuplug_query_pointer(const void *pointer, int32_t *device, cuplug_error *error);

/** Makes later work on `waiting` wait for what is on `stream` now; nothing is done where one of
 * them is captured in a CUDA graph and the other not. [thread-safe] [stream-ordered] */
CUPLUG_API int cuplug_order_streams(int32_t device, void *waiting, void *stream,
                                    cuplug_error *error);

/** Waits for a stream, or with `whole_device` for all of them. Raises faults of earlier calls that
 * were not raised before: of this thread, or with `whole_device` of all threads. [thread-safe]
 * [syncs] */
CUPLUG_API int cuplug_synchronize(int32_t device, void *stream, int whole_device,
                                  cuplug_error *error);

CUPLUG__END_C
#endif
