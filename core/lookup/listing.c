/* SPDX-License-Identifier: Apache-2.0 */
#include "lookup/listing.h"

#include "base/status.h"
#include "discovery/candidate.h"
#include "discovery/search.h"
#include "discovery/table.h"
#include "discovery/trust.h"
#include "registry/operator.h"
#include "registry/registry.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const char doing[] = "listing plugins";

/* A listing that grows: `inodes` tell its files apart. */
typedef struct builder {
  cuplug_listing *listing;
  const cuplug__trust *trust;
  cuplug__identity *identities; /* of listing->files */
  size_t room;
  size_t n_before; /* files of earlier directories */
} builder;

int cuplug__file_counts(const cuplug_file *file) {
  return file->state == CUPLUG_STATE_OK || (file->state == CUPLUG_STATE_CHANGED && file->n_rows);
}

/* Nothing is known of the plugin. */
static void start_file(cuplug_file *file, char *path, int origin) {
  *file = (cuplug_file){.path = path, .origin = origin};
  file->name = file->version = file->architectures = "";
}

static int new_file(builder *b, char *path, int origin, cuplug_file **file, cuplug_error *error) {
  cuplug_listing *listing = b->listing;
  if (!path) return cuplug__no_memory(error, doing);
  if (listing->n_files == b->room) {
    size_t room = b->room ? 2 * b->room : 64;
    cuplug_file *files = realloc(listing->files, room * sizeof(*files));
    if (files) listing->files = files;
    cuplug__identity *identities = realloc(b->identities, room * sizeof(*identities));
    if (identities) b->identities = identities;
    if (!files || !identities) {
      free(path);
      return cuplug__no_memory(error, doing);
    }
    b->room = room;
  }
  *file = &listing->files[listing->n_files++];
  start_file(*file, path, origin);
  return CUPLUG_OK;
}

static void drop_last(builder *b) {
  cuplug_file *file = &b->listing->files[--b->listing->n_files];
  free(file->path);
  free(file->reason);
  free(file->rows);
  free(file->notes);
}

static int give_reason(cuplug_file *file, int state, const char *reason, cuplug_error *error) {
  file->state = state;
  file->reason = strdup(reason);
  return file->reason ? CUPLUG_OK : cuplug__no_memory(error, doing);
}

static void copy_texts(cuplug_file *file, const cuplug__table *table) {
  file->n_rows = table->n_rows;
  file->abi_version = table->abi_version;
  file->name = table->name;
  file->version = table->version;
  file->architectures = table->architectures;
}

/* Takes over what was read. */
static void take_table(cuplug_file *file, cuplug__table *table) {
  copy_texts(file, table);
  for (uint32_t k = 0; k < table->n_rows; k++) { /* nobody asks a listing for them */
    cuplug_free_signature(table->rows[k].parsed);
    table->rows[k].parsed = NULL;
  }
  file->rows = table->rows;
  file->notes = table->notes.bytes;
  table->rows = NULL;
  table->n_rows = 0;
  table->notes.bytes = NULL;
}

/* Shows what the process goes on with. */
static int fill_changed(cuplug_file *file, const cuplug__plugin *plugin, cuplug_error *error) {
  const size_t bytes = plugin->table.n_rows * sizeof(cuplug_row);
  file->rows = malloc(bytes);
  if (!file->rows) return cuplug__no_memory(error, doing);
  memcpy(file->rows, plugin->table.rows, bytes);
  copy_texts(file, &plugin->table);
  file->loaded = 1;
  return give_reason(file, CUPLUG_STATE_CHANGED,
                     "replaced or removed on disk since its code was loaded: the process goes on "
                     "with the old code until it is restarted",
                     error);
}

static int is_loaded(const cuplug__identity *identity) {
  for (const cuplug__plugin *p = cuplug__registry_plugins(); p; p = p->next)
    if (p->library && cuplug__identity_equal(&p->identity, identity)) return 1;
  return 0;
}

/* An earlier file that counts and is the same file, or has the same plugin's name. The names of one
 * directory differ, as they are file names. */
static const cuplug_file *earlier_file(const builder *b, const cuplug_file *file, int same_name) {
  const cuplug__identity *own = &b->identities[file - b->listing->files];
  for (const cuplug_file *f = b->listing->files; f < file; f++) {
    const cuplug__identity *other = &b->identities[f - b->listing->files];
    size_t k = (size_t)(f - b->listing->files);
    if (same_name && k >= b->n_before) return NULL;
    int is_same = same_name ? !strcmp(f->name, file->name)
                            : other->inode == own->inode && other->device == own->device;
    if (is_same && cuplug__file_counts(f)) return f;
  }
  return NULL;
}

