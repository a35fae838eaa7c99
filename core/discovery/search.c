/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/search.h"

#include "base/hash.h"
#include "base/status.h"
#include "discovery/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char doing[] = "searching for plugins";

/* A rejected directory: state and reason. */
static int refuse(cuplug__search_directory *place, int state, const char *reason,
                  cuplug_error *error) {
  place->directory.state = state;
  place->directory.reason = strdup(reason);
  return place->directory.reason ? CUPLUG_OK : cuplug__no_memory(error, doing);
}

static int refuse_unopened(cuplug__search_directory *place, int code, cuplug_error *error) {
  char reason[128];
  if (code == ENOMEM) return cuplug__no_memory(error, doing);
  if (code == ENOENT) return refuse(place, CUPLUG_STATE_MISSING, "does not exist", error);
  if (code == ENOTDIR) return refuse(place, CUPLUG_STATE_REJECTED, "not a directory", error);
  snprintf(reason, sizeof(reason), "cannot be opened: %s", strerror(code));
  return refuse(place, CUPLUG_STATE_REJECTED, reason, error);
}

/* Takes ownership of the descriptor of a directory, unless the directory counts already. */
static int take_opened(const cuplug__search *search, cuplug__search_directory *place, int fd,
                       cuplug_error *error) {
  struct stat status;
  cuplug_error reason;
  if (fstat(fd, &status)) {
    int code = errno;
    close(fd);
    return refuse_unopened(place, code, error);
  }
  place->device = status.st_dev;
  place->inode = status.st_ino;
  const cuplug__search_directory *same = search->places;
  while (same < place &&
         !(same->fd >= 0 && same->device == place->device && same->inode == place->inode))
    same++;
  if (same == place) {
    place->fd = fd;
    return CUPLUG_OK;
  }
  close(fd);
  cuplug__reject(&reason, "the same directory as %s", same->directory.path);
  return refuse(place, CUPLUG_STATE_DUPLICATE, reason.message, error);
}

static int check_place(cuplug__search *search, cuplug__search_directory *place,
                       cuplug_error *error) {
  const char *path = place->directory.path;
  cuplug_error reason;
  if (*path != '/')
    return refuse(place, CUPLUG_STATE_REJECTED, "got a relative path, expected an absolute one",
                  error);
  int fd = cuplug__owner_open(&search->trust, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, &reason);
  if (fd < 0 && fd != CUPLUG__REFUSED) return refuse_unopened(place, errno, error);
  if (fd >= 0 && !cuplug__owner_check(&search->trust, fd, NULL, path, &reason))
    return take_opened(search, place, fd, error);
  if (fd >= 0) close(fd);
  return refuse(place, CUPLUG_STATE_REJECTED, reason.message, error);
}

/* Appends a path of `n` bytes. */
static int add_place(cuplug__search *search, int origin, const char *path, size_t n,
                     cuplug_error *error) {
  while (n > 1 && path[n - 1] == '/') n--;
  if (!n) return CUPLUG_OK;
  size_t bytes = (search->n_places + 1) * sizeof(*search->places);
  cuplug__search_directory *places = realloc(search->places, bytes);
  if (!places) return cuplug__no_memory(error, doing);
  search->places = places;
  cuplug__search_directory *place = &places[search->n_places];
  memset(place, 0, sizeof(*place));
  place->fd = -1;
  place->directory.origin = origin;
  place->directory.path = strndup(path, n);
  if (!place->directory.path) return cuplug__no_memory(error, doing);
  search->n_places++;
  return check_place(search, place, error);
}

/* Appends the non-empty parts of a variable's value; ':' separates. */
static int add_variable(cuplug__search *search, int origin, const char *name, cuplug_error *error) {
  const char *at = secure_getenv(name);
  while (at && *at) {
    size_t n = strcspn(at, ":");
    int status = add_place(search, origin, at, n, error);
    if (status) return status;
    at += n + (at[n] == ':');
  }
  return CUPLUG_OK;
}

/* Appends base + tail, unless the base is unset or, by the XDG rule, relative. */
static int add_joined(cuplug__search *search, int origin, const char *base, const char *tail,
                      cuplug_error *error) {
  char *path;
  if (!base || *base != '/') return CUPLUG_OK;
  int length = asprintf(&path, "%s%s", base, tail);
  if (length < 0) return cuplug__no_memory(error, doing);
  int status = add_place(search, origin, path, (size_t)length, error);
  free(path);
  return status;
}

static int add_user(cuplug__search *search, cuplug_error *error) {
  const char *data = secure_getenv("XDG_DATA_HOME"), *home = secure_getenv("HOME");
  if (data && *data == '/')
    return add_joined(search, CUPLUG_ORIGIN_USER, data, "/cuplug/plugins", error);
  return add_joined(search, CUPLUG_ORIGIN_USER, home, "/.local/share/cuplug/plugins", error);
}

