/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest file that the loader takes for a plugin: ELF header, two program headers, note. It
 * can be listed and found, not loaded. */
#ifndef CUPLUG_TESTS_SMALL_ELF_H
#define CUPLUG_TESTS_SMALL_ELF_H

#include <cuplug/plugin.h>
#include <elf.h>
#include <string.h>

typedef struct small_elf {
  Elf64_Ehdr elf;
  Elf64_Phdr segments[2];
  cuplug_table_header header;
  cuplug_row rows[2];
} small_elf;

#if defined(__aarch64__)
#define SMALL_ELF_MACHINE EM_AARCH64
#else
#define SMALL_ELF_MACHINE EM_X86_64
#endif

/* A plugin with one row for each signature given; signatures may be NULL. */
static inline void small_elf_fill(small_elf *file, const char *name, const char *first,
                                  const char *second) {
  memset(file, 0, sizeof(*file));
  memcpy(file->elf.e_ident, ELFMAG, SELFMAG);
  file->elf.e_ident[EI_CLASS] = ELFCLASS64;
  file->elf.e_ident[EI_DATA] = ELFDATA2LSB;
  file->elf.e_type = ET_DYN;
  file->elf.e_machine = SMALL_ELF_MACHINE;
  file->elf.e_phoff = offsetof(small_elf, segments);
  file->elf.e_phentsize = sizeof(Elf64_Phdr);
  file->elf.e_phnum = 2;
  file->segments[0].p_type = PT_LOAD;
  file->segments[0].p_filesz = file->segments[0].p_memsz = sizeof(*file);
  file->segments[1].p_type = PT_NOTE;
  file->segments[1].p_align = 4;
  file->segments[1].p_offset = offsetof(small_elf, header);
  file->segments[1].p_filesz = sizeof(*file) - offsetof(small_elf, header);

  cuplug_table_header *h = &file->header;
  h->owner_bytes = 8;
  h->desc_bytes = (uint32_t)(sizeof(*h) + sizeof(file->rows) - 20);
  h->note_type = CUPLUG_NOTE_TYPE;
  memcpy(h->owner, CUPLUG_NOTE_OWNER, sizeof(h->owner));
  memcpy(h->magic, CUPLUG_TABLE_MAGIC, sizeof(h->magic));
  h->abi_version = CUPLUG_ABI_VERSION;
  h->header_bytes = sizeof(*h);
  h->row_bytes = sizeof(cuplug_row);
  h->n_rows = second ? 2 : 1;
  h->call_bytes = sizeof(cuplug_call);
  h->tensor_bytes = sizeof(cuplug_tensor);
  strcpy(h->name, name);
  strcpy(h->version, "1.0.0");
  strcpy(file->rows[0].host_entry, "first_host");
  strcpy(file->rows[1].host_entry, "second_host");
  if (first) strcpy(file->rows[0].signature, first);
  if (second) strcpy(file->rows[1].signature, second);
}

#endif
