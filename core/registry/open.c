/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/open.h"

#include "base/library.h"
#include "base/status.h"
#include "discovery/candidate.h"
#include "discovery/dynamic.h"
#include "discovery/note.h"
#include "discovery/trust.h"
#include "registry/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define MAX_COPIED_BYTES (256ll << 20) /* memory that no other process shares */

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3: mapped code needs no right to be executed as a program */
#define MFD_NOEXEC_SEAL 8u
#endif

static const char doing[] = "loading a plugin";

static _Atomic uint32_t n_named;

/* A name of a file that was not used before, to be freed: the dynamic linker takes a name that it
 * knows for the library that it has. Between folder and file stand the bits of a number: 0 is "/",
 * 1 is "/./". */
static char *respell(const char *path, uint32_t number) {
  char *spelled = malloc(strlen(path) + 3 * 32 + 1);
  if (!spelled) return NULL;
  const char *file = strrchr(path, '/');
  size_t at = (size_t)(file - path);
  memcpy(spelled, path, at);
  for (; number; number >>= 1) at += (size_t)sprintf(spelled + at, number & 1 ? "/./" : "/");
  strcpy(spelled + at, file);
  return spelled;
}

/* ---- A copy in memory ------------------------------------------------------------------------ */

static int create(const char *name) {
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

static int fill(int copy, int fd, off_t bytes) {
  for (off_t at = 0; at < bytes;) {
    const ssize_t n = sendfile(copy, fd, &at, (size_t)(bytes - at));
    if (!n || (n < 0 && errno != EINTR)) return 0;
  }
  return !fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
}

/* A copy that nobody can write any more; -1 where there can be none. */
static int copy_file(const char *path, int fd, off_t bytes) {
  const int copy = create(strrchr(path, '/') + 1);
  if (copy < 0 || fill(copy, fd, bytes)) return copy;
  close(copy);
  return -1;
}

/* ---- What is loaded -------------------------------------------------------------------------- */

/* The dynamic linker finds what lies beside a library by the folder that it loads it from. */
static int is_copied(const cuplug__trust *trust, int fd, off_t bytes) {
  if (trust->has_list) return 1;
  return !trust->in_place && bytes <= MAX_COPIED_BYTES && !cuplug__dynamic_has_origin(fd);
}

/* The real path was checked: nobody else can put another file there. */
static int name_file(const cuplug__plugin *plugin, cuplug__source *source, cuplug_error *error) {
  char *real = realpath(plugin->path, NULL);
  if (!real && errno != ENOMEM)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "%s: removed since its table was read",
                        plugin->path);
  cuplug__registry_lock();
  const int is_first = !cuplug__registry_loaded_from(plugin->path);
  cuplug__registry_unlock();
  source->name = real && !is_first ? respell(real, ++n_named) : real;
  if (source->name != real) free(real);
  return source->name ? CUPLUG_OK : cuplug__no_memory(error, doing);
}

static int name_copy(cuplug__source *source, cuplug_error *error) {
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", source->fd);
  source->name = respell(link, ++n_named);
  return source->name ? CUPLUG_OK : cuplug__no_memory(error, doing);
}

static int choose_source(const cuplug__plugin *plugin, const cuplug__trust *trust, int fd,
                         cuplug__source *source, cuplug_error *error) {
  const off_t bytes = plugin->identity.bytes;
  if (is_copied(trust, fd, bytes)) source->fd = copy_file(plugin->path, fd, bytes);
  if (source->fd < 0 && !trust->has_list) return name_file(plugin, source, error);
  if (source->fd < 0)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                        "%s: cannot be copied to memory, which CUPLUG_ALLOW_LIST wants: %s",
                        plugin->path, strerror(errno));
  int status = cuplug__check_listed(source->fd, trust, error);
  if (status && status != CUPLUG_ERROR_MEMORY) cuplug__prefix(error, "%s: ", plugin->path);
  return status ? status : name_copy(source, error);
}

