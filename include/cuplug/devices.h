/* SPDX-License-Identifier: Apache-2.0 */
/* The host API on devices: memory, copies, streams. Part of <cuplug/host.h>, which includes it.
 *
 * Errors of all functions that take a device: that of cuplug_n_devices if no GPU can be used,
 * ERROR_VALUE for the number of a GPU that does not exist, ERROR_CUDA for an error of CUDA. */
#ifndef CUPLUG_DEVICES_H
#define CUPLUG_DEVICES_H

#include <cuplug/operators.h>

CUPLUG__BEGIN_C

typedef struct cuplug_device_info {
  uint32_t struct_bytes;      /* in: sizeof(cuplug_device_info); out: the bytes that were set */
  int32_t compute_capability; /* 90 for 9.0 */
  uint64_t memory_bytes;
  char name[128];
} cuplug_device_info;

/** The number of CUDA devices. An error contains the reason why none can be used: no driver, no
 * GPU, driver too old, forked child. [thread-safe] */
CUPLUG_API int cuplug_n_devices(int32_t *n, int32_t *driver_version, cuplug_error *error);
/** Sets the name, the compute capability and the memory of a GPU. [thread-safe] */
CUPLUG_API int cuplug_query_device(int32_t id, cuplug_device_info *info, cuplug_error *error);

/** Device memory from the stream-ordered pool; `stream` as in cuplug_options. Freeing is also
 * stream-ordered. ERROR_MEMORY if the GPU has too little. [thread-safe] [stream-ordered] */
CUPLUG_API int cuplug_allocate_device(int32_t device, uint64_t bytes, void *stream, void **pointer,
                                      cuplug_error *error);
CUPLUG_API int cuplug_free_device(int32_t device, void *pointer, void *stream, cuplug_error *error);

/** The memory of a GPU that cuplug holds, in bytes. */
typedef struct cuplug_memory_info {
  uint32_t struct_bytes; /* in: sizeof(cuplug_memory_info); out: the bytes that were set */
  uint32_t reserved;     /* 0 */
  uint64_t total_bytes;
  uint64_t free_bytes;     /* for any process; excludes memory that the pool has reserved */
  uint64_t reserved_bytes; /* by the pool, from the GPU */
  uint64_t used_bytes;     /* of these: arrays, outputs and workspaces now */
  uint64_t peak_used_bytes;
  uint64_t pinned_bytes; /* of the host, for copies to and from this GPU */
} cuplug_memory_info;
/** Sets the present use of a GPU's memory. [thread-safe] */
CUPLUG_API int cuplug_query_memory(int32_t device, cuplug_memory_info *info, cuplug_error *error);

/** Releases unused memory to the GPU, and the memory of idle staging channels to it and to the
 * host. Waits for the default stream: memory that work on other streams has not yet freed stays.
 *
 * Without this call, the pool keeps up to an eighth of the GPU's memory when arrays are freed, and
 * releases the excess whenever a stream is waited for. Up to 16 idle channels keep their pinned
 * memory, at most 256 MiB for each GPU, and up to 16 MiB of the GPU's each. If an allocation fails,
 * cuplug releases all of this memory and retries once. `freed_bytes` may be NULL. [thread-safe]
 * [syncs] */
CUPLUG_API int cuplug_trim(int32_t device, uint64_t *freed_bytes, cuplug_error *error);

/** Called if that did not suffice: releases memory of a GPU that other caches of this process keep,
 * and writes the amounts that they then hold for the error message, as ", PyTorch 3.00 GiB". The
 * GPU's context is current, and no lock is held. It is called on the thread that requests memory,
 * which may be an entry's. */
#define CUPLUG_RECLAIM_BYTES 128
typedef void cuplug_reclaim(int32_t device, char held[CUPLUG_RECLAIM_BYTES]);
/** The one of this process; NULL: none. After it, the allocation is tried a last time.
 * [thread-safe] [no-cuda] */
CUPLUG_API void cuplug_set_reclaim(cuplug_reclaim *reclaim);

/** Does the work of an operator's first call: loads its code and creates its states. On a GPU it
 * also starts CUDA, creates the pool, checks for code for the GPU, and makes the driver load the
 * kernels, except with drivers before CUDA 12.5, in plugins compiled by CUDA before 12.1 or with
 * kernels in several files, and kernels compiled at run time. ERROR_VALUE: no CUDA entry.
 * [thread-safe] [loads] */
CUPLUG_API int cuplug_prepare(cuplug_operator *op, cuplug_device device, cuplug_error *error);

/** Copies between host memory and a device, after the work already on the stream. Pageable memory
 * is copied through pinned staging. Raises faults of this thread's earlier calls. [thread-safe]
 * [syncs] */
CUPLUG_API int cuplug_copy_to_device(int32_t device, void *to, const void *from, uint64_t bytes,
                                     void *stream, cuplug_error *error);
CUPLUG_API int cuplug_copy_to_host(int32_t device, void *to, const void *from, uint64_t bytes,
                                   void *stream, cuplug_error *error);

/** One of the two, with a report; `user` is the first argument of `progress`. A status that
 * `progress` returns ends the copy and becomes the result. [thread-safe] [syncs] */
CUPLUG_API int cuplug_copy_with_progress(int32_t device, int to_host, void *to, const void *from,
                                         uint64_t bytes, void *stream, cuplug_progress *progress,
                                         void *user, cuplug_error *error);

/** Host memory for arrays of about 32 KiB or more. Freed blocks are cached: up to 64 MiB of blocks
 * below 16 MiB, and up to an eighth of the machine's memory of larger ones, whose pages the system
 * may reclaim at any time. Aligned to 256 bytes, not cleared. NULL for no bytes and if there is no
 * memory. [thread-safe] [no-cuda], like the next three */
CUPLUG_API void *cuplug_allocate_host(uint64_t bytes);
/** Keeps the contents, like realloc; NULL leaves the old memory unchanged. */
CUPLUG_API void *cuplug_reallocate_host(void *pointer, uint64_t bytes);
CUPLUG_API void cuplug_free_host(void *pointer); /* of the two above, or NULL */
/** Gives all that is kept back to the system. Returns how much it was. */
CUPLUG_API uint64_t cuplug_trim_host(void);

/** The GPU of a stream, -1 for a default one, which every GPU has; whether it is captured in a CUDA
 * graph now. [thread-safe] */
CUPLUG_API int cuplug_query_stream(void *stream, int32_t *device, int32_t *is_captured,
                                   cuplug_error *error);
/** The GPU of memory. ERROR_CUDA if CUDA does not know the address. [thread-safe] */
CUPLUG_API int cuplug_query_pointer(const void *pointer, int32_t *device, cuplug_error *error);

/** Makes later work on `waiting` wait for the current work on `stream`. Does nothing if exactly one
 * of them is captured in a CUDA graph. [thread-safe] [stream-ordered] */
CUPLUG_API int cuplug_order_streams(int32_t device, void *waiting, void *stream,
                                    cuplug_error *error);

/** Waits for a stream, or with `whole_device` for all of them. Raises faults of earlier calls that
 * were not raised before: of this thread, or with `whole_device` of all threads. [thread-safe]
 * [syncs] */
CUPLUG_API int cuplug_synchronize(int32_t device, void *stream, int whole_device,
                                  cuplug_error *error);

CUPLUG__END_C
#endif
