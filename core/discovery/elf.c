/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/elf.h"

#include "base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ENTRIES 4096 /* of a dynamic section; linkers make a few dozen */

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

/* ---- Bytes ----------------------------------------------------------------------------------- */

int cuplug__fits(uint64_t offset, uint64_t bytes, uint64_t limit) {
  return offset <= limit && bytes <= limit - offset; /* no sum can overflow */
}

static int read_range(int fd, uint64_t offset, void *to, uint64_t bytes, cuplug_error *error) {
  uint64_t done = 0;
  while (done < bytes) {
    ssize_t n = pread(fd, (char *)to + done, bytes - done, (off_t)(offset + done));
    if (n > 0) done += (uint64_t)n;
    if (n == 0) return cuplug__reject(error, "truncated while it was read");
    if (n < 0 && errno != EINTR)
      return cuplug__reject(error, "cannot be read: %s", strerror(errno));
  }
  return CUPLUG_OK;
}

int cuplug__elf_copy(const cuplug__elf *elf, uint64_t offset, void *to, uint64_t bytes,
                     cuplug_error *error) {
  if (!cuplug__fits(offset, bytes, elf->file_bytes))
    return cuplug__reject(error,
                          "truncated: got a file of %" PRIu64 " bytes, expected %" PRIu64
                          " bytes at byte %" PRIu64,
                          elf->file_bytes, bytes, offset);
  if (!cuplug__fits(offset, bytes, elf->head_bytes))
    return read_range(elf->fd, offset, to, bytes, error);
  memcpy(to, elf->head + offset, bytes);
  return CUPLUG_OK;
}

/* ---- Headers --------------------------------------------------------------------------------- */

static int fail_no_elf(const cuplug__elf *elf, cuplug_error *error) {
  char shown[13] = {0};
  for (size_t k = 0; k + 1 < sizeof(shown) && k < elf->head_bytes; k++)
    shown[k] = elf->head[k] >= ' ' && elf->head[k] <= '~' ? (char)elf->head[k] : '.';
  return cuplug__reject(error, "got a file that begins with \"%s\", expected an ELF shared object",
                        shown);
}

/* Checks the first 16 bytes, which are the same in all ELF files. */
static int check_identity(const cuplug__elf *elf, cuplug_error *error) {
  const uint8_t *head = elf->head;
  uint64_t n = elf->head_bytes;
  if (!n) return cuplug__reject(error, "got an empty file, expected a shared object");
  if (memcmp(head, ELFMAG, n < SELFMAG ? n : SELFMAG)) return fail_no_elf(elf, error);
  if (n < EI_NIDENT) return cuplug__reject(error, "truncated: the file ends in its ELF header");
  if (head[EI_CLASS] == ELFCLASS32)
    return cuplug__reject(error, "got a 32-bit object, expected a 64-bit shared object");
  if (head[EI_CLASS] != ELFCLASS64)
    return cuplug__reject(error, "got ELF class %u, expected class 2 (64-bit)", head[EI_CLASS]);
  if (head[EI_DATA] != THIS_BYTE_ORDER)
    return cuplug__reject(error, "got an object of the other byte order, expected this machine's");
  if (n < sizeof(Elf64_Ehdr))
    return cuplug__reject(error, "truncated: the file ends in its ELF header");
  return CUPLUG_OK;
}

static int check_header(const Elf64_Ehdr *header, cuplug_error *error) {
  static const char *const types[] = {"no type", "relocatable object (.o)", "executable",
                                      "shared object", "core dump"};
  if (header->e_machine != THIS_MACHINE)
    return cuplug__reject(error, "got code for %s (ELF machine %u), expected %s (%u)",
                          machine_name(header->e_machine), header->e_machine,
                          machine_name(THIS_MACHINE), (unsigned)THIS_MACHINE);
  if (header->e_type == ET_REL)
    return cuplug__reject(
        error, "got an object file, as compilers write with -c, expected a shared object; "
               "link it with -shared");
  if (header->e_type != ET_DYN)
    return cuplug__reject(error, "got ELF type %u (%s), expected a shared object (type 3)",
                          header->e_type, header->e_type < 5 ? types[header->e_type] : "unknown");
  if (!header->e_phnum || header->e_phnum > CUPLUG__MAX_SEGMENTS ||
      header->e_phentsize != sizeof(Elf64_Phdr))
    return cuplug__reject(error, "got %u program headers of %u bytes, expected 1 to %d of 56",
                          header->e_phnum, header->e_phentsize, CUPLUG__MAX_SEGMENTS);
  return CUPLUG_OK;
}

int cuplug__elf_read(cuplug__elf *elf, int fd, uint64_t file_bytes, cuplug_error *error) {
  elf->fd = fd;
  elf->file_bytes = file_bytes;
  elf->head_bytes = file_bytes < sizeof(elf->head) ? file_bytes : sizeof(elf->head);
  int status = read_range(fd, 0, elf->head, elf->head_bytes, error);
  if (!status) status = check_identity(elf, error);
  if (status) return status;
  memcpy(&elf->header, elf->head, sizeof(elf->header));
  if ((status = check_header(&elf->header, error))) return status;
  return cuplug__elf_copy(elf, elf->header.e_phoff, elf->segments,
                          elf->header.e_phnum * sizeof(*elf->segments), error);
}

