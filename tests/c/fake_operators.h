/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of the fake plugin, compiled in, for whole calls on the fake driver. */
#ifndef FAKE_OPERATORS_H
#define FAKE_OPERATORS_H

#include "discovery/table.h"
#include "fake_gpu.c"
#include "registry/plugin.h"
#include "registry/registry.h"

#include "scenarios.h"

#include <link.h>

#define MAX_ROWS 32

static cuplug_error error;
static cuplug_overload rows[MAX_ROWS];
static cuplug__callable overloads[MAX_ROWS];
static cuplug_operator operators[MAX_ROWS];
static size_t n_rows;
static char plugin_path[] = "libfake_gpu.so";
static cuplug__plugin plugin = {
    .path = plugin_path, .table = {.name = "fake_gpu", .version = "1.0.0", .architectures = "900"}};

static cuplug_entry *entry_of(const char *name) {
  static const struct {
    const char *name;
    cuplug_entry *entry;
  } entries[] = {{"triple_cuda", triple_cuda},     {"triple_host", triple_host},
                 {"pick_cuda", pick_cuda},         {"triple_strided_cuda", triple_strided_cuda},
                 {"increase_cuda", increase_cuda}, {"increase_host", increase_host},
                 {"advance_cuda", advance_cuda},   {"positive_cuda", positive_cuda},
                 {"refuse_cuda", refuse_cuda},     {"crash_cuda", crash_cuda},
                 {"divide_cuda", divide_cuda},     {"too_new_cuda", too_new_cuda},
                 {"stack_cuda", stack_cuda},       {"aside_cuda", aside_cuda},
                 {"aside_host", aside_host},       {"triple_all_cuda", triple_all_cuda}};
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (!strcmp(entries[i].name, name)) return entries[i].entry;
  return NULL;
}

static void make_operator(const char *text, uint32_t text_bytes) {
  CHECK(n_rows < MAX_ROWS);
  cuplug_overload *row = &rows[n_rows];
  cuplug__callable *overload = &overloads[n_rows];
  cuplug_operator *op = &operators[n_rows++];
  CHECK(!cuplug__read_overload(text, text_bytes, CUPLUG_ABI_VERSION, row, &error));
  cuplug__make_overload(overload, row);
  overload->inline_call_bytes = -1;
  overload->cuda = entry_of(row->cuda_entry), overload->host = entry_of(row->host_entry);
  op->plugin = &plugin, op->name = overload->signature->name, op->n_overloads = 1;
  op->overloads = overload, op->loaded = 1;
}

/* The notes of this program. */
static int visit_program(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size, (void)data;
  for (int k = 0; k < info->dlpi_phnum; k++) {
    const ElfW(Phdr) *s = &info->dlpi_phdr[k];
    const char *at = (const char *)(info->dlpi_addr + s->p_vaddr), *end = at + s->p_memsz;
    const uint32_t mask = s->p_align == 8 ? 7 : 3;
    while (s->p_type == PT_NOTE && at < end) {
      const ElfW(Nhdr) *note = (const void *)at;
      const char *text = at + ((sizeof *note + note->n_namesz + mask) & ~mask);
      if (note->n_type == CUPLUG_NOTE_OPERATOR) make_operator(text, note->n_descsz);
      at = text + ((note->n_descsz + mask) & ~mask);
    }
  }
  return 1;
}

static void make_operators(void) { dl_iterate_phdr(visit_program, NULL); }

static cuplug_operator *find(const char *name) {
  for (size_t i = 0; i < n_rows; i++)
    if (!strcmp(operators[i].name, name)) return &operators[i];
  CHECK(!"an operator of that name");
  return NULL;
}

__attribute__((unused)) static const cuplug_device gpu0 = {CUPLUG_CUDA, 0}, gpu1 = {CUPLUG_CUDA, 1};

__attribute__((unused)) static int invoke_on(cuplug_device device, cuplug_operator *op,
                                             const cuplug_argument *args, uint32_t n_args,
                                             cuplug_error *mine) {
  cuplug_options options = cuplug_default_options();
  options.device = device;
  return cuplug_invoke(op, args, n_args, &options, mine);
}

static cuplug_argument array(uint32_t type, void *data, int64_t *n, cuplug_device device) {
  cuplug_argument a = {.kind = CUPLUG_ARGUMENT_ARRAY};
  a.tensor.data = data, a.tensor.device = device;
  a.tensor.ndim = 1, a.tensor.shape = n;
  a.tensor.dtype = (cuplug_dtype){(uint8_t)(type >> 24), (uint8_t)(type >> 16), (uint16_t)type};
  return a;
}

__attribute__((unused)) static cuplug_argument on_host(uint32_t type, void *data, int64_t *n) {
  return array(type, data, n, (cuplug_device){CUPLUG_CPU, 0});
}

/* Frees are in stream order, so they are done after a wait for the device. Channels keep memory. */
static void check_all_given_back(void) {
  for (int32_t id = 0; id < 2; id++)
    CHECK(!cuplug_synchronize(id, NULL, 1, &error) && !cuplug_trim(id, NULL, &error));
  check_nothing_left();
}

#endif
