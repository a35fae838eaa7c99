/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest file that is accepted as a plugin: an ELF header, two program headers and notes. It
 * can be listed and found, but not loaded. */
#ifndef CUPLUG_TESTS_SMALL_ELF_H
#define CUPLUG_TESTS_SMALL_ELF_H

#include <cuplug/plugin.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

typedef struct small_note {
  uint32_t owner_bytes, text_bytes, kind;
  char owner[8];
  char text[256];
} small_note;

typedef struct small_elf {
  Elf64_Ehdr elf;
  Elf64_Phdr segments[3];
  small_note plugin, rows[2];
} small_elf;

#if defined(__aarch64__)
#define SMALL_ELF_MACHINE EM_AARCH64
#else
#define SMALL_ELF_MACHINE EM_X86_64
#endif

/* Zeros after the text are part of it: they are empty strings, which are skipped. */
static inline void small_elf_note(small_note *note, uint32_t kind, const char *format,
                                  const char *first, const char *second) {
  note->owner_bytes = sizeof note->owner;
  note->text_bytes = sizeof note->text;
  note->kind = kind;
  memcpy(note->owner, CUPLUG_NOTE_OWNER, sizeof note->owner);
  snprintf(note->text, sizeof note->text, format, first, 0, second, 0);
}

/* A plugin with one overload for each given signature; `second` may be NULL. */
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
  file->elf.e_phnum = 3;
  file->segments[0].p_type = PT_LOAD;
  file->segments[0].p_filesz = file->segments[0].p_memsz = sizeof(*file);
  file->segments[1].p_type = PT_NOTE;
  file->segments[1].p_align = 4;
  file->segments[1].p_offset = offsetof(small_elf, plugin);
  file->segments[1].p_filesz = sizeof(small_note) * (second ? 3 : 2);
  file->segments[2].p_type = PT_GNU_STACK;
  file->segments[2].p_flags = PF_R | PF_W;
  small_elf_note(&file->plugin, CUPLUG_NOTE_PLUGIN, "abi=2.0%2$cname=%1$s%2$cversion=1.0.0", name,
                 "");
  const char *row = "host=first_host%2$csignature=%1$s";
  small_elf_note(&file->rows[0], CUPLUG_NOTE_OPERATOR, row, first ? first : "", "");
  small_elf_note(&file->rows[1], CUPLUG_NOTE_OPERATOR, row, second ? second : "", "");
}

#endif
