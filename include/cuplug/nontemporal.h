/* SPDX-License-Identifier: Apache-2.0 */
/* For entries on the host: results that are larger than the caches. A non-temporal store goes past
 * them: its line is not read from memory first, and nothing else has to leave. Part of a line
 * stored so costs more than all of it, hence blocks that begin and end with a line. */
#ifndef CUPLUG_NONTEMPORAL_H
#define CUPLUG_NONTEMPORAL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define CUPLUG_LINE_BYTES 64
#define CUPLUG_NONTEMPORAL_FROM ((int64_t)32 << 20) /* bytes: past the size of most caches */
#define CUPLUG_NONTEMPORAL_BLOCK 512                /* bytes that are best stored at once */
#define CUPLUG_AHEAD_BYTES 4096 /* the best distance for prefetching a block's inputs */

/** Prefetches the lines `ahead` bytes after a block. They may be outside the array. */
static inline void cuplug_prefetch(const void *block, size_t bytes, int64_t ahead) {
  const uintptr_t from = (uintptr_t)block + (uintptr_t)ahead;
  for (size_t k = 0; k < bytes; k += CUPLUG_LINE_BYTES)
    __builtin_prefetch((const void *)(from + k));
}

/** The same by CUPLUG_AHEAD_BYTES: non-temporal stores delay the processor's automatic
 * prefetches. */
static inline void cuplug_prefetch_ahead(const void *block, size_t bytes) {
  cuplug_prefetch(block, bytes, CUPLUG_AHEAD_BYTES);
}

/** memcpy, by non-temporal stores where the machine has them and `to` and `bytes` are of whole
 * lines.
 */
static inline void cuplug_copy_nontemporal(void *to, const void *from, size_t bytes) {
#ifdef __SSE2__
  if ((uintptr_t)to % CUPLUG_LINE_BYTES == 0 && bytes % CUPLUG_LINE_BYTES == 0) {
    const __m128i *source = (const __m128i *)from;
    __m128i *target = (__m128i *)to;
    for (size_t k = 0; k < bytes / 16; k += 4) {
      const __m128i a = _mm_loadu_si128(source + k), b = _mm_loadu_si128(source + k + 1);
      const __m128i c = _mm_loadu_si128(source + k + 2), d = _mm_loadu_si128(source + k + 3);
      _mm_stream_si128(target + k, a);
      _mm_stream_si128(target + k + 1, b);
      _mm_stream_si128(target + k + 2, c);
      _mm_stream_si128(target + k + 3, d);
    }
    return;
  }
#endif
  memcpy(to, from, bytes);
}

/** After this, other threads may be notified of non-temporal stores. */
static inline void cuplug_nontemporal_fence(void) {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

#endif
