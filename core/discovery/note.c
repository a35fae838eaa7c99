/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/note.h"

#include "base/library.h"
#include "base/status.h"
#include "discovery/elf.h"

#include <stdlib.h>
#include <string.h>

static const char doing[] = "reading a symbol table";

/* ---- Notes ----------------------------------------------------------------------------------- */

/* A place among the notes of a segment. */
typedef struct walk {
  const char *at;
  uint64_t left;
  uint64_t mask; /* of the alignment */
} walk;

/* Reads the header and the owner of the next note and advances to its text; 0 at the end. The
 * text's length may exceed the rest: the caller checks it. */
static int next_note(walk *w, Elf64_Nhdr *header, const char **owner) {
  if (w->left < sizeof *header) return 0;
  memcpy(header, w->at, sizeof *header);
  *owner = w->at + sizeof *header;
  w->left -= sizeof *header;
  const uint64_t before =
      ((sizeof *header + (uint64_t)header->n_namesz + w->mask) & ~w->mask) - sizeof *header;
  if (before > w->left) return 0;
  w->at = *owner + before;
  w->left -= before;
  return 1;
}

static void skip_text(walk *w, const Elf64_Nhdr *header) {
  const uint64_t bytes = ((uint64_t)header->n_descsz + w->mask) & ~w->mask;
  const uint64_t step = bytes < w->left ? bytes : w->left;
  w->at += step;
  w->left -= step;
}

static int is_ours(const Elf64_Nhdr *header, const char *owner) {
  return header->n_namesz == sizeof(CUPLUG_NOTE_OWNER) &&
         !memcmp(owner, CUPLUG_NOTE_OWNER, sizeof(CUPLUG_NOTE_OWNER));
}

static uint64_t mask_of(uint64_t alignment) { return alignment == 8 ? 7 : 3; }

/* 1 if segment k has notes that no earlier one has: rewriting tools leave overlapping segments. */
static int has_notes(const cuplug__elf *elf, int k) {
  const Elf64_Phdr *s = &elf->segments[k];
  if (s->p_type != PT_NOTE || !cuplug__fits(s->p_offset, s->p_filesz, elf->file_bytes)) return 0;
  for (const Elf64_Phdr *before = elf->segments; before < s; before++)
    if (before->p_type == PT_NOTE && s->p_offset >= before->p_offset &&
        cuplug__fits(s->p_offset - before->p_offset, s->p_filesz, before->p_filesz))
      return 0;
  return 1;
}

static int add_note(cuplug__notes *notes, const Elf64_Nhdr *header, const walk *w,
                    cuplug_error *error) {
  if (header->n_descsz > w->left)
    return cuplug__reject(error, "symbol table: note of %u bytes, its segment has %llu left",
                          header->n_descsz, (unsigned long long)w->left);
  if (!(notes->n_notes & (notes->n_notes - 1))) {
    const size_t room = notes->n_notes ? 2 * (size_t)notes->n_notes : 1;
    cuplug__note *grown = realloc(notes->notes, room * sizeof *grown);
    if (!grown) return cuplug__no_memory(error, doing);
    notes->notes = grown;
  }
  notes->notes[notes->n_notes++] = (cuplug__note){header->n_type, header->n_descsz, w->at};
  return CUPLUG_OK;
}

static int add_segment(cuplug__notes *notes, const char *bytes, uint64_t n, uint64_t mask,
                       cuplug_error *error) {
  walk w = {bytes, n, mask};
  Elf64_Nhdr header;
  const char *owner;
  while (next_note(&w, &header, &owner)) {
    int status = is_ours(&header, owner) ? add_note(notes, &header, &w, error) : CUPLUG_OK;
    if (status) return status;
    skip_text(&w, &header);
  }
  return CUPLUG_OK;
}

