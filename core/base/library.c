/* SPDX-License-Identifier: Apache-2.0 */
#include "base/library.h"

#include "base/rounding.h"
#include "base/status.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <internal/files.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

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

/* Identifies a loaded library. A path does not: its file may change. */
typedef struct identity {
  uintptr_t base;
  const void *dynamic; /* its dynamic section */
} identity;

/* The dynamic linker's lock orders this after another thread that loaded the library, which thread
 * sanitizers do not see. */
__attribute__((no_sanitize("thread"))) static int find_identity(void *library, identity *found) {
  const struct link_map *map;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map)) return 0;
  *found = (identity){map->l_addr, map->l_ld};
  return 1;
}

static int is_of(const struct dl_phdr_info *info, const identity *library) {
  if (info->dlpi_addr != library->base) return 0;
  for (int k = 0; k < info->dlpi_phnum; k++)
    if (info->dlpi_phdr[k].p_type == PT_DYNAMIC)
      return info->dlpi_addr + info->dlpi_phdr[k].p_vaddr == (uintptr_t)library->dynamic;
  return 0;
}

/* The names before: others may be reading them, and leak checkers look for them. */
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

typedef struct search {
  identity within;
  uintptr_t address;
  size_t bytes;
  ElfW(Word) wanted_flags;
  int holds;
} search;

static int in_segment(const search *s, uintptr_t base, const ElfW(Phdr) * segment) {
  uintptr_t begin = base + segment->p_vaddr;
  return segment->p_type == PT_LOAD && (segment->p_flags & s->wanted_flags) == s->wanted_flags &&
         s->address >= begin && s->bytes <= segment->p_memsz &&
         s->address - begin <= segment->p_memsz - s->bytes;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  search *s = data;
  if (!is_of(info, &s->within)) return 0;
  for (int k = 0; k < info->dlpi_phnum; k++)
    if (in_segment(s, info->dlpi_addr, &info->dlpi_phdr[k])) s->holds = 1;
  return 1;
}

int cuplug__library_holds(void *library, const void *address, size_t bytes, int kind) {
  search s = {.address = (uintptr_t)address, .bytes = bytes};
  s.wanted_flags = kind == CUPLUG__CODE ? PF_X : PF_R;
  if (!find_identity(library, &s.within)) return 0;
  dl_iterate_phdr(visit, &s);
  return s.holds;
}

typedef struct owner {
  search address;
  const char *path;
} owner;

static int visit_owner(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  owner *o = data;
  for (int k = 0; k < info->dlpi_phnum; k++)
    if (in_segment(&o->address, info->dlpi_addr, &info->dlpi_phdr[k])) o->path = info->dlpi_name;
  return *o->path || o->path == info->dlpi_name;
}

/* Not by dladdr, which waits while another thread runs constructors of a library. */
const char *cuplug__library_of(const void *address) {
  owner o = {.address = {.address = (uintptr_t)address, .bytes = 1}, .path = ""};
  const int is_found = dl_iterate_phdr(visit_owner, &o);
  return is_found && !*o.path ? "/proc/self/exe" : o.path;
}

typedef struct segment_visit {
  identity of;
  ElfW(Word) type, flags;
  cuplug__visit_segment *visit;
  void *data;
} segment_visit;

static int is_readable(const struct dl_phdr_info *info, uintptr_t address, size_t bytes) {
  const search s = {.address = address, .bytes = bytes, .wanted_flags = PF_R};
  for (int k = 0; k < info->dlpi_phnum; k++)
    if (in_segment(&s, info->dlpi_addr, &info->dlpi_phdr[k])) return 1;
  return 0;
}

static int visit_segments(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  const segment_visit *v = data;
  if (!is_of(info, &v->of)) return 0;
  for (int k = 0; k < info->dlpi_phnum; k++) {
    const ElfW(Phdr) *s = &info->dlpi_phdr[k];
    const uintptr_t address = info->dlpi_addr + s->p_vaddr;
    if (s->p_type == v->type && (s->p_flags & v->flags) == v->flags &&
        is_readable(info, address, s->p_memsz))
      v->visit((const char *)address, s->p_memsz, s->p_align, v->data);
  }
  return 1;
}

static void visit_all(void *library, segment_visit v) {
  if (find_identity(library, &v.of)) dl_iterate_phdr(visit_segments, &v);
}

