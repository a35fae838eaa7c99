/* SPDX-License-Identifier: Apache-2.0 */
/* The code of plugins: opened from a copy in memory, because overwriting the file of a loaded
 * library crashes the process, and so that the checked code is the code that runs. */
#include "registry/load.h"

#include "base/library.h"
#include "base/status.h"
#include "discovery/candidate.h"
#include "discovery/elf.h"
#include "discovery/note.h"
#include "discovery/trust.h"
#include "registry/private.h"
#include "registry/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#define MAX_COPIED_BYTES (256ll << 20) /* memory that no other process shares */

static const char doing[] = "loading a plugin";

/* ---- Copies in memory ------------------------------------------------------------------------ */

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3: mapped code needs no right to be executed as a program */
#define MFD_NOEXEC_SEAL 8u
#endif

/* 1 if copies have names that the dynamic linker can open. */
static int copy_is_possible(void) { return !access("/proc/self/fd", X_OK); }

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

/* Copies the first bytes of an open file to memory that can no longer be written; `name` is shown
 * in /proc/self/maps. Returns a descriptor, or -1 with errno. */
static int copy_to_memory(const char *name, int fd, off_t bytes) {
  const int copy = create(name);
  if (copy < 0 || fill(copy, fd, bytes)) return copy;
  close(copy);
  return -1;
}

/* Returns another spelling of an absolute path, to be freed, that the dynamic linker has not seen
 * before: for a known name, it returns the library that it has. NULL without memory. The separators
 * between folder and file are the bits of a number: 0 is "/", 1 is "/./". */
static char *respell(const char *path) {
  static _Atomic uint32_t n_named;
  uint32_t number = ++n_named;
  char *spelled = malloc(strlen(path) + 3 * 32 + 1);
  if (!spelled) return NULL;
  const char *file = strrchr(path, '/');
  size_t at = (size_t)(file - path);
  memcpy(spelled, path, at);
  for (; number; number >>= 1) at += (size_t)sprintf(spelled + at, number & 1 ? "/./" : "/");
  strcpy(spelled + at, file);
  return spelled;
}

/* Returns a path of a copy, as respell does, that leads to it in this process and in debuggers
 * while the descriptor is open. It contains the number of the process, which may differ in the
 * mounted /proc: debuggers open the path in a process of their own, where /proc/self would lead to
 * a pipe that they wait for. */
static char *copy_path(int copy) {
  char process[24], path[64];
  const ssize_t n = readlink("/proc/self", process, sizeof process - 1);
  process[n > 0 ? n : 0] = 0;
  snprintf(path, sizeof path, "/proc/%s/fd/%d", n > 0 ? process : "self", copy);
  return respell(path);
}

/* ---- Loaded files ---------------------------------------------------------------------------- */

/* The dynamic linker finds libraries next to a library by the folder that it loads it from. */
static int is_copied(const cuplug__trust *trust, int fd, off_t bytes) {
  if (trust->has_list) return 1;
  return !trust->in_place && bytes <= MAX_COPIED_BYTES &&
         !(cuplug__elf_places(fd) & CUPLUG__HAS_ORIGIN) && copy_is_possible();
}

/* The name by which the file itself is loaded, and debuggers identify a copy. The real path was
 * checked: no other user can put another file there. */
static int name_file(const cuplug__plugin *plugin, char **name, cuplug_error *error) {
  char *real = realpath(plugin->path, NULL);
  if (!real && errno != ENOMEM)
    return cuplug__reject(error, "%s: removed since its table was read", plugin->path);
  const int is_first = !cuplug__registry_loaded_from(plugin->path);
  *name = real && !is_first ? respell(real) : real;
  if (*name != real) free(real);
  return *name ? CUPLUG_OK : cuplug__no_memory(error, doing);
}

static int choose_source(const cuplug__plugin *plugin, const cuplug__trust *trust, int fd,
                         cuplug__source *source, cuplug_error *error) {
  const off_t bytes = plugin->identity.bytes;
  if (is_copied(trust, fd, bytes))
    source->fd = copy_to_memory(strrchr(plugin->path, '/') + 1, fd, bytes);
  if (source->fd < 0 && !trust->has_list) return name_file(plugin, &source->name, error);
  if (source->fd < 0)
    return cuplug__reject(error,
                          "%s: cannot be copied to memory, as CUPLUG_ALLOW_LIST requires: %s",
                          plugin->path, strerror(errno));
  int status = cuplug__check_listed(source->fd, trust, error);
  if (status && status != CUPLUG_ERROR_MEMORY) cuplug__prefix(error, "%s: ", plugin->path);
  if (status) return status;
  source->process = getpid();
  source->name = copy_path(source->fd);
  return source->name ? name_file(plugin, &source->shown, error) : cuplug__no_memory(error, doing);
}

