/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/listing.h"

#include "base/hash.h"
#include "base/status.h"
#include "registry/registry.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SHORT_TEXT 64

static const char doing[] = "listing plugins";

#define N_PLACES 1024

enum { BY_NAME, BY_IDENTITY };

/* A listing that grows. */
typedef struct builder {
  cuplug_listing *listing;
  cuplug__trust *trust;
  size_t room;
  uint32_t last[2][N_PLACES]; /* the files that count, by the hash of a key: as their `next` */
} builder;

int cuplug__file_counts(const cuplug_file *file) {
  return file->state == CUPLUG_STATE_OK ||
         (file->state == CUPLUG_STATE_CHANGED && file->table.n_rows);
}

int cuplug__file_has(const cuplug_file *file, const char *op) {
  char own[64] = "";
  for (uint32_t k = 0; k < file->table.n_rows && strcmp(own, op); k++)
    cuplug__overload_operator(&file->table.rows[k], own);
  return *own && !strcmp(own, op);
}

/* The plugin is unknown. */
static void start_file(cuplug_file *file, char *path, int origin) {
  *file = (cuplug_file){.path = path, .origin = origin};
  cuplug__table_start(&file->table);
}

static void end_file(cuplug_file *file) {
  free(file->path);
  free(file->reason);
  if (!file->is_borrowed) cuplug__table_end(&file->table);
}

static int new_file(builder *b, char *path, int origin, cuplug_file **file, cuplug_error *error) {
  cuplug_listing *listing = b->listing;
  if (!path) return cuplug__no_memory(error, doing);
  if (listing->n_files == b->room) {
    size_t room = b->room ? 2 * b->room : 64;
    cuplug_file *files = realloc(listing->files, room * sizeof(*files));
    if (!files) {
      free(path);
      return cuplug__no_memory(error, doing);
    }
    listing->files = files;
    b->room = room;
  }
  *file = &listing->files[listing->n_files++];
  start_file(*file, path, origin);
  return CUPLUG_OK;
}

static int give_reason(cuplug_file *file, int state, const char *reason, cuplug_error *error) {
  file->state = state;
  file->reason = strdup(reason);
  return file->reason ? CUPLUG_OK : cuplug__no_memory(error, doing);
}

/* For a file that is not a plugin, or a faulty one, short texts are stored: notes may be long, and
 * a folder may have very many files. */
static int shorten(cuplug__table *table) {
  const char **texts[] = {&table->name, &table->version, &table->architectures};
  char *kept = malloc(sizeof texts / sizeof *texts * MAX_SHORT_TEXT), *at = kept;
  if (!kept) return 0;
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++, at += MAX_SHORT_TEXT) {
    const size_t n = strnlen(*texts[k], MAX_SHORT_TEXT);
    memcpy(at, n < MAX_SHORT_TEXT ? *texts[k] : "", n < MAX_SHORT_TEXT ? n + 1 : 1);
    *texts[k] = at;
  }
  cuplug__table_end(table);
  table->made = kept;
  return 1;
}