static int read_segments(const cuplug__elf *elf, cuplug__notes *notes, cuplug_error *error) {
  const int n = elf->header.e_phnum;
  uint64_t room = 0;
  for (int k = 0; k < n; k++)
    if (has_notes(elf, k) && __builtin_add_overflow(room, elf->segments[k].p_filesz, &room))
      room = UINT64_MAX;
  if (room > CUPLUG__MAX_NOTE_BYTES)
    return cuplug__reject(error, "got notes of %llu bytes, expected at most %u",
                          (unsigned long long)room, CUPLUG__MAX_NOTE_BYTES);
  notes->bytes = malloc(room + 1);
  if (!notes->bytes) return cuplug__no_memory(error, doing);
  for (int k = 0; k < n; k++) {
    const Elf64_Phdr *s = &elf->segments[k];
    if (!has_notes(elf, k)) continue;
    char *to = notes->bytes + notes->n_bytes;
    int status = cuplug__elf_copy(elf, s->p_offset, to, s->p_filesz, error);
    if (!status) status = add_segment(notes, to, s->p_filesz, mask_of(s->p_align), error);
    if (status) return status;
    notes->n_bytes += s->p_filesz;
  }
  return CUPLUG_OK;
}

int cuplug__notes_read(int fd, uint64_t file_bytes, cuplug__notes *notes, cuplug_error *error) {
  cuplug__elf elf;
  memset(notes, 0, sizeof(*notes));
  int status = cuplug__elf_read(&elf, fd, file_bytes, error);
  if (!status) status = read_segments(&elf, notes, error);
  if (!status) status = cuplug__elf_check_whole(&elf, error);
  if (status) return status;
  notes->is_sound = 1;
  notes->needs_stack = cuplug__elf_needs_stack(&elf);
  if (notes->n_notes) return CUPLUG_OK;
  return cuplug__reject(error, "no symbol table (no ELF note of owner cuplug)");
}

void cuplug__notes_end(cuplug__notes *notes) {
  free(notes->bytes);
  free(notes->notes);
  memset(notes, 0, sizeof(*notes));
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* The length of a well-formed UTF-8 character that a terminal shows, 0 for anything else. If a
 * string ends inside a character, its terminating zero is rejected as a continuation. */
static size_t character_bytes(const unsigned char *c) {
  if (c[0] < 0x80) return c[0] >= ' ' && c[0] != 0x7f;
  size_t n = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
  if (c[0] < 0xc2 || c[0] > 0xf4) return 0;
  for (size_t k = 1; k < n; k++)
    if ((c[k] & 0xc0) != 0x80) return 0;
  int overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
  int surrogate = c[0] == 0xed && c[1] > 0x9f;
  int beyond = c[0] == 0xf4 && c[1] > 0x8f;
  int control = c[0] == 0xc2 && c[1] < 0xa0;
  return overlong || surrogate || beyond || control ? 0 : n;
}

/* The number of bytes at the beginning of a string that are printable ASCII, in eights. */
static size_t shown_ascii(const char *text, size_t n) {
  const uint64_t ones = UINT64_MAX / 255;
  for (size_t k = 0; k + 8 <= n; k += 8) {
    uint64_t x;
    memcpy(&x, text + k, sizeof x);
    const uint64_t below = (x - ' ' * ones) & ~x, above = x | (x + ones); /* a space; a tilde */
    if ((below | above) & 128 * ones) return k;
  }
  return n & ~(size_t)7;
}

size_t cuplug__shown_bytes(const char *text, size_t n) {
  size_t k = shown_ascii(text, n), step;
  while (text[k] && (step = character_bytes((const unsigned char *)text + k))) k += step;
  return k;
}

/* ---- In memory ------------------------------------------------------------------------------- */

typedef struct comparison {
  const cuplug__notes *notes;
  uint32_t n_equal; /* so far */
  int differs;
} comparison;

static void compare_segment(const char *bytes, uint64_t n, uint64_t align, void *data) {
  comparison *c = data;
  walk w = {bytes, n, mask_of(align)};
  Elf64_Nhdr header;
  const char *owner;
  for (; !c->differs && next_note(&w, &header, &owner); skip_text(&w, &header)) {
    if (!is_ours(&header, owner)) continue;
    const cuplug__note *wanted = &c->notes->notes[c->n_equal];
    c->differs = c->n_equal == c->notes->n_notes || header.n_type != wanted->kind ||
                 header.n_descsz != wanted->text_bytes || header.n_descsz > w.left ||
                 memcmp(w.at, wanted->text, wanted->text_bytes) != 0;
    c->n_equal++;
  }
}

int cuplug__notes_in_memory(const cuplug__notes *notes, void *library) {
  comparison c = {.notes = notes};
  cuplug__library_visit_notes(library, compare_segment, &c);
  return !c.differs && c.n_equal == notes->n_notes;
}