int cuplug__search_start(cuplug__search *search, const cuplug__added *added, cuplug_error *error) {
  static const char *const system[] = {"/usr/local/lib/cuplug", "/usr/lib/cuplug"};
  search->places = NULL;
  search->n_places = 0;
  int status = cuplug__trust_start(&search->trust, error);
  if (status) return status;
  status = add_variable(search, CUPLUG_ORIGIN_CUPLUG_PATH, "LD_LIBRARY_CUPLUG_PATH", error);
  if (!status) status = add_variable(search, CUPLUG_ORIGIN_LIBRARY_PATH, "LD_LIBRARY_PATH", error);
  if (!status) status = add_user(search, error);
  for (size_t k = 0; k < 2 && !status; k++)
    status = add_place(search, CUPLUG_ORIGIN_SYSTEM, system[k], strlen(system[k]), error);
  for (; added && !status; added = added->next)
    status = add_place(search, CUPLUG_ORIGIN_ADDED, added->path, strlen(added->path), error);
  if (status) return status;
  return add_joined(search, CUPLUG_ORIGIN_STOCK, cuplug__install_directory(), "/cuplug", error);
}

void cuplug__search_free_places(cuplug__search_directory *places, size_t n_places) {
  for (size_t k = 0; k < n_places; k++) {
    if (places[k].fd >= 0) close(places[k].fd);
    free(places[k].directory.path);
    free(places[k].directory.reason);
  }
  free(places);
}

void cuplug__search_end(cuplug__search *search) {
  cuplug__search_free_places(search->places, search->n_places);
  cuplug__trust_end(&search->trust);
}

static int is_candidate(const char *name) {
  const size_t n = strlen(name);
  return n > strlen("lib.so") && !strncmp(name, "lib", 3) && !strcmp(name + n - 3, ".so");
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends a copy of a name; 0 or ENOMEM. */
static int add_name(char ***names, size_t *n_names, const char *name) {
  char **larger = realloc(*names, (*n_names + 1) * sizeof(*larger));
  if (!larger) return ENOMEM;
  *names = larger;
  if (!(larger[*n_names] = strdup(name))) return ENOMEM;
  return ++*n_names, 0;
}

/* Returns 0 or an error number. Not by scandirat, which musl lacks. */
static int read_names(DIR *directory, char ***names, size_t *n_names) {
  const struct dirent *entry;
  int code = 0;
  while (!code && (errno = 0, entry = readdir(directory)))
    if (is_candidate(entry->d_name)) code = add_name(names, n_names, entry->d_name);
  return code ? code : errno;
}

int cuplug__search_names(const cuplug__search_directory *place, char ***names, size_t *n_names,
                         cuplug_error *error) {
  const int fd = openat(place->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *directory = fd < 0 ? NULL : fdopendir(fd);
  *names = NULL, *n_names = 0;
  int code = directory ? read_names(directory, names, n_names) : errno;
  (void)(directory ? closedir(directory) : fd < 0 ? 0 : close(fd));
  if (*n_names) qsort(*names, *n_names, sizeof(**names), compare_names);
  if (!code) return CUPLUG_OK;
  cuplug__search_free_names(*names, *n_names);
  if (code == ENOMEM) return cuplug__no_memory(error, doing);
  return cuplug__reject(error, "cannot be read: %s", strerror(code));
}

void cuplug__search_free_names(char **names, size_t n_names) {
  for (size_t k = 0; k < n_names; k++) free(names[k]);
  free(names);
}

char *cuplug__join(const char *directory, const char *name) {
  char *path;
  const char *base = strcmp(directory, "/") ? directory : "";
  return asprintf(&path, "%s/%s", base, name) < 0 ? NULL : path;
}

/* 1 if a variable of the environment, NAME=value, is read by a search. */
static int counts(const char *variable) {
  static const char *const names[] = {"LD_LIBRARY_", "XDG_DATA_HOME=", "HOME=", "CUPLUG_ALLOW_",
                                      "CUPLUG_TRUSTED_OWNERS="};
  for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
    if (*variable == *names[k] && !strncmp(variable, names[k], strlen(names[k]))) return 1;
  return 0;
}

/* Reads all variables once: getenv would search them for each name. */
uint64_t cuplug__search_fingerprint(void) {
  uint64_t sum = 0; /* in any order */
  for (char **variable = environ; variable && *variable; variable++)
    if (counts(*variable)) sum += cuplug__hash_text(*variable);
  return sum;
}
