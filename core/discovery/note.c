/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/note.h"

#include "base/library.h"
#include "base/status.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SEGMENTS 128 /* linkers make a dozen */

static const char doing[] = "reading a symbol table";

#if defined(__x86_64__)
#define THIS_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define THIS_MACHINE EM_AARCH64
#elif defined(__powerpc64__)
#define THIS_MACHINE EM_PPC64
#elif defined(__riscv)
#define THIS_MACHINE EM_RISCV
#else
#error "this machine's ELF number is not known here"
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define THIS_BYTE_ORDER ELFDATA2LSB
#else
#define THIS_BYTE_ORDER ELFDATA2MSB
#endif

static const struct {
  unsigned number;
  const char *name;
} machines[] = {{EM_X86_64, "x86-64"}, {EM_AARCH64, "AArch64"}, {EM_386, "i386"},
                {EM_ARM, "ARM"},       {EM_PPC64, "PowerPC64"}, {EM_RISCV, "RISC-V"},
                {EM_S390, "s390"},     {EM_MIPS, "MIPS"},       {EM_CUDA, "NVIDIA CUDA"}};

static const char *machine_name(unsigned number) {
  for (size_t k = 0; k < sizeof(machines) / sizeof(machines[0]); k++)
    if (machines[k].number == number) return machines[k].name;
  return "unknown";
}

static int fail(cuplug_error *error, const char *reason) {
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "%s", reason);
}

/* Does a range lie within the first `limit` bytes? No sum can overflow. */
static int fits(uint64_t offset, uint64_t bytes, uint64_t limit) {
  return offset <= limit && bytes <= limit - offset;
}

static int read_range(int fd, uint64_t offset, void *to, uint64_t bytes, cuplug_error *error) {
  uint64_t done = 0;
  while (done < bytes) {
    ssize_t n = pread(fd, (char *)to + done, bytes - done, (off_t)(offset + done));
    if (n > 0) done += (uint64_t)n;
    if (n == 0) return fail(error, "truncated while it was read");
    if (n < 0 && errno != EINTR)
      return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "cannot be read: %s", strerror(errno));
  }
  return CUPLUG_OK;
}

/* A file's bytes: the first ones are kept, as they mostly hold all that is wanted. */
typedef struct reader {
  int fd;
  uint64_t file_bytes;
  uint64_t head_bytes; /* valid in `head` */
  _Alignas(8) uint8_t head[4096];
} reader;

static int start_reader(reader *r, int fd, uint64_t file_bytes, cuplug_error *error) {
  r->fd = fd;
  r->file_bytes = file_bytes;
  r->head_bytes = file_bytes < sizeof(r->head) ? file_bytes : sizeof(r->head);
  return read_range(fd, 0, r->head, r->head_bytes, error);
}

/* Copies a range of the file; ERROR_PLUGIN when the file ends before. */
static int copy_range(const reader *r, uint64_t offset, void *to, uint64_t bytes,
                      cuplug_error *error) {
  if (!fits(offset, bytes, r->file_bytes))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "truncated: %llu bytes at byte %llu are wanted, the file has %llu",
                        (unsigned long long)bytes, (unsigned long long)offset,
                        (unsigned long long)r->file_bytes);
  if (!fits(offset, bytes, r->head_bytes)) return read_range(r->fd, offset, to, bytes, error);
  memcpy(to, r->head + offset, bytes);
  return CUPLUG_OK;
}

static int fail_no_elf(const reader *r, cuplug_error *error) {
  char shown[13] = {0};
  for (size_t k = 0; k + 1 < sizeof(shown) && k < r->head_bytes; k++)
    shown[k] = r->head[k] >= ' ' && r->head[k] <= '~' ? (char)r->head[k] : '.';
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      "not an ELF file: it begins with \"%s\", a shared object is wanted", shown);
}

/* Checks the first 16 bytes, which are the same in all ELF files. */
static int check_identity(const reader *r, cuplug_error *error) {
  const uint8_t *head = r->head;
  uint64_t n = r->head_bytes;
  if (!n) return fail(error, "empty file, a shared object is wanted");
  if (memcmp(head, ELFMAG, n < SELFMAG ? n : SELFMAG)) return fail_no_elf(r, error);
  if (n < EI_NIDENT) return fail(error, "truncated: the file ends in its ELF header");
  if (head[EI_CLASS] == ELFCLASS32)
    return fail(error, "32-bit object, a 64-bit shared object is wanted");
  if (head[EI_CLASS] != ELFCLASS64)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "ELF class %u, class 2 (64-bit) is wanted",
                        head[EI_CLASS]);
  if (head[EI_DATA] != THIS_BYTE_ORDER)
    return fail(error, "object of the other byte order, this machine's is wanted");
  if (n < sizeof(Elf64_Ehdr)) return fail(error, "truncated: the file ends in its ELF header");
  return CUPLUG_OK;
}

static int check_header(const Elf64_Ehdr *elf, cuplug_error *error) {
  static const char *const types[] = {"no type", "relocatable object (.o)", "executable",
                                      "shared object", "core dump"};
  if (elf->e_machine != THIS_MACHINE)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "compiled for %s (ELF machine %u), %s (%u) is wanted",
                        machine_name(elf->e_machine), elf->e_machine, machine_name(THIS_MACHINE),
                        (unsigned)THIS_MACHINE);
  if (elf->e_type == ET_REL)
    return fail(error, "got an object file, as compilers write with -c, expected a shared object; "
                       "link it with -shared");
  if (elf->e_type != ET_DYN)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "ELF type %u (%s), a shared object (type 3) is wanted", elf->e_type,
                        elf->e_type < 5 ? types[elf->e_type] : "unknown");
  if (!elf->e_phnum || elf->e_phnum > MAX_SEGMENTS || elf->e_phentsize != sizeof(Elf64_Phdr))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "%u program headers of %u bytes, 1 to %d of 56 are wanted", elf->e_phnum,
                        elf->e_phentsize, MAX_SEGMENTS);
  return CUPLUG_OK;
}