static int fail_replaced(const cuplug__plugin *plugin, cuplug_error *error) {
  return cuplug__reject(error,
                        "%s: replaced on disk since its table was read: find the operator again",
                        plugin->path);
}

/* Opens the file, which must be the one whose table was read. */
static int open_unchanged(const cuplug__plugin *plugin, cuplug__trust *trust, int *fd,
                          cuplug_error *error) {
  cuplug__identity now;
  int status = cuplug__open_file(plugin->path, trust, fd, &now, error);
  if (status == CUPLUG_ERROR_NOT_FOUND)
    return cuplug__reject(error, "%s: removed since its table was read", plugin->path);
  if (status && status != CUPLUG_ERROR_MEMORY) cuplug__prefix(error, "%s: ", plugin->path);
  if (status || cuplug__identity_equal(&now, &plugin->identity)) return status;
  return fail_replaced(plugin, error);
}

static int find_source(cuplug__plugin *plugin, cuplug__source *source, cuplug_error *error) {
  cuplug__trust trust;
  cuplug__identity after;
  int fd = -1;
  int status = cuplug__trust_start(&trust, error);
  if (status) return status;
  status = open_unchanged(plugin, &trust, &fd, error);
  if (!status) status = choose_source(plugin, &trust, fd, source, error);
  if (!status &&
      !(cuplug__identity_of(fd, "", &after) && cuplug__identity_equal(&after, &plugin->identity)))
    status = fail_replaced(plugin, error);
  if (!status)
    status =
        cuplug__claim_privates(plugin, fd, source->shown ? source->shown : source->name, error);
  if (fd >= 0) close(fd);
  cuplug__trust_end(&trust);
  return status;
}

static void drop_source(cuplug__source *source) {
  if (source->fd >= 0) close(source->fd);
  free(source->name);
  free(source->shown);
  *source = (cuplug__source){.fd = -1};
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* Returns the library that all threads load: the result of the first, except for a thread of the
 * process that this one was forked from. NULL if it is absent. */
static void *join(cuplug__plugin *plugin, cuplug__source *own) {
  cuplug__registry_lock();
  void *library = plugin->library;
  if (plugin->source.fd >= 0 && plugin->source.process != getpid()) drop_source(&plugin->source);
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
    if (plugin->source.shown) cuplug__library_rename(library, plugin->source.shown);
    plugin->source.shown = NULL;
    plugin->library = library;
  }
  if (!--plugin->source.n_users) drop_source(&plugin->source);
  cuplug__registry_unlock();
}

/* In a message of the dynamic linker, the plugin's path replaces the name that was passed to it. */
static int fail_linker(const cuplug__plugin *plugin, const char *message, cuplug_error *error) {
  const char *name = plugin->source.name, *at = strstr(message, name);
  if (!at) return cuplug__reject(error, "%s: cannot be loaded: %s", plugin->path, message);
  const char *rest = at + strlen(name), *path = plugin->path;
  if (at == message) return cuplug__reject(error, "%s%s", path, rest);
  return cuplug__reject(error, "%s: cannot be loaded: %.*s%s%s", path, (int)(at - message), message,
                        path, rest);
}

static int load(const cuplug__plugin *plugin, void **library, cuplug_error *error) {
  cuplug_error reason;
  *library = cuplug__library_open(plugin->source.name, &reason);
  if (!*library) return fail_linker(plugin, reason.message, error);
  if (cuplug__notes_in_memory(&plugin->table.notes, *library)) return CUPLUG_OK;
  *library = NULL;
  return cuplug__reject(error,
                        "%s: the table in memory differs from the table of the file: other code "
                        "was loaded from this path before, or the file was changed meanwhile",
                        plugin->path);
}

/* Opens the library, which must have the table that was read from the file. All threads get the
 * same library. The caller does not hold the registry's lock. */
static int open_code(cuplug__plugin *plugin, void **library, cuplug_error *error) {
  cuplug__source own = {.fd = -1};
  *library = plugin->library;
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
  if (status) cuplug__unclaim_privates(plugin);
  return status;
}

