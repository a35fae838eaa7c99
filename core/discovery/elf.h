/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a shared object, read within its bounds: nothing is mapped, and a file that shrinks
 * meanwhile is an error, not a signal. */
#ifndef CUPLUG_CORE_DISCOVERY_ELF_H
#define CUPLUG_CORE_DISCOVERY_ELF_H

#include <cuplug/host.h>
#include <elf.h>

#define CUPLUG__MAX_SEGMENTS 128 /* linkers create about a dozen */

typedef struct cuplug__elf {
  int fd;
  uint64_t file_bytes;
  uint64_t head_bytes; /* valid in `head`, which mostly suffices */
  _Alignas(Elf64_Ehdr) uint8_t head[4096];
  Elf64_Ehdr header;
  Elf64_Phdr segments[CUPLUG__MAX_SEGMENTS]; /* header.e_phnum of them */
} cuplug__elf;

/* Reads the headers of an open file of `file_bytes` bytes. ERROR_PLUGIN: it is not a shared object
 * for this machine. Messages of all these do not name the file. */
int cuplug__elf_read(cuplug__elf *elf, int fd, uint64_t file_bytes, cuplug_error *error);
/* The same for an open file of any length. */
int cuplug__elf_read_open(cuplug__elf *elf, int fd, cuplug_error *error);

/* 1 if a range is within the first `limit` bytes. */
int cuplug__fits(uint64_t offset, uint64_t bytes, uint64_t limit);
/* Copies a range of the file; ERROR_PLUGIN when the file ends before. */
int cuplug__elf_copy(const cuplug__elf *elf, uint64_t offset, void *to, uint64_t bytes,
                     cuplug_error *error);
/* Checks that the file is as long as its headers promise: one cut short would raise SIGBUS. */
int cuplug__elf_check_whole(const cuplug__elf *elf, cuplug_error *error);

/* 1 if it requires an executable stack: by its flags, or because it has none. */
int cuplug__elf_needs_stack(const cuplug__elf *elf);
/* Refuses a file that does. */
int cuplug__check_stack(int needs_stack, cuplug_error *error);

/* A text of the dynamic section, by its tag: DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_FILTER
 * or DT_AUXILIARY. NULL: it cannot be read, or has 4 KiB and more. */
typedef void cuplug__visit_text(Elf64_Sxword tag, const char *text, void *data);
/* Shows these texts in their order. */
void cuplug__elf_visit_texts(const cuplug__elf *elf, cuplug__visit_text *visit, void *data);

#define CUPLUG__HAS_PATHS 1
#define CUPLUG__HAS_ORIGIN 2 /* such paths are relative to the folder that it is loaded from */

/* 1 if an open file names directories for its dependencies: RPATH, RUNPATH, or paths. 0 also for a
 * file that is not a shared object. */
int cuplug__elf_places(int fd);

#endif
