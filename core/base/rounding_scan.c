/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rounding_scan.h"

#include "base/library.h"

#include <stdint.h>
#include <string.h>

#define MAX_CODE_BYTES (16u << 20) /* what is read in some milliseconds */

/* Whether an instruction that writes the control register may begin in some code; bytes of other
 * instructions may look like one. */
#if defined(__x86_64__)
/* ldmxcsr, fxrstor and xrstor: 0F AE /2, /1 and /5 of an address; C5 xx AE /2. Not fldcw: compilers
 * emit it around conversions of long doubles, and write the old value again. */
static int writes_control(const unsigned char *code, size_t n) {
  const unsigned char *end = code + n;
  for (const unsigned char *at = code; (at = memchr(at, 0xae, (size_t)(end - at))); at++) {
    if (at + 1 == end) return 0;
    const unsigned mode = at[1] >> 6, operation = at[1] >> 3 & 7;
    const int is_escaped = at > code && (at[-1] == 0x0f || (at > code + 1 && at[-2] == 0xc5));
    if (is_escaped && mode != 3 && (operation == 2 || operation == 1 || operation == 5)) return 1;
  }
  return 0;
}
#elif defined(__aarch64__)
/* msr fpcr, x<n> */
static int writes_control(const unsigned char *code, size_t n) {
  for (size_t k = 0; k + 4 <= n; k += 4) {
    uint32_t word;
    memcpy(&word, code + k, sizeof word);
    if ((word & 0xffffffe0u) == 0xd51b4400u) return 1;
  }
  return 0;
}
#else
static int writes_control(const unsigned char *code, size_t n) {
  (void)code;
  return n > 0;
}
#endif

typedef struct scan {
  size_t n_bytes;
  int writes;
} scan;

static void scan_code(const char *bytes, uint64_t n, uint64_t alignment, void *data) {
  (void)alignment;
  scan *s = data;
  s->n_bytes += n;
  if (s->n_bytes > MAX_CODE_BYTES)
    s->writes = 1;
  else
    s->writes |= writes_control((const unsigned char *)bytes, n);
}

/* Libraries whose functions change nothing, but those whose names begin so. */
static int is_known(const char *library) {
  static const char *const known[] = {"libc.so.",       "libm.so.",  "libdl.so.",
                                      "libpthread.so.", "librt.so.", "libstdc++.so.",
                                      "libgcc_s.so.",   "ld-linux"};
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    if (!strncmp(library, known[k], strlen(known[k]))) return 1;
  return 0;
}

/* Functions that change it, or that find others which may. */
static int is_setter(const char *name) {
  static const char *const setters[] = {
      "fesetround",     "fesetenv",        "fesetmode",  "feupdateenv", "feholdexcept",
      "feenableexcept", "fedisableexcept", "setcontext", "swapcontext", "dlsym",
      "dlvsym",         "dlopen",          "dlmopen"};
  for (size_t k = 0; k < sizeof setters / sizeof *setters; k++)
    if (!strcmp(name, setters[k])) return 1;
  return 0;
}

static int can_only_be_kept(const cuplug__library_names *names) {
  for (uint32_t k = 0; k < names->n_needed; k++)
    if (!is_known(names->strings + names->needed[k])) return 0;
  for (uint64_t at = 0; at < names->n_bytes; at += strlen(names->strings + at) + 1)
    if (is_setter(names->strings + at)) return 0;
  return 1;
}

int cuplug__rounding_is_kept(void *library) {
  cuplug__library_names names;
  scan s = {0};
  if (!cuplug__library_read_names(library, &names) || !can_only_be_kept(&names)) return 0;
  cuplug__library_visit_code(library, scan_code, &s);
  return s.n_bytes && !s.writes;
}
