/* SPDX-License-Identifier: Apache-2.0 */
/* The note of a plugin, found in its file through the ELF program headers. Nothing is mapped or
 * run: a file that shrinks meanwhile is an error, not a signal. */
#ifndef CUPLUG_CORE_DISCOVERY_NOTE_H
#define CUPLUG_CORE_DISCOVERY_NOTE_H

#include <cuplug/plugin.h>

#define CUPLUG__MAX_NOTE_BYTES (4u << 20)

/* A file's bytes: the first ones are kept, as they mostly hold all that is wanted. */
typedef struct cuplug__reader {
  int fd;
  uint64_t file_bytes;
  uint64_t head_bytes; /* valid in `head` */
  _Alignas(8) uint8_t head[8192];
} cuplug__reader;

int cuplug__reader_start(cuplug__reader *reader, int fd, uint64_t file_bytes, cuplug_error *error);
/* Copies a range of the file; ERROR_PLUGIN when the file ends before. */
int cuplug__reader_copy(const cuplug__reader *reader, uint64_t offset, void *to, uint64_t bytes,
                        cuplug_error *error);

/* Where the note lies. */
typedef struct cuplug__note {
  uint64_t offset;
  uint64_t bytes; /* note header, owner and contents */
  int seen;       /* 1: there is a note of ours, even if something else is wrong */
  int sound;      /* 1: it is a whole shared object for this machine */
} cuplug__note;

/* Checks that the file is a whole shared object for this machine, and finds the note in it. A sound
 * file without one is an error too (`seen` is 0). Messages do not name the file. */
int cuplug__note_find(const cuplug__reader *reader, cuplug__note *note, cuplug_error *error);

#endif
