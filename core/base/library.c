/* SPDX-License-Identifier: Apache-2.0 */
#include "base/library.h"

#include "base/rounding.h"
#include "base/status.h"

#include <dlfcn.h>
#include <internal/functions.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *cuplug__library_open(const char *name, cuplug_error *error) {
  const cuplug__rounding before = cuplug__rounding_read();
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  cuplug__rounding_restore(before); /* constructors of -ffast-math flush subnormal numbers */
  if (library) return library;
  const char *reason = dlerror();
  cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "%s", reason ? reason : "unknown reason");
  return NULL;
}

void *cuplug_open_library(const char *path, cuplug_error *error) {
  cuplug__clear(error);
  return cuplug__library_open(path, error);
}

void *cuplug__library_symbol(void *library, const char *symbol) { return dlsym(library, symbol); }

/* Where a library was loaded: its link map is by its dynamic section. A path does not identify it,
 * as its file may change. The dynamic linker's lock orders this after another thread that loaded
 * the library, which thread sanitizers do not see. */
__attribute__((no_sanitize("thread"))) static int find_place(void *library, uintptr_t *base,
                                                             const ElfW(Dyn) * *dynamic) {
  const struct link_map *map;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map)) return 0;
  *base = map->l_addr;
  *dynamic = map->l_ld;
  return 1;
}

typedef struct found_headers {
  const ElfW(Dyn) * dynamic;
  uintptr_t base;
  const ElfW(Phdr) * first; /* remain in place: libraries are never closed */
  int n;
} found_headers;

static int take_headers(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  found_headers *found = data;
  if (info->dlpi_addr != found->base) return 0;
  for (int k = 0; k < info->dlpi_phnum; k++) {
    const ElfW(Phdr) *s = &info->dlpi_phdr[k];
    if (s->p_type != PT_DYNAMIC || found->base + s->p_vaddr != (uintptr_t)found->dynamic) continue;
    found->first = info->dlpi_phdr;
    found->n = info->dlpi_phnum;
    return 1;
  }
  return 0;
}

/* The program headers of a library; none if it is not found. */
static found_headers find_headers(void *library) {
  found_headers found = {.n = 0};
  if (find_place(library, &found.base, &found.dynamic)) dl_iterate_phdr(take_headers, &found);
  return found;
}

/* 1 if bytes are within one of the segments with these flags. */
static int holds(uintptr_t base, const ElfW(Phdr) * first, int n, uintptr_t address, size_t bytes,
                 ElfW(Word) flags) {
  for (const ElfW(Phdr) *s = first; s < first + n; s++)
    if (s->p_type == PT_LOAD && (s->p_flags & flags) == flags && address >= base + s->p_vaddr &&
        bytes <= s->p_memsz && address - (base + s->p_vaddr) <= s->p_memsz - bytes)
      return 1;
  return 0;
}

/* Earlier names. Other threads may read them, and leak checkers require references to them. */
typedef struct former {
  struct former *next;
  const char *name;
} former;

/* Not seen by thread sanitizers, for the reason that find_identity gives. */
__attribute__((no_sanitize("thread"))) static const char *exchange_name(struct link_map *map,
                                                                        char *name) {
  return __atomic_exchange_n(&map->l_name, name, __ATOMIC_ACQ_REL);
}

void cuplug__library_rename(void *library, char *name) {
  static former *_Atomic formers;
  struct link_map *map;
  former *f = malloc(sizeof *f);
  if (!f || dlinfo(library, RTLD_DI_LINKMAP, &map)) {
    free(f);
    free(name);
    return;
  }
  f->name = exchange_name(map, name);
  f->next = atomic_load(&formers);
  while (!atomic_compare_exchange_weak(&formers, &f->next, f)) {
  }
}

int cuplug__library_holds(void *library, const void *address, size_t bytes, int kind) {
  const found_headers found = find_headers(library);
  return holds(found.base, found.first, found.n, (uintptr_t)address, bytes,
               kind == CUPLUG__CODE ? PF_X : PF_R);
}