/* Decides between OK, DUPLICATE, SHADOWED and a wrong name. */
static int judge(builder *b, cuplug_file *file, int directory, const char *name,
                 const cuplug__candidate *candidate, cuplug_error *error) {
  cuplug_error reason;
  const cuplug_file *earlier = earlier_file(b, file, 0);
  if (earlier) {
    cuplug__fail(&reason, CUPLUG_ERROR_PLUGIN, "the same file as %s", earlier->path);
    return give_reason(file, CUPLUG_STATE_DUPLICATE, reason.message, error);
  }
  if (directory != AT_FDCWD && cuplug__candidate_check_name(directory, name, candidate, &reason))
    return give_reason(file, CUPLUG_STATE_REJECTED, reason.message, error);
  earlier = earlier_file(b, file, 1);
  if (!earlier) return CUPLUG_OK;
  cuplug__fail(&reason, CUPLUG_ERROR_PLUGIN, "shadowed by %s", earlier->path);
  return give_reason(file, CUPLUG_STATE_SHADOWED, reason.message, error);
}

/* Fills in what was read of a file, and why that was not all. */
static int describe(cuplug_file *file, cuplug__candidate *candidate, int result,
                    const cuplug_error *reason, cuplug_error *error) {
  const cuplug__table *table = &candidate->table;
  if (result == CUPLUG_ERROR_MEMORY) return cuplug__no_memory(error, doing);
  file->loaded = is_loaded(&candidate->identity);
  take_table(file, &candidate->table);
  int state = CUPLUG_STATE_REJECTED;
  if (table->notes.sound && !table->notes.n_notes) state = CUPLUG_STATE_NO_PLUGIN;
  if (result == CUPLUG_ERROR_NOT_FOUND) state = CUPLUG_STATE_MISSING;
  return result ? give_reason(file, state, reason->message, error) : CUPLUG_OK;
}

/* Lists file `name` of an open directory. Among the libraries of LD_LIBRARY_PATH, those without a
 * symbol table are left out. */
static int add_file(builder *b, int directory, const char *name, char *path, int origin,
                    cuplug_error *error) {
  cuplug_file *file = NULL;
  cuplug__candidate candidate;
  cuplug_error reason;
  int status = new_file(b, path, origin, &file, error);
  if (status) return status;
  int result = cuplug__candidate_read(directory, name, b->trust, &candidate, &reason);
  const cuplug__plugin *loaded = cuplug__registry_loaded_from(path);
  b->identities[file - b->listing->files] = candidate.identity;
  if (loaded && !cuplug__identity_equal(&loaded->identity, &candidate.identity)) {
    status = fill_changed(file, loaded, error);
  } else if (!candidate.table.notes.n_notes && origin == CUPLUG_ORIGIN_LIBRARY_PATH &&
             result != CUPLUG_ERROR_MEMORY) {
    drop_last(b);
  } else {
    status = describe(file, &candidate, result, &reason, error);
    if (!status && !result) status = judge(b, file, directory, name, &candidate, error);
  }
  cuplug__candidate_end(&candidate);
  return status;
}

static int add_directory_files(builder *b, cuplug__place *place, cuplug_error *error) {
  char **names;
  size_t n_names;
  cuplug_error reason;
  cuplug_directory *directory = &place->directory;
  int status = cuplug__search_names(place, &names, &n_names, &reason);
  if (status == CUPLUG_ERROR_MEMORY) return cuplug__no_memory(error, doing);
  if (status) {
    directory->state = CUPLUG_STATE_REJECTED;
    directory->reason = strdup(reason.message);
    return directory->reason ? CUPLUG_OK : cuplug__no_memory(error, doing);
  }
  b->n_before = b->listing->n_files;
  for (size_t k = 0; k < n_names && !status; k++)
    status = add_file(b, place->fd, names[k], cuplug__join(directory->path, names[k]),
                      directory->origin, error);
  cuplug__search_free_names(names, n_names);
  return status;
}

static int add_all_files(builder *b, cuplug__search *search, cuplug_error *error) {
  int status = CUPLUG_OK;
  const cuplug__plugin *p = cuplug__registry_ranked_below(UINT64_MAX);
  for (; p && !status; p = cuplug__registry_ranked_below(p->rank)) {
    b->n_before = b->listing->n_files;
    status = add_file(b, AT_FDCWD, p->path, strdup(p->path), CUPLUG_ORIGIN_LOADED, error);
  }
  for (size_t k = 0; k < search->n_places && !status; k++)
    if (search->places[k].fd >= 0) status = add_directory_files(b, &search->places[k], error);
  return status;
}