int cuplug__elf_read_open(cuplug__elf *elf, int fd, cuplug_error *error) {
  struct stat status;
  if (fstat(fd, &status)) return cuplug__reject(error, "cannot be read: %s", strerror(errno));
  return cuplug__elf_read(elf, fd, (uint64_t)status.st_size, error);
}

int cuplug__elf_check_whole(const cuplug__elf *elf, cuplug_error *error) {
  const Elf64_Ehdr *header = &elf->header;
  for (int k = 0; k < header->e_phnum; k++) {
    const Elf64_Phdr *s = &elf->segments[k];
    if (s->p_type == PT_LOAD && s->p_filesz > s->p_memsz)
      return cuplug__reject(error, "corrupt: segment %d has more bytes in the file than in memory",
                            k);
    if (s->p_type != PT_NULL && !cuplug__fits(s->p_offset, s->p_filesz, elf->file_bytes))
      return cuplug__reject(error,
                            "truncated: segment %d has %" PRIu64 " bytes at byte %" PRIu64
                            ", the file has %" PRIu64,
                            k, s->p_filesz, s->p_offset, elf->file_bytes);
  }
  const uint64_t bytes = (uint64_t)header->e_shnum * header->e_shentsize;
  if (header->e_shoff && !cuplug__fits(header->e_shoff, bytes, elf->file_bytes))
    return cuplug__reject(error,
                          "truncated: section headers at byte %" PRIu64 ", the file has %" PRIu64,
                          header->e_shoff, elf->file_bytes);
  return CUPLUG_OK;
}

int cuplug__elf_needs_stack(const cuplug__elf *elf) {
#if defined(__x86_64__)
  int is_needed = 1;
#else
  int is_needed = 0;
#endif
  for (int k = 0; k < elf->header.e_phnum; k++)
    if (elf->segments[k].p_type == PT_GNU_STACK) is_needed = (elf->segments[k].p_flags & PF_X) != 0;
  return is_needed;
}

/* The dynamic linker would make the stacks of all threads executable, or reject the library. */
int cuplug__check_stack(int needs_stack, cuplug_error *error) {
  return needs_stack
             ? cuplug__reject(error, "got a library that needs an executable stack, expected none; "
                                     "link it with -z noexecstack")
             : CUPLUG_OK;
}

/* ---- The dynamic section --------------------------------------------------------------------- */

/* The position in the file of an address of the dynamic section; 0: none. */
static uint64_t place_of(const cuplug__elf *elf, uint64_t address) {
  for (const Elf64_Phdr *s = elf->segments; s < elf->segments + elf->header.e_phnum; s++)
    if (s->p_type == PT_LOAD && address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz)
      return s->p_offset + (address - s->p_vaddr);
  return 0;
}

/* Takes entry *k of the dynamic section and counts; 0 after the last. */
static int next_entry(const cuplug__elf *elf, const Elf64_Phdr *s, uint64_t *k, Elf64_Dyn *entry) {
  return *k < MAX_ENTRIES && *k < s->p_filesz / sizeof *entry &&
         !cuplug__elf_copy(elf, s->p_offset + (*k)++ * sizeof *entry, entry, sizeof *entry, NULL) &&
         entry->d_tag != DT_NULL;
}

static int is_text(Elf64_Sxword tag) {
  return tag == DT_NEEDED || tag == DT_SONAME || tag == DT_RPATH || tag == DT_RUNPATH ||
         tag == DT_FILTER || tag == DT_AUXILIARY;
}

static void visit_texts(const cuplug__elf *elf, const Elf64_Phdr *s, cuplug__visit_text *visit,
                        void *data) {
  char text[4096];
  uint64_t strings = 0;
  Elf64_Dyn entry;
  for (uint64_t k = 0; next_entry(elf, s, &k, &entry);)
    if (entry.d_tag == DT_STRTAB) strings = place_of(elf, entry.d_un.d_ptr);
  for (uint64_t k = 0; next_entry(elf, s, &k, &entry);) {
    const uint64_t at = strings + entry.d_un.d_val, end = elf->file_bytes;
    const uint64_t n = at >= end ? 0 : end - at < sizeof text ? end - at : sizeof text;
    if (!is_text(entry.d_tag)) continue;
    const int is_read = strings && !cuplug__elf_copy(elf, at, text, n, NULL) && memchr(text, 0, n);
    visit(entry.d_tag, is_read ? text : NULL, data);
  }
}

void cuplug__elf_visit_texts(const cuplug__elf *elf, cuplug__visit_text *visit, void *data) {
  for (const Elf64_Phdr *s = elf->segments; s < elf->segments + elf->header.e_phnum; s++)
    if (s->p_type == PT_DYNAMIC) visit_texts(elf, s, visit, data);
}

static void find_places(Elf64_Sxword tag, const char *text, void *data) {
  int *places = data;
  if (tag == DT_SONAME) return;
  if (!text || tag == DT_RPATH || tag == DT_RUNPATH || strchr(text, '/'))
    *places |= CUPLUG__HAS_PATHS;
  if (!text || strstr(text, "ORIGIN")) *places |= CUPLUG__HAS_ORIGIN;
}

int cuplug__elf_places(int fd) {
  cuplug__elf elf;
  int places = 0;
  if (!cuplug__elf_read_open(&elf, fd, NULL)) cuplug__elf_visit_texts(&elf, find_places, &places);
  return places;
}
