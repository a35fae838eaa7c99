/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a listing, its directories and its files. */
#include "registry/listing.h"

size_t cuplug_listing_n_directories(const cuplug_listing *x) { return x->n_directories; }

const cuplug_directory *cuplug_listing_directory(const cuplug_listing *x, size_t k) {
  return k < x->n_directories ? &x->directories[k] : NULL;
}

size_t cuplug_listing_n_files(const cuplug_listing *x) { return x->n_files; }

const cuplug_file *cuplug_listing_file(const cuplug_listing *x, size_t k) {
  return k < x->n_files ? &x->files[k] : NULL;
}

const char *cuplug_directory_path(const cuplug_directory *x) { return x->path; }
int32_t cuplug_directory_origin(const cuplug_directory *x) { return x->origin; }
int32_t cuplug_directory_state(const cuplug_directory *x) { return x->state; }
const char *cuplug_directory_reason(const cuplug_directory *x) {
  return x->reason ? x->reason : "";
}

const char *cuplug_file_path(const cuplug_file *x) { return x->path; }
int32_t cuplug_file_origin(const cuplug_file *x) { return x->origin; }
int32_t cuplug_file_state(const cuplug_file *x) { return x->state; }
const char *cuplug_file_reason(const cuplug_file *x) { return x->reason ? x->reason : ""; }
int cuplug_file_is_loaded(const cuplug_file *x) { return x->loaded; }
const char *cuplug_file_name(const cuplug_file *x) { return x->table.name; }
const char *cuplug_file_version(const cuplug_file *x) { return x->table.version; }
const char *cuplug_file_architectures(const cuplug_file *x) { return x->table.architectures; }
uint32_t cuplug_file_abi_version(const cuplug_file *x) { return x->table.abi_version; }
uint32_t cuplug_file_n_rows(const cuplug_file *x) { return x->table.n_rows; }

const cuplug_row *cuplug_file_row(const cuplug_file *x, uint32_t k) {
  return k < x->table.n_rows ? &x->table.rows[k] : NULL;
}
