/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of operators, their overloads and signatures. */
#include "base/status.h"
#include "discovery/candidate.h"
#include "discovery/table.h"
#include "discovery/trust.h"
#include "registry/plugin.h"
#include "registry/registry.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *cuplug_operator_name(const cuplug_operator *op) { return op->name; }
const char *cuplug_operator_plugin(const cuplug_operator *op) { return op->plugin->table.name; }
const char *cuplug_operator_version(const cuplug_operator *op) { return op->plugin->table.version; }
const char *cuplug_operator_path(const cuplug_operator *op) { return op->plugin->path; }
const char *cuplug_operator_architectures(const cuplug_operator *op) {
  return op->plugin->table.architectures;
}

/* The digest of the file whose table was read. */
static int digest_plugin(const cuplug__plugin *plugin, uint8_t digest[32], cuplug_error *error) {
  cuplug__identity after;
  const int fd = open(plugin->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  int status = fd < 0 ? CUPLUG_OK : cuplug__digest_file(fd, plugin->identity.bytes, digest, error);
  const int is_same = fd >= 0 && cuplug__identity_of(fd, "", &after) &&
                      cuplug__identity_equal(&after, &plugin->identity);
  if (fd >= 0) close(fd);
  if (is_same) return status;
  return cuplug__reject(
      error, "%s: no longer the file whose table was read; reload it, or find the operator again",
      plugin->path);
}

int cuplug_operator_digest(const cuplug_operator *op, uint8_t digest[32], cuplug_error *error) {
  cuplug__plugin *plugin = (cuplug__plugin *)op->plugin;
  cuplug__clear(error);
  int status = plugin->has_digest ? CUPLUG_OK : digest_plugin(plugin, digest, error);
  if (status) return status;
  cuplug__registry_lock();
  if (!plugin->has_digest) memcpy(plugin->digest, digest, sizeof plugin->digest);
  plugin->has_digest = 1;
  memcpy(digest, plugin->digest, sizeof plugin->digest);
  cuplug__registry_unlock();
  return CUPLUG_OK;
}

int cuplug_operator_is_loaded(const cuplug_operator *op) {
  return atomic_load_explicit(&op->loaded, memory_order_acquire);
}

uint32_t cuplug_operator_n_overloads(const cuplug_operator *op) { return op->n_overloads; }

const cuplug_overload *cuplug_operator_overload(const cuplug_operator *op, uint32_t k) {
  return k < op->n_overloads ? op->overloads[k].row : NULL;
}

const char *cuplug_overload_signature(const cuplug_overload *row) { return row->signature; }
const char *cuplug_overload_doc(const cuplug_overload *row) { return row->doc; }

static const char *entry_for(const cuplug_overload *row, int32_t device_type) {
  char key[sizeof "entry.-2147483648"];
  snprintf(key, sizeof key, "entry.%d", (int)device_type);
  return cuplug_overload_property(row, key);
}

const char *cuplug_overload_entry(const cuplug_overload *row, int32_t device_type) {
  const char *entry = device_type == CUPLUG_CPU    ? row->host_entry
                      : device_type == CUPLUG_CUDA ? row->cuda_entry
                                                   : entry_for(row, device_type);
  return entry && *entry ? entry : NULL;
}

uint32_t cuplug_overload_flags(const cuplug_overload *row) { return row->flags; }

const cuplug_signature *cuplug_operator_signature(const cuplug_operator *op, uint32_t k) {
  return k < op->n_overloads ? op->overloads[k].signature : NULL;
}

const char *cuplug_signature_text(const cuplug_signature *s) { return s->text; }
uint32_t cuplug_signature_n_parameters(const cuplug_signature *s) {
  return (uint32_t)s->n_parameters;
}

uint32_t cuplug_signature_n_outputs(const cuplug_signature *s) {
  return (uint32_t)s->n_outputs + (s->made != NULL);
}

/* Past the last one: an empty one. */
static const cuplug_parameter *parameter(const cuplug_signature *s, uint32_t i) {
  static const cuplug_parameter none = {.kind = -1, .type_variable = -1};
  return i < (uint32_t)s->n_parameters + cuplug_signature_n_outputs(s) ? &s->parameters[i] : &none;
}

const char *cuplug_parameter_name(const cuplug_signature *s, uint32_t i) {
  return parameter(s, i)->name;
}

int32_t cuplug_parameter_kind(const cuplug_signature *s, uint32_t i) {
  return parameter(s, i)->kind;
}

uint64_t cuplug_parameter_dtypes(const cuplug_signature *s, uint32_t i) {
  const int32_t v = parameter(s, i)->type_variable;
  return v >= 0 ? s->variables[v].dtypes : 0;
}

uint32_t cuplug_parameter_n_dims(const cuplug_signature *s, uint32_t i) {
  return (uint32_t)parameter(s, i)->n_dims;
}

int32_t cuplug_parameter_is_inout(const cuplug_signature *s, uint32_t i) {
  return parameter(s, i)->is_inout;
}

int32_t cuplug_parameter_is_host(const cuplug_signature *s, uint32_t i) {
  return parameter(s, i)->words & CUPLUG_WORD_HOST ? 1 : 0;
}

const char *cuplug_parameter_tag(const cuplug_signature *s, uint32_t i) {
  return parameter(s, i)->tag;
}

const char *cuplug_parameter_default(const cuplug_signature *s, uint32_t i) {
  const cuplug_parameter *x = parameter(s, i);
  return x->has_default ? x->default_text : NULL;
}