/* A file cut short would raise SIGBUS when it is used: what its headers promise must be there. */
static int check_whole(const reader *r, const Elf64_Ehdr *elf, const Elf64_Phdr *segments,
                       cuplug_error *error) {
  uint64_t size = r->file_bytes;
  for (int k = 0; k < elf->e_phnum; k++) {
    const Elf64_Phdr *s = &segments[k];
    if (s->p_type == PT_LOAD && s->p_filesz > s->p_memsz)
      return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                          "corrupt: segment %d has more bytes in the file than in memory", k);
    if (s->p_type != PT_NULL && !fits(s->p_offset, s->p_filesz, size))
      return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                          "truncated: segment %d has %llu bytes at byte %llu, the file has %llu", k,
                          (unsigned long long)s->p_filesz, (unsigned long long)s->p_offset,
                          (unsigned long long)size);
  }
  if (elf->e_shoff && !fits(elf->e_shoff, (uint64_t)elf->e_shnum * elf->e_shentsize, size))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "truncated: section headers at byte %llu, the file has %llu",
                        (unsigned long long)elf->e_shoff, (unsigned long long)size);
  return CUPLUG_OK;
}

/* ---- Notes ----------------------------------------------------------------------------------- */

/* A place among the notes of a segment. */
typedef struct walk {
  const char *at;
  uint64_t left;
  uint64_t mask; /* of the alignment */
} walk;

/* Takes the header and the owner of the next note and goes to its text; 0 at the end. The text may
 * claim to be longer than what is left: the caller looks. */
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

static uint64_t mask_of(const Elf64_Phdr *segment) { return segment->p_align == 8 ? 7 : 3; }

/* Whether segment k has notes that none before it has: tools that rewrite files leave some that
 * overlap. */
static int has_notes(const reader *r, const Elf64_Phdr *segments, int k) {
  const Elf64_Phdr *s = &segments[k];
  if (s->p_type != PT_NOTE || !fits(s->p_offset, s->p_filesz, r->file_bytes)) return 0;
  for (const Elf64_Phdr *before = segments; before < s; before++)
    if (before->p_type == PT_NOTE && s->p_offset >= before->p_offset &&
        s->p_offset - before->p_offset <= before->p_filesz &&
        s->p_filesz <= before->p_filesz - (s->p_offset - before->p_offset))
      return 0;
  return 1;
}

static int add_note(cuplug__notes *notes, const Elf64_Nhdr *header, const walk *w,
                    cuplug_error *error) {
  if (header->n_descsz > w->left)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "symbol table: note of %u bytes, its segment has %llu left",
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

static int read_segments(const reader *r, const Elf64_Phdr *segments, int n, cuplug__notes *notes,
                         cuplug_error *error) {
  uint64_t room = 0;
  for (int k = 0; k < n; k++)
    if (has_notes(r, segments, k) && __builtin_add_overflow(room, segments[k].p_filesz, &room))
      room = UINT64_MAX;
  if (room > CUPLUG__MAX_NOTE_BYTES)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "notes of %llu bytes, at most %u are wanted",
                        (unsigned long long)room, CUPLUG__MAX_NOTE_BYTES);
  notes->bytes = malloc(room + 1);
  if (!notes->bytes) return cuplug__no_memory(error, doing);
  for (int k = 0; k < n; k++) {
    const Elf64_Phdr *s = &segments[k];
    if (!has_notes(r, segments, k)) continue;
    char *to = notes->bytes + notes->n_bytes;
    int status = copy_range(r, s->p_offset, to, s->p_filesz, error);
    if (!status) status = add_segment(notes, to, s->p_filesz, mask_of(s), error);
    if (status) return status;
    notes->n_bytes += s->p_filesz;
  }
  return CUPLUG_OK;
}

int cuplug__notes_read(int fd, uint64_t file_bytes, cuplug__notes *notes, cuplug_error *error) {
  reader r;
  Elf64_Ehdr elf;
  Elf64_Phdr segments[MAX_SEGMENTS];
  memset(notes, 0, sizeof(*notes));
  int status = start_reader(&r, fd, file_bytes, error);
  if (!status) status = check_identity(&r, error);
  if (status) return status;
  memcpy(&elf, r.head, sizeof(elf));
  if ((status = check_header(&elf, error))) return status;
  const uint64_t bytes = elf.e_phnum * sizeof(Elf64_Phdr);
  if ((status = copy_range(&r, elf.e_phoff, segments, bytes, error))) return status;
  if ((status = read_segments(&r, segments, elf.e_phnum, notes, error))) return status;
  if ((status = check_whole(&r, &elf, segments, error))) return status;
  notes->sound = 1;
  return notes->n_notes ? CUPLUG_OK : fail(error, "no symbol table (no ELF note of owner cuplug)");
}

void cuplug__notes_end(cuplug__notes *notes) {
  free(notes->bytes);
  free(notes->notes);
  memset(notes, 0, sizeof(*notes));
}

/* ---- In memory ------------------------------------------------------------------------------- */

typedef struct comparison {
  const cuplug__notes *notes;
  uint32_t n_equal; /* so far */
  int differs;
} comparison;

static void compare_segment(const char *bytes, uint64_t n, uint64_t align, void *data) {
  comparison *c = data;
  walk w = {bytes, n, align == 8 ? 7 : 3};
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
