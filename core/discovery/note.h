/* SPDX-License-Identifier: Apache-2.0 */
/* The notes of a plugin, found through the ELF program headers: in its file, and in memory. */
#ifndef CUPLUG_CORE_DISCOVERY_NOTE_H
#define CUPLUG_CORE_DISCOVERY_NOTE_H

#include <cuplug/host.h>

#define CUPLUG__MAX_NOTE_BYTES (4u << 20) /* of all notes of a plugin together */
#define CUPLUG__NOTE_OF_ABI_1 0x70756331u

/* A note of the owner "cuplug", as stored in the file: `text` may contain anything. */
typedef struct cuplug__note {
  uint32_t kind; /* CUPLUG_NOTE_PLUGIN, CUPLUG_NOTE_OPERATOR, or one that is not known */
  uint32_t text_bytes;
  const char *text;
} cuplug__note;

/* All notes of a plugin, in their order. */
typedef struct cuplug__notes {
  char *bytes; /* of the segments that they are in; owned */
  uint64_t n_bytes;
  cuplug__note *notes; /* owned; each points into `bytes` */
  uint32_t n_notes;
  int is_sound;    /* 1: the file is a whole shared object for this machine */
  int needs_stack; /* 1: the file needs an executable stack */
} cuplug__notes;

/* Checks that an open file of `file_bytes` bytes is a whole shared object for this machine, and
 * reads its notes. A valid file without notes is also an error. Messages do not name the file. The
 * caller ends it, also after an error. */
int cuplug__notes_read(int fd, uint64_t file_bytes, cuplug__notes *notes, cuplug_error *error);
void cuplug__notes_end(cuplug__notes *notes);

/* The number of bytes at the beginning of a string of n bytes that are whole characters on one
 * line, without control characters: n if all are. */
size_t cuplug__shown_bytes(const char *text, size_t n);

/* 1 when a library that was loaded has the same notes in memory. */
int cuplug__notes_in_memory(const cuplug__notes *notes, void *library);

#endif