/* Shows the code that the process continues to use. */
static int fill_changed(cuplug_file *file, const cuplug__plugin *plugin, cuplug_error *error) {
  file->table = plugin->table;
  file->is_borrowed = file->loaded = 1;
  return give_reason(file, CUPLUG_STATE_CHANGED,
                     "replaced or removed on disk since its code was loaded: the process uses the "
                     "old code until it is restarted",
                     error);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static size_t place_of(int key, const cuplug_file *file) {
  return (key == BY_NAME ? cuplug__hash_text(file->table.name)
                         : cuplug__identity_hash(&file->identity)) %
         N_PLACES;
}

static int is_same_file(const cuplug__identity *a, const cuplug__identity *b) {
  return a->inode == b->inode && a->device == b->device;
}

/* The first file that counts and is the same file, or has the same plugin's name; NULL: none. */
static const cuplug_file *same(const builder *b, int key, const cuplug_file *file) {
  const cuplug_file *files = b->listing->files, *found = NULL;
  for (uint32_t k = b->last[key][place_of(key, file)]; k; k = files[k - 1].next[key])
    if (key == BY_NAME ? !strcmp(files[k - 1].table.name, file->table.name)
                       : is_same_file(&files[k - 1].identity, &file->identity))
      found = &files[k - 1];
  return found;
}

/* Later ones are compared with a file that counts. */
static void count_file(builder *b, cuplug_file *file) {
  for (int key = 0; cuplug__file_counts(file) && key < 2; key++) {
    uint32_t *last = &b->last[key][place_of(key, file)];
    file->next[key] = *last;
    *last = (uint32_t)(file - b->listing->files) + 1;
  }
}

/* Checks that a file in a searched directory has the name of its plugin. */
static int check_name(int directory, const cuplug_file *file, cuplug_error *error) {
  char wanted[sizeof("lib.so") + CUPLUG_MAX_NAME];
  struct stat status;
  if (directory == AT_FDCWD) return CUPLUG_OK;
  snprintf(wanted, sizeof(wanted), "lib%s.so", file->table.name);
  if (!strcmp(strrchr(file->path, '/') + 1, wanted)) return CUPLUG_OK;
  return cuplug__reject(
      error, "it holds the plugin \"%s\", so its file must be called %s%s", file->table.name,
      wanted,
      fstatat(directory, wanted, &status, 0) ? "" : ", which is also in the same directory");
}

/* Decides between OK, DUPLICATE, SHADOWED, a wrong name and one that is not on the allow-list. */
static int judge(builder *b, cuplug_file *file, int directory, const cuplug__candidate *candidate,
                 cuplug_error *error) {
  cuplug_error reason;
  const cuplug_file *earlier = same(b, BY_IDENTITY, file);
  if (earlier) {
    cuplug__reject(&reason, "the same file as %s", earlier->path);
    return give_reason(file, CUPLUG_STATE_DUPLICATE, reason.message, error);
  }
  int status = check_name(directory, file, &reason);
  if (!status) status = cuplug__check_listed(candidate->fd, b->trust, &reason);
  if (status) return give_reason(file, CUPLUG_STATE_REJECTED, reason.message, error);
  earlier = same(b, BY_NAME, file);
  if (!earlier) return CUPLUG_OK;
  cuplug__reject(&reason, "shadowed by %s", earlier->path);
  return give_reason(file, CUPLUG_STATE_SHADOWED, reason.message, error);
}

/* Stores the contents of a file, and the reason if they are incomplete. */
static int describe(cuplug_file *file, cuplug__candidate *candidate, int result,
                    const cuplug_error *reason, cuplug_error *error) {
  cuplug__table *table = &file->table;
  if (result == CUPLUG_ERROR_MEMORY) return cuplug__no_memory(error, doing);
  cuplug__table_drop_signatures(&candidate->table); /* not used in listings */
  *table = candidate->table;
  cuplug__table_start(&candidate->table);
  int state = CUPLUG_STATE_REJECTED;
  if (table->notes.is_sound && !table->notes.n_notes) state = CUPLUG_STATE_NO_PLUGIN;
  if (result == CUPLUG_ERROR_NOT_FOUND) state = CUPLUG_STATE_MISSING;
  if (!result) return CUPLUG_OK;
  if (!table->n_rows && table->notes.bytes && !shorten(table))
    return cuplug__no_memory(error, doing);
  return give_reason(file, state, reason->message, error);
}

/* Lists a file of an open directory. Libraries of LD_LIBRARY_PATH without a symbol table are
 * skipped. */
static int add_file(builder *b, int directory, char *path, int origin, cuplug_error *error) {
  cuplug_file *file = NULL;
  cuplug__candidate candidate;
  cuplug_error reason;
  int status = new_file(b, path, origin, &file, error);
  if (status) return status;
  const cuplug__plugin *loaded = cuplug__registry_loaded_from(path);
  int result = cuplug__candidate_read(directory, path, b->trust, &candidate, &reason);
  file->identity = candidate.identity;
  if (loaded && !cuplug__identity_equal(&loaded->identity, &candidate.identity)) {
    status = fill_changed(file, loaded, error);
  } else if (!candidate.table.notes.n_notes && origin == CUPLUG_ORIGIN_LIBRARY_PATH &&
             result != CUPLUG_ERROR_MEMORY) {
    end_file(file);
    b->listing->n_files--;
    file = NULL;
  } else {
    status = describe(file, &candidate, result, &reason, error);
    file->loaded = cuplug__registry_is_loaded(&candidate.identity);
    if (!status && !result) status = judge(b, file, directory, &candidate, error);
  }
  if (!status && file) count_file(b, file);
  cuplug__candidate_end(&candidate);
  return status;
}

static int add_directory_files(builder *b, cuplug__search_directory *place, cuplug_error *error) {
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
  for (size_t k = 0; k < n_names && !status; k++)
    status =
        add_file(b, place->fd, cuplug__join(directory->path, names[k]), directory->origin, error);
  cuplug__search_free_names(names, n_names);
  return status;
}

static int add_all_files(builder *b, cuplug__search *search, cuplug_error *error) {
  int status = CUPLUG_OK;
  cuplug__plugin **ranked = cuplug__registry_ranked();
  if (!ranked) return cuplug__no_memory(error, doing);
  for (cuplug__plugin **p = ranked; *p && !status; p++)
    status = add_file(b, AT_FDCWD, strdup((*p)->path), CUPLUG_ORIGIN_LOADED, error);
  free(ranked);
  for (size_t k = 0; k < search->n_places && !status; k++)
    if (search->places[k].fd >= 0) status = add_directory_files(b, &search->places[k], error);
  return status;
}

/* They are no longer open. */
static void take_directories(cuplug_listing *listing, cuplug__search *search) {
  listing->places = search->places;
  listing->n_places = search->n_places;
  search->places = NULL;
  search->n_places = 0;
  for (size_t k = 0; k < listing->n_places; k++) {
    if (listing->places[k].fd >= 0) close(listing->places[k].fd);
    listing->places[k].fd = -1;
  }
}

int cuplug__listing_make(cuplug__search *search, int with_files, cuplug_listing **listing,
                         cuplug_error *error) {
  builder b = {.trust = &search->trust, .listing = calloc(1, sizeof(cuplug_listing))};
  *listing = NULL;
  if (!b.listing) return cuplug__no_memory(error, doing);
  int status = with_files ? add_all_files(&b, search, error) : CUPLUG_OK;
  take_directories(b.listing, search);
  if (status)
    cuplug_free_listing(b.listing);
  else
    *listing = b.listing;
  return status;
}

int cuplug_list(int with_files, cuplug_listing **listing, cuplug_error *error) {
  cuplug__search search;
  *listing = NULL;
  cuplug__clear(error);
  int status = cuplug__search_start(&search, cuplug__registry_added(), error);
  if (!status) status = cuplug__listing_make(&search, with_files, listing, error);
  cuplug__search_end(&search);
  return status;
}

void cuplug_free_listing(cuplug_listing *listing) {
  if (!listing) return;
  cuplug__search_free_places(listing->places, listing->n_places);
  for (size_t k = 0; k < listing->n_files; k++) end_file(&listing->files[k]);
  free(listing->files);
  free(listing);
}

static int inspect(const char *path, cuplug__trust *trust, cuplug_file *file, cuplug_error *error) {
  cuplug__candidate candidate;
  cuplug_error reason;
  start_file(file, strdup(path), CUPLUG_ORIGIN_LOADED);
  if (!file->path) return cuplug__no_memory(error, doing);
  int result = cuplug__candidate_read(AT_FDCWD, path, trust, &candidate, &reason);
  if (!result) result = cuplug__check_listed(candidate.fd, trust, &reason);
  int status = describe(file, &candidate, result, &reason, error);
  file->loaded = cuplug__registry_is_loaded(&candidate.identity);
  cuplug__candidate_end(&candidate);
  return status || !result ? status : cuplug__fail(error, result, "%s: %s", path, reason.message);
}

int cuplug_inspect(const char *path, cuplug_file **file, cuplug_error *error) {
  cuplug__trust trust;
  cuplug__clear(error);
  *file = NULL;
  if (!path || !*path)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "inspect: path: got an empty string, expected a file");
  int status = cuplug__trust_start(&trust, error);
  if (status) return status;
  *file = calloc(1, sizeof(**file));
  status = *file ? inspect(path, &trust, *file, error) : cuplug__no_memory(error, doing);
  cuplug__trust_end(&trust);
  return status;
}

void cuplug_free_file(cuplug_file *file) {
  if (!file) return;
  end_file(file);
  free(file);
}

/* ---- Queries of a listing, its directories and its files ----------------------------------- */

size_t cuplug_listing_n_directories(const cuplug_listing *x) { return x->n_places; }

const cuplug_directory *cuplug_listing_directory(const cuplug_listing *x, size_t k) {
  return k < x->n_places ? &x->places[k].directory : NULL;
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
uint32_t cuplug_file_n_overloads(const cuplug_file *x) { return x->table.n_rows; }

const cuplug_overload *cuplug_file_overload(const cuplug_file *x, uint32_t k) {
  return k < x->table.n_rows ? &x->table.rows[k] : NULL;
}
