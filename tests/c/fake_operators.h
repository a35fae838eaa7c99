/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of the fake plugin, compiled in, for whole calls on the fake driver. Programs link
 * with --wrap=cuplug_describe: the plugin has no file. */
#ifndef FAKE_OPERATORS_H
#define FAKE_OPERATORS_H

#include "fake_gpu.c"
#include "registry/operator.h"

#include "scenarios.h"

#define N_ROWS (sizeof cuplug_symbols.rows / sizeof *cuplug_symbols.rows)

static cuplug_error error;
static cuplug__overload overloads[N_ROWS];
static cuplug_operator operators[N_ROWS];
static const char *architectures = "900";

void __wrap_cuplug_describe(const cuplug_operator *op, cuplug_operator_info *info);
void __wrap_cuplug_describe(const cuplug_operator *op, cuplug_operator_info *info) {
  *info = (cuplug_operator_info){op->name,      "fake_gpu",      "1.0.0", "libfake_gpu.so",
                                 architectures, op->n_overloads, 1};
}

static cuplug_entry *entry_of(const char *name) {
  static const struct {
    const char *name;
    cuplug_entry *entry;
  } entries[] = {{"triple_cuda", triple_cuda},     {"triple_host", triple_host},
                 {"pick_cuda", pick_cuda},         {"triple_strided_cuda", triple_strided_cuda},
                 {"increase_cuda", increase_cuda}, {"increase_host", increase_host},
                 {"advance_cuda", advance_cuda},   {"positive_cuda", positive_cuda},
                 {"refuse_cuda", refuse_cuda},     {"crash_cuda", crash_cuda},
                 {"divide_cuda", divide_cuda},     {"too_new_cuda", too_new_cuda}};
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (!strcmp(entries[i].name, name)) return entries[i].entry;
  return NULL;
}

static void make_operators(void) {
  for (size_t i = 0; i < N_ROWS; i++) {
    const cuplug_row *row = &cuplug_symbols.rows[i];
    cuplug__overload *overload = &overloads[i];
    CHECK(!cuplug__parse_overload(overload, row->signature, &error));
    overload->row = row, overload->brief_bytes = -1;
    overload->cuda = entry_of(row->cuda_entry), overload->host = entry_of(row->host_entry);
    operators[i].name = overload->signature.name, operators[i].n_overloads = 1;
    operators[i].overloads = overload, operators[i].loaded = 1;
  }
}

static cuplug_operator *find(const char *name) {
  for (size_t i = 0; i < N_ROWS; i++)
    if (!strcmp(operators[i].name, name)) return &operators[i];
  CHECK(!"an operator of that name");
  return NULL;
}

__attribute__((unused)) static const cuplug_device gpu0 = {CUPLUG_CUDA, 0}, gpu1 = {CUPLUG_CUDA, 1};

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

/* The device's frees are in stream order: done when it has been waited for. */
static void check_all_given_back(void) {
  for (int32_t id = 0; id < 2; id++) CHECK(!cuplug_synchronize(id, NULL, 1, &error));
  check_nothing_left();
}

#endif
