/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/dynamic.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#define MAX_SEGMENTS 128
#define MAX_ENTRIES 4096 /* linkers make a few dozen */

/* What the dynamic section says of names. */
typedef struct names {
  int fd;
  Elf64_Phdr segments[MAX_SEGMENTS];
  int n_segments;
  uint64_t strings; /* in the file */
  int places;       /* CUPLUG__HAS_PATHS ... */
  cuplug__visit_text *visit;
  void *data;
} names;

static int read_all(int fd, void *to, size_t bytes, uint64_t at) {
  return pread(fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static int read_segments(names *n) {
  Elf64_Ehdr elf;
  if (!read_all(n->fd, &elf, sizeof elf, 0) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 ||
      elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_phnum > MAX_SEGMENTS)
    return 0;
  n->n_segments = elf.e_phnum;
  return read_all(n->fd, n->segments, elf.e_phnum * sizeof *n->segments, elf.e_phoff);
}

/* Where an address of the dynamic section lies in the file; 0: nowhere. */
static uint64_t place_of(const names *n, uint64_t address) {
  for (const Elf64_Phdr *s = n->segments; s < n->segments + n->n_segments; s++)
    if (s->p_type == PT_LOAD && address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz)
      return s->p_offset + (address - s->p_vaddr);
  return 0;
}

/* Looks at one name, in steps that overlap. */
static void look_at(names *n, uint64_t at, int is_place) {
  static const char origin[] = "ORIGIN";
  char text[256];
  size_t kept = 0;
  if (is_place) n->places |= CUPLUG__HAS_PATHS;
  for (ssize_t got; (got = pread(n->fd, text + kept, sizeof text - 1 - kept, (off_t)at)) > 0;) {
    const size_t filled = kept + (size_t)got;
    text[filled] = 0;
    if (strchr(text, '/')) n->places |= CUPLUG__HAS_PATHS;
    if (strstr(text, origin)) n->places |= CUPLUG__HAS_ORIGIN;
    if (strlen(text) < filled) return;
    at += (size_t)got;
    kept = sizeof origin - 2 < filled ? sizeof origin - 2 : filled;
    memmove(text, text + filled - kept, kept);
  }
}

/* Calls `visit` with each entry of a segment. */
typedef void visit_entry(names *n, const Elf64_Dyn *entry);

static void visit_all(names *n, visit_entry *visit) {
  Elf64_Dyn entry;
  for (const Elf64_Phdr *s = n->segments; s < n->segments + n->n_segments; s++)
    for (uint64_t k = 0; s->p_type == PT_DYNAMIC && k < s->p_filesz / sizeof entry; k++) {
      if (k == MAX_ENTRIES ||
          !read_all(n->fd, &entry, sizeof entry, s->p_offset + k * sizeof entry))
        return;
      visit(n, &entry);
      if (entry.d_tag == DT_NULL) break;
    }
}

static void find_strings(names *n, const Elf64_Dyn *entry) {
  if (entry->d_tag == DT_STRTAB) n->strings = place_of(n, entry->d_un.d_ptr);
}

static void look_at_entry(names *n, const Elf64_Dyn *entry) {
  const int is_place = entry->d_tag == DT_RPATH || entry->d_tag == DT_RUNPATH;
  if (is_place || entry->d_tag == DT_NEEDED || entry->d_tag == DT_FILTER ||
      entry->d_tag == DT_AUXILIARY)
    look_at(n, n->strings + entry->d_un.d_val, is_place);
}

int cuplug__dynamic_places(int fd) {
  names n = {.fd = fd};
  if (!read_segments(&n)) return 0;
  visit_all(&n, find_strings);
  visit_all(&n, look_at_entry);
  return n.places;
}

static void show_text(names *n, const Elf64_Dyn *entry) {
  char text[4096];
  const long tag = (long)entry->d_tag;
  if (tag != DT_NEEDED && tag != DT_SONAME && tag != DT_RPATH && tag != DT_RUNPATH) return;
  const ssize_t got = pread(n->fd, text, sizeof text, (off_t)(n->strings + entry->d_un.d_val));
  if (got > 0 && memchr(text, 0, (size_t)got)) n->visit(tag, text, n->data);
}

void cuplug__dynamic_visit(int fd, cuplug__visit_text *visit, void *data) {
  names n = {.fd = fd, .visit = visit, .data = data};
  if (!read_segments(&n)) return;
  visit_all(&n, find_strings);
  visit_all(&n, show_text);
}

int cuplug__dynamic_needs_stack(int fd) {
  names n = {.fd = fd};
#if defined(__x86_64__)
  int is_needed = 1;
#else
  int is_needed = 0;
#endif
  if (!read_segments(&n)) return 0;
  for (const Elf64_Phdr *s = n.segments; s < n.segments + n.n_segments; s++)
    if (s->p_type == PT_GNU_STACK) is_needed = (s->p_flags & PF_X) != 0;
  return is_needed;
}