/* ---- Entries --------------------------------------------------------------------------------- */

/* Sets *function, a pointer of any type, to an exported function; `what` describes it in messages.
 */
static int resolve(const cuplug__plugin *plugin, void *library, const char *what,
                   const char *symbol, void *function, cuplug_error *error) {
  memset(function, 0, sizeof(void *));
  if (!*symbol) return CUPLUG_OK;
  void *address = cuplug__library_symbol(library, symbol);
  if (!address)
    return cuplug__reject(error, "%s: does not export %s, %s that its table names", plugin->path,
                          symbol, what);
  if (cuplug__library_holds(library, address, 1, CUPLUG__CODE)) {
    memcpy(function, &address, sizeof(address));
    return CUPLUG_OK;
  }
  if (cuplug__library_holds(library, address, 1, CUPLUG__DATA))
    return cuplug__reject(error, "%s: %s is not a function, expected %s", plugin->path, symbol,
                          what);
  return cuplug__reject(
      error, "%s: %s, %s that its table names, was found only in %s, expected it in this file",
      plugin->path, symbol, what, cuplug__library_of(address));
}

/* The entries of one overload. */
typedef struct entries {
  cuplug_entry *host, *cuda;
  cuplug__create_state *create;
  cuplug__close_handle *close;
} entries;

static int resolve_all(const cuplug_operator *op, void *library, entries *found,
                       cuplug_error *error) {
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < op->n_overloads && !status; k++) {
    const cuplug_overload *row = op->overloads[k].row;
    const cuplug__states *states = op->overloads[k].states;
    status = resolve(op->plugin, library, "an entry", row->host_entry, &found[k].host, error);
    if (!status)
      status = resolve(op->plugin, library, "an entry", row->cuda_entry, &found[k].cuda, error);
    if (!status && states)
      status = resolve(op->plugin, library, "a function", states->symbol, &found[k].create, error);
    if (!status)
      status = resolve(op->plugin, library, "a function", row->close, &found[k].close, error);
  }
  return status;
}

/* The first of several threads writes them, as calls read them without a lock. */
static void take_entries(cuplug_operator *op, const entries *found, int keeps_rounding) {
  cuplug__registry_lock();
  for (uint32_t k = 0; k < op->n_overloads && !op->loaded; k++) {
    op->overloads[k].host = found[k].host;
    op->overloads[k].cuda = found[k].cuda;
    op->overloads[k].close = found[k].close;
    op->overloads[k].keeps_rounding = (uint32_t)keeps_rounding;
    cuplug__states *states = op->overloads[k].states;
    if (states && !states->create) states->create = found[k].create;
  }
  atomic_store_explicit(&op->loaded, 1, memory_order_release);
  cuplug__registry_unlock();
}

/* Stock plugins contain the CUDA runtime, which opens libraries, and are tested. */
static int keeps_rounding(const cuplug__plugin *plugin, void *library) {
  return cuplug__is_stock(plugin->path) || cuplug__library_keeps_rounding(library);
}

static int load_operator(cuplug_operator *op, cuplug_error *error) {
  void *library;
  int status = open_code((cuplug__plugin *)op->plugin, &library, error);
  entries *found = status ? NULL : calloc(op->n_overloads, sizeof *found);
  if (!status)
    status = found ? resolve_all(op, library, found, error) : cuplug__no_memory(error, doing);
  if (!status) take_entries(op, found, keeps_rounding(op->plugin, library));
  free(found);
  if (status) cuplug__prefix(error, "%s: ", op->name);
  return status;
}

int cuplug__load_plugin(cuplug__plugin *plugin, cuplug_error *error) {
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < plugin->n_operators && !status; k++)
    status = load_operator(&plugin->operators[k], error);
  return status;
}

int cuplug_load_code(cuplug_operator *op, cuplug_error *error) {
  cuplug__clear(error);
  if (atomic_load_explicit(&op->loaded, memory_order_acquire)) return CUPLUG_OK;
  return load_operator(op, error);
}

void *cuplug__any_kernel(const cuplug_operator *op) {
  void *library = op->plugin->library;
  void *address = library ? cuplug__library_symbol(library, "cuplug_any_kernel") : NULL;
  void *(*any_kernel)(void);
  if (!address || !cuplug__library_holds(library, address, 1, CUPLUG__CODE)) return NULL;
  memcpy(&any_kernel, &address, sizeof any_kernel);
  return any_kernel();
}