void cuplug__library_visit_notes(void *library, cuplug__visit_segment *visit, void *data) {
  visit_all(library, (segment_visit){.type = PT_NOTE, .visit = visit, .data = data});
}

/* ---- Code that changes how its thread computes ----------------------------------------------- */

#define MAX_NEEDED 64

/* The names in the dynamic section of a library: of the libraries that it needs and of symbols. */
typedef struct needed_names {
  const char *strings; /* one after the other, each ended by a zero */
  uint64_t n_bytes;
  uint64_t needed[MAX_NEEDED]; /* where names of libraries begin */
  uint32_t n_needed;
} needed_names;

/* glibc has made addresses of most machines absolute. */
static const char *address_of(const identity *library, uintptr_t value) {
  return (const char *)(value < library->base ? library->base + value : value);
}

/* 0 if there are none, or too many. They are not moved. */
static int read_names(void *library, needed_names *names) {
  identity of;
  *names = (needed_names){0};
  if (!find_identity(library, &of)) return 0;
  for (const ElfW(Dyn) *d = of.dynamic; d->d_tag != DT_NULL; d++) {
    if (d->d_tag == DT_STRTAB) names->strings = address_of(&of, d->d_un.d_ptr);
    if (d->d_tag == DT_STRSZ) names->n_bytes = d->d_un.d_val;
    if (d->d_tag != DT_NEEDED) continue;
    if (names->n_needed == MAX_NEEDED) return 0;
    names->needed[names->n_needed++] = d->d_un.d_val;
  }
  const char *strings = names->strings;
  return strings && names->n_bytes &&
         cuplug__library_holds(library, strings, names->n_bytes, CUPLUG__DATA) &&
         !strings[names->n_bytes - 1];
}

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

static int can_only_be_kept(const needed_names *names) {
  for (uint32_t k = 0; k < names->n_needed; k++)
    if (!is_known(names->strings + names->needed[k])) return 0;
  for (uint64_t at = 0; at < names->n_bytes; at += strlen(names->strings + at) + 1)
    if (is_setter(names->strings + at)) return 0;
  return 1;
}

int cuplug__library_keeps_rounding(void *library) {
  needed_names names;
  scan s = {0};
  if (!read_names(library, &names) || !can_only_be_kept(&names)) return 0;
  visit_all(library,
            (segment_visit){.type = PT_LOAD, .flags = PF_X, .visit = scan_code, .data = &s});
  return s.n_bytes && !s.writes;
}

/* ---- Copies in memory ------------------------------------------------------------------------ */

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3: mapped code needs no right to be executed as a program */
#define MFD_NOEXEC_SEAL 8u
#endif

int cuplug__copy_is_possible(void) { return !access("/proc/self/fd", X_OK); }

static int create(const char *name) {
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

static int fill(int copy, int fd, off_t bytes) {
  for (off_t at = 0; at < bytes;) {
    const ssize_t n = sendfile(copy, fd, &at, (size_t)(bytes - at));
    if (!n || (n < 0 && errno != EINTR)) return 0;
  }
  return !fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
}

int cuplug__copy_to_memory(const char *name, int fd, off_t bytes) {
  const int copy = create(name);
  if (copy < 0 || fill(copy, fd, bytes)) return copy;
  close(copy);
  return -1;
}

/* The separators between folder and file are the bits of a number: 0 is "/", 1 is "/./". */
char *cuplug__respell(const char *path) {
  static _Atomic uint32_t n_named;
  uint32_t number = ++n_named;
  char *spelled = malloc(strlen(path) + 3 * 32 + 1);
  if (!spelled) return NULL;
  const char *file = strrchr(path, '/');
  size_t at = (size_t)(file - path);
  memcpy(spelled, path, at);
  for (; number; number >>= 1) at += (size_t)sprintf(spelled + at, number & 1 ? "/./" : "/");
  strcpy(spelled + at, file);
  return spelled;
}

/* By the number of the process, which may be another in the /proc that is mounted: debuggers open
 * the path in a process of their own, where /proc/self would lead to a pipe that they wait for. */
char *cuplug__copy_path(int copy) {
  char process[24], path[64];
  const ssize_t n = readlink("/proc/self", process, sizeof process - 1);
  process[n > 0 ? n : 0] = 0;
  snprintf(path, sizeof path, "/proc/%s/fd/%d", n > 0 ? process : "self", copy);
  return cuplug__respell(path);
}