typedef struct owner {
  uintptr_t address;
  const char *path;
} owner;

static int visit_owner(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  owner *o = data;
  if (!holds(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum, o->address, 1, 0)) return 0;
  o->path = info->dlpi_name;
  return 1;
}

/* Not by dladdr, which waits while another thread runs constructors of a library. */
const char *cuplug__library_of(const void *address) {
  owner o = {.address = (uintptr_t)address, .path = ""};
  const int is_found = dl_iterate_phdr(visit_owner, &o);
  return is_found && !*o.path ? "/proc/self/exe" : o.path;
}

/* Shows the segments of a type and with these flags that are in readable memory. */
static void visit_segments(void *library, ElfW(Word) type, ElfW(Word) flags,
                           cuplug__visit_segment *visit, void *data) {
  const found_headers found = find_headers(library);
  for (const ElfW(Phdr) *s = found.first; s < found.first + found.n; s++) {
    const uintptr_t address = found.base + s->p_vaddr;
    if (s->p_type == type && (s->p_flags & flags) == flags &&
        holds(found.base, found.first, found.n, address, s->p_memsz, PF_R))
      visit((const char *)address, s->p_memsz, s->p_align, data);
  }
}

void cuplug__library_visit_notes(void *library, cuplug__visit_segment *visit, void *data) {
  visit_segments(library, PT_NOTE, 0, visit, data);
}

/* ---- Code that changes how its thread computes ----------------------------------------------- */

#define MAX_CODE_BYTES (16u << 20) /* read in a few milliseconds */

/* 1 if an instruction that writes the control register may begin in some code; bytes of other
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

/* Libraries whose functions change nothing, except those with these prefixes. */
static int is_known(const char *library) {
  static const char *const known[] = {"libc.so.",       "libm.so.",  "libdl.so.",
                                      "libpthread.so.", "librt.so.", "libstdc++.so.",
                                      "libgcc_s.so.",   "ld-linux"};
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    if (!strncmp(library, known[k], strlen(known[k]))) return 1;
  return 0;
}

/* Functions that change it, or that look up functions which may. */
static int is_setter(const char *name) {
  static const char *const setters[] = {
      "fesetround",     "fesetenv",        "fesetmode",  "feupdateenv", "feholdexcept",
      "feenableexcept", "fedisableexcept", "setcontext", "swapcontext", "dlsym",
      "dlvsym",         "dlopen",          "dlmopen"};
  for (size_t k = 0; k < sizeof setters / sizeof *setters; k++)
    if (!strcmp(name, setters[k])) return 1;
  return 0;
}

/* 1 if the names in its dynamic section, of libraries and symbols, are of such code. They are not
 * moved. glibc has made addresses of most machines absolute. */
static int names_no_setter(void *library) {
  const char *strings = NULL;
  uint64_t n_bytes = 0;
  uintptr_t base;
  const ElfW(Dyn) * first;
  if (!find_place(library, &base, &first)) return 0;
  for (const ElfW(Dyn) *d = first; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_STRSZ) n_bytes = d->d_un.d_val;
    if (d->d_tag == DT_STRTAB)
      strings = (const char *)(d->d_un.d_ptr < base ? base + d->d_un.d_ptr : d->d_un.d_ptr);
  }
  if (!strings || !n_bytes || !cuplug__library_holds(library, strings, n_bytes, CUPLUG__DATA) ||
      strings[n_bytes - 1])
    return 0;
  for (const ElfW(Dyn) *d = first; d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_NEEDED && !is_known(strings + d->d_un.d_val)) return 0;
  for (uint64_t at = 0; at < n_bytes; at += strlen(strings + at) + 1)
    if (is_setter(strings + at)) return 0;
  return 1;
}

int cuplug__library_keeps_rounding(void *library) {
  scan s = {0};
  if (!names_no_setter(library)) return 0;
  visit_segments(library, PT_LOAD, PF_X, scan_code, &s);
  return s.n_bytes && !s.writes;
}