static int fail_replaced(const cuplug__plugin *plugin, cuplug_error *error) {
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      "%s: replaced on disk since its table was read: find the operator again",
                      plugin->path);
}

/* Opens the file, which must be the one whose table was read. */
static int open_unchanged(const cuplug__plugin *plugin, const cuplug__trust *trust, int *fd,
                          cuplug_error *error) {
  cuplug__identity now;
  int status = cuplug__open_file(plugin->path, trust, fd, &now, error);
  if (status == CUPLUG_ERROR_NOT_FOUND)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "%s: removed since its table was read",
                        plugin->path);
  if (status && status != CUPLUG_ERROR_MEMORY) cuplug__prefix(error, "%s: ", plugin->path);
  if (status || cuplug__identity_equal(&now, &plugin->identity)) return status;
  return fail_replaced(plugin, error);
}

static int find_source(const cuplug__plugin *plugin, cuplug__source *source, cuplug_error *error) {
  cuplug__trust trust;
  cuplug__identity after;
  int fd = -1;
  int status = cuplug__trust_start(&trust, error);
  if (status) return status;
  status = open_unchanged(plugin, &trust, &fd, error);
  if (!status) status = choose_source(plugin, &trust, fd, source, error);
  if (!status &&
      !(cuplug__identity_of_open(fd, &after) && cuplug__identity_equal(&after, &plugin->identity)))
    status = fail_replaced(plugin, error);
  if (fd >= 0) close(fd);
  cuplug__trust_end(&trust);
  return status;
}

static void drop_source(cuplug__source *source) {
  if (source->fd >= 0) close(source->fd);
  free(source->name);
  *source = (cuplug__source){.fd = -1};
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* Says what all threads load: what the first of them found. The library, where it is there. */
static void *join(cuplug__plugin *plugin, cuplug__source *own) {
  cuplug__registry_lock();
  void *library = plugin->library;
  if (!library && !plugin->source.name) {
    plugin->source = *own;
    *own = (cuplug__source){.fd = -1};
  }
  plugin->source.n_users += !library;
  cuplug__registry_unlock();
  drop_source(own);
  return library;
}

static void leave(cuplug__plugin *plugin, void *library) {
  cuplug__registry_lock();
  if (library && !plugin->library) {
    plugin->is_in_place = plugin->source.fd < 0;
    plugin->library = library;
  }
  if (!--plugin->source.n_users) drop_source(&plugin->source);
  cuplug__registry_unlock();
}

/* Loads the library; messages of the dynamic linker may begin with the name that it was given. */
static int load(const cuplug__plugin *plugin, void **library, cuplug_error *error) {
  const char *name = plugin->source.name;
  const size_t n = strlen(name);
  cuplug_error reason;
  *library = cuplug__library_open(name, &reason);
  if (!*library && !strncmp(reason.message, name, n))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "%s%s", plugin->path, reason.message + n);
  if (!*library)
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "%s: cannot be loaded: %s", plugin->path,
                        reason.message);
  if (cuplug__notes_in_memory(&plugin->table.notes, *library)) return CUPLUG_OK;
  *library = NULL;
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      "%s: the table in memory is not that of the file: other code was loaded from "
                      "this path before, or the file was changed meanwhile",
                      plugin->path);
}

int cuplug__open_code(cuplug__plugin *plugin, void **library, cuplug_error *error) {
  cuplug__source own = {.fd = -1};
  cuplug__registry_lock();
  *library = plugin->library;
  cuplug__registry_unlock();
  if (*library) return CUPLUG_OK;
  int status = find_source(plugin, &own, error);
  if (status) {
    drop_source(&own);
    return status;
  }
  *library = join(plugin, &own);
  if (*library) return CUPLUG_OK;
  status = load(plugin, library, error);
  leave(plugin, *library);
  return status;
}