static int take_directories(cuplug_listing *listing, cuplug__search *search, cuplug_error *error) {
  listing->directories = calloc(search->n_places + 1, sizeof(*listing->directories));
  if (!listing->directories) return cuplug__no_memory(error, doing);
  for (size_t k = 0; k < search->n_places; k++) {
    listing->directories[k] = search->places[k].directory;
    search->places[k].directory.path = NULL;
    search->places[k].directory.reason = NULL;
  }
  listing->n_directories = search->n_places;
  return CUPLUG_OK;
}

int cuplug__listing_make(cuplug__search *search, const cuplug__trust *trust, int with_files,
                         cuplug_listing **listing, cuplug_error *error) {
  builder b = {.trust = trust, .listing = calloc(1, sizeof(cuplug_listing))};
  *listing = NULL;
  if (!b.listing) return cuplug__no_memory(error, doing);
  int status = with_files ? add_all_files(&b, search, error) : CUPLUG_OK;
  if (!status) status = take_directories(b.listing, search, error);
  free(b.identities);
  if (status)
    cuplug_free_listing(b.listing);
  else
    *listing = b.listing;
  return status;
}

int cuplug_list(int with_files, cuplug_listing **listing, cuplug_error *error) {
  cuplug__trust trust;
  cuplug__search search;
  size_t n_added;
  *listing = NULL;
  cuplug__clear(error);
  int status = cuplug__trust_start(&trust, error);
  if (status) return status;
  cuplug__registry_lock();
  char *const *added = cuplug__registry_added(&n_added);
  status = cuplug__search_start(&search, added, n_added, &trust, error);
  if (!status) status = cuplug__listing_make(&search, &trust, with_files, listing, error);
  cuplug__registry_unlock();
  cuplug__search_end(&search);
  cuplug__trust_end(&trust);
  return status;
}

static void free_file(cuplug_file *file) {
  free(file->path);
  free(file->reason);
  free(file->rows);
  free(file->notes);
}

void cuplug_free_listing(cuplug_listing *listing) {
  if (!listing) return;
  for (size_t k = 0; k < listing->n_directories; k++) {
    free(listing->directories[k].path);
    free(listing->directories[k].reason);
  }
  for (size_t k = 0; k < listing->n_files; k++) free_file(&listing->files[k]);
  free(listing->directories);
  free(listing->files);
  free(listing);
}

static int inspect(const char *path, const cuplug__trust *trust, cuplug_file *file,
                   cuplug_error *error) {
  cuplug__candidate candidate;
  cuplug_error reason;
  start_file(file, strdup(path), CUPLUG_ORIGIN_LOADED);
  if (!file->path) return cuplug__no_memory(error, doing);
  int result = cuplug__candidate_read(AT_FDCWD, path, trust, &candidate, &reason);
  cuplug__registry_lock();
  int status = describe(file, &candidate, result, &reason, error);
  cuplug__registry_unlock();
  cuplug__candidate_end(&candidate);
  return status || !result ? status : cuplug__fail(error, result, "%s: %s", path, reason.message);
}

int cuplug_inspect(const char *path, cuplug_file **file, cuplug_error *error) {
  cuplug__trust trust;
  cuplug__clear(error);
  *file = NULL;
  if (!path || !*path)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE, "inspect: path: empty, a file is wanted");
  int status = cuplug__trust_start(&trust, error);
  if (status) return status;
  *file = calloc(1, sizeof(**file));
  status = *file ? inspect(path, &trust, *file, error) : cuplug__no_memory(error, doing);
  cuplug__trust_end(&trust);
  return status;
}

void cuplug_free_file(cuplug_file *file) {
  if (!file) return;
  free_file(file);
  free(file);
}

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
const char *cuplug_file_name(const cuplug_file *x) { return x->name; }
const char *cuplug_file_version(const cuplug_file *x) { return x->version; }
const char *cuplug_file_architectures(const cuplug_file *x) { return x->architectures; }
uint32_t cuplug_file_abi_version(const cuplug_file *x) { return x->abi_version; }
uint32_t cuplug_file_n_rows(const cuplug_file *x) { return x->n_rows; }

const cuplug_row *cuplug_file_row(const cuplug_file *x, uint32_t k) {
  return k < x->n_rows ? &x->rows[k] : NULL;
}
