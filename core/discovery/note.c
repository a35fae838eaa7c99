/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/note.h"

#include "base/status.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define MAX_SEGMENTS 1024
#define MAX_NOTES 1024

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

int cuplug__reader_start(cuplug__reader *reader, int fd, uint64_t file_bytes, cuplug_error *error) {
  reader->fd = fd;
  reader->file_bytes = file_bytes;
  reader->head_bytes = file_bytes < sizeof(reader->head) ? file_bytes : sizeof(reader->head);
  return read_range(fd, 0, reader->head, reader->head_bytes, error);
}

static int check_range(const cuplug__reader *reader, uint64_t offset, uint64_t bytes,
                       cuplug_error *error) {
  if (fits(offset, bytes, reader->file_bytes)) return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      "truncated: %llu bytes at byte %llu are wanted, the file has %llu",
                      (unsigned long long)bytes, (unsigned long long)offset,
                      (unsigned long long)reader->file_bytes);
}

int cuplug__reader_copy(const cuplug__reader *reader, uint64_t offset, void *to, uint64_t bytes,
                        cuplug_error *error) {
  int status = check_range(reader, offset, bytes, error);
  if (status) return status;
  if (!fits(offset, bytes, reader->head_bytes))
    return read_range(reader->fd, offset, to, bytes, error);
  memcpy(to, reader->head + offset, bytes);
  return CUPLUG_OK;
}

static int fail_no_elf(const cuplug__reader *reader, cuplug_error *error) {
  char shown[13] = {0};
  for (size_t k = 0; k + 1 < sizeof(shown) && k < reader->head_bytes; k++)
    shown[k] = reader->head[k] >= ' ' && reader->head[k] <= '~' ? (char)reader->head[k] : '.';
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      "not an ELF file: it begins with \"%s\", a shared object is wanted", shown);
}

/* Checks the first 16 bytes, which are the same in all ELF files. */
static int check_identity(const cuplug__reader *reader, cuplug_error *error) {
  const uint8_t *head = reader->head;
  uint64_t n = reader->head_bytes;
  if (!n) return fail(error, "empty file, a shared object is wanted");
  if (memcmp(head, ELFMAG, n < SELFMAG ? n : SELFMAG)) return fail_no_elf(reader, error);
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

/* One by one: all that there may be would fill small stacks. */
static int read_segment(const cuplug__reader *reader, const Elf64_Ehdr *elf, int k,
                        Elf64_Phdr *segment, cuplug_error *error) {
  return cuplug__reader_copy(reader, elf->e_phoff + (uint64_t)k * sizeof(*segment), segment,
                             sizeof(*segment), error);
}

/* A file cut short would raise SIGBUS when it is used: what its headers promise must be there. */
static int check_whole(const cuplug__reader *reader, const Elf64_Ehdr *elf, cuplug_error *error) {
  uint64_t size = reader->file_bytes;
  for (int k = 0; k < elf->e_phnum; k++) {
    Elf64_Phdr s;
    int status = read_segment(reader, elf, k, &s, error);
    if (status) return status;
    if (s.p_type == PT_LOAD && s.p_filesz > s.p_memsz)
      return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                          "corrupt: segment %d has more bytes in the file than in memory", k);
    if (s.p_type != PT_NULL && !fits(s.p_offset, s.p_filesz, size))
      return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                          "truncated: segment %d has %llu bytes at byte %llu, the file has %llu", k,
                          (unsigned long long)s.p_filesz, (unsigned long long)s.p_offset,
                          (unsigned long long)size);
  }
  if (elf->e_shoff && !fits(elf->e_shoff, (uint64_t)elf->e_shnum * elf->e_shentsize, size))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "truncated: section headers at byte %llu, the file has %llu",
                        (unsigned long long)elf->e_shoff, (unsigned long long)size);
  return CUPLUG_OK;
}

static int is_ours(const Elf64_Nhdr *header, const char *owner) {
  return header->n_type == CUPLUG_NOTE_TYPE && header->n_namesz == sizeof(CUPLUG_NOTE_OWNER) &&
         !memcmp(owner, CUPLUG_NOTE_OWNER, sizeof(CUPLUG_NOTE_OWNER));
}

static int fail_note_size(cuplug__note *note, uint64_t wanted, uint64_t room, cuplug_error *error) {
  note->bytes = 0;
  if (wanted > CUPLUG__MAX_NOTE_BYTES)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "symbol table of %llu bytes, at most %u are wanted",
                        (unsigned long long)wanted, CUPLUG__MAX_NOTE_BYTES);
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      "symbol table of %llu bytes, its note segment has %llu left",
                      (unsigned long long)wanted, (unsigned long long)room);
}

/* Walks through the notes of one segment. *left bounds the work on a hostile file. */
static int scan_segment(const cuplug__reader *reader, const Elf64_Phdr *segment, int *left,
                        cuplug__note *note, cuplug_error *error) {
  uint64_t mask = segment->p_align == 8 ? 7 : 3;
  uint64_t at = segment->p_offset, end = at + segment->p_filesz;
  struct {
    Elf64_Nhdr header;
    char owner[sizeof(CUPLUG_NOTE_OWNER)];
  } start;
  while (at <= end && end - at >= sizeof(start) && (*left)-- > 0) {
    int status = cuplug__reader_copy(reader, at, &start, sizeof(start), error);
    if (status) return status;
    if (is_ours(&start.header, start.owner)) {
      note->seen = 1;
      note->offset = at;
      note->bytes = sizeof(start) + (uint64_t)start.header.n_descsz;
      return note->bytes <= end - at && note->bytes <= CUPLUG__MAX_NOTE_BYTES
                 ? CUPLUG_OK
                 : fail_note_size(note, note->bytes, end - at, error);
    }
    at += (sizeof(Elf64_Nhdr) + (uint64_t)start.header.n_namesz + mask) & ~mask;
    at += ((uint64_t)start.header.n_descsz + mask) & ~mask;
  }
  return CUPLUG_OK;
}

static int scan_segments(const cuplug__reader *reader, const Elf64_Ehdr *elf, cuplug__note *note,
                         cuplug_error *error) {
  int left = MAX_NOTES;
  for (int k = 0; k < elf->e_phnum && !note->seen; k++) {
    Elf64_Phdr s;
    int status = read_segment(reader, elf, k, &s, error);
    if (status) return status;
    if (s.p_type != PT_NOTE || !fits(s.p_offset, s.p_filesz, reader->file_bytes)) continue;
    if ((status = scan_segment(reader, &s, &left, note, error))) return status;
  }
  return CUPLUG_OK;
}

int cuplug__note_find(const cuplug__reader *reader, cuplug__note *note, cuplug_error *error) {
  Elf64_Ehdr elf;
  memset(note, 0, sizeof(*note));
  int status = check_identity(reader, error);
  if (status) return status;
  memcpy(&elf, reader->head, sizeof(elf));
  if ((status = check_header(&elf, error))) return status;
  uint64_t bytes = elf.e_phnum * sizeof(Elf64_Phdr);
  if ((status = check_range(reader, elf.e_phoff, bytes, error))) return status;
  if ((status = scan_segments(reader, &elf, note, error))) return status;
  if ((status = check_whole(reader, &elf, error))) return status;
  note->sound = 1;
  return note->seen ? CUPLUG_OK : fail(error, "no symbol table (no ELF note of owner cuplug)");
}
