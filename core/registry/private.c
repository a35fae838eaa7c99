/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/private.h"

#include "base/hash.h"
#include "base/status.h"
#include "discovery/elf.h"
#include "discovery/trust.h"
#include "registry/registry.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILES 256 /* of a plugin; links among them may form cycles */
#define MAX_TEXTS 128

static const char doing[] = "reading the libraries of a plugin";

/* A file's own name and the names of its dependencies; texts that do not fit are skipped. */
typedef struct needs {
  char *needed[MAX_TEXTS];
  size_t n_needed;
  char *soname, *rpath, *runpath;
} needs;

static void replace(char **kept, const char *text) {
  free(*kept);
  *kept = strdup(text);
}

static void take_text(Elf64_Sxword tag, const char *text, void *data) {
  needs *n = data;
  if (!text) return;
  if (tag == DT_SONAME) replace(&n->soname, text);
  if (tag == DT_RPATH) replace(&n->rpath, text);
  if (tag == DT_RUNPATH) replace(&n->runpath, text);
  if (tag != DT_NEEDED || strchr(text, '/') || n->n_needed == MAX_TEXTS) return;
  if ((n->needed[n->n_needed] = strdup(text))) n->n_needed++;
}

static void end_needs(needs *n) {
  for (size_t k = 0; k < n->n_needed; k++) free(n->needed[k]);
  free(n->soname);
  free(n->rpath);
  free(n->runpath);
}

/* The target of one directory of a list, with the folder of the file for $ORIGIN. 0: no room. */
static int expand(const char *part, size_t n, const char *origin, size_t n_origin, char to[4096]) {
  static const char *const names[] = {"$ORIGIN", "${ORIGIN}"};
  size_t at = 0;
  for (size_t k = 0; k < n;) {
    size_t skipped = 0;
    for (int i = 0; i < 2 && !skipped; i++)
      if (n - k >= strlen(names[i]) && !strncmp(part + k, names[i], strlen(names[i])))
        skipped = strlen(names[i]);
    const char *from = skipped ? origin : part + k;
    const size_t length = skipped ? n_origin : 1;
    if (at + length >= 4096) return 0;
    memcpy(to + at, from, length);
    at += length;
    k += skipped ? skipped : 1;
  }
  to[at] = 0;
  return at > 0;
}

/* The file of that name in a directory of a list: an absolute path, to be freed. */
static char *find_in(const char *list, const char *of, const char *name) {
  const size_t n_origin = (size_t)(strrchr(of, '/') - of);
  for (const char *at = list; at && *at; at += *at == ':') {
    const size_t n = strcspn(at, ":");
    char directory[4096], *path;
    struct stat status;
    const int is_fine = expand(at, n, of, n_origin, directory) && *directory == '/';
    at += n;
    if (!is_fine || asprintf(&path, "%s/%s", directory, name) < 0) continue;
    if (!stat(path, &status) && S_ISREG(status.st_mode)) return path;
    free(path);
  }
  return NULL;
}

/* Like the dynamic linker: RPATH counts only without RUNPATH, and RUNPATH after the variable. */
static char *find_private(const needs *n, const char *of, const char *name) {
  if (!n->runpath) return find_in(n->rpath, of, name);
  char *shared = find_in(secure_getenv("LD_LIBRARY_PATH"), of, name);
  if (!shared) return find_in(n->runpath, of, name);
  free(shared);
  return NULL;
}

static int is_known(const cuplug__privates *found, const char *path) {
  for (size_t k = 0; k < found->n_files; k++)
    if (!strcmp(found->files[k].path, path)) return 1;
  return 0;
}

/* Takes ownership of `path`. */
static int add(cuplug__privates *found, const char *needed, char *path, cuplug_error *error) {
  struct stat status;
  cuplug__private *files = realloc(found->files, (found->n_files + 1) * sizeof *files);
  if (files) found->files = files;
  char *name = files ? strdup(needed) : NULL;
  if (!name || stat(path, &status)) {
    free(path);
    free(name);
    return name ? CUPLUG_OK : cuplug__no_memory(error, doing);
  }
  found->files[found->n_files++] = (cuplug__private){
      .needed = name, .path = path, .device = status.st_dev, .inode = status.st_ino};
  return CUPLUG_OK;
}

static int add_needed(int fd, const char *path, cuplug__privates *found, char **soname,
                      cuplug_error *error) {
  cuplug__elf elf;
  needs n = {0};
  if (cuplug__elf_read_open(&elf, fd, NULL)) return CUPLUG_OK;
  int status = cuplug__check_stack(cuplug__elf_needs_stack(&elf), error);
  if (status) cuplug__prefix(error, "%s: ", path);
  if (!status) cuplug__elf_visit_texts(&elf, take_text, &n);
  for (size_t k = 0; k < n.n_needed && !status && found->n_files < MAX_FILES; k++) {
    char *file = find_private(&n, path, n.needed[k]);
    if (!file) continue;
    if (is_known(found, file))
      free(file);
    else
      status = add(found, n.needed[k], file, error);
  }
  if (soname) {
    *soname = n.soname;
    n.soname = NULL;
  }
  end_needs(&n);
  return status;
}

/* Finds them for an open plugin at an absolute path. To be ended, also after an error,
 * ERROR_PLUGIN: one of them needs an executable stack. */
static int find_all(int fd, const char *path, cuplug__privates *found, cuplug_error *error) {
  *found = (cuplug__privates){0};
  int status = add_needed(fd, path, found, NULL, error);
  for (size_t k = 0; k < found->n_files && !status; k++) { /* faults of libraries come last */
    char *own = found->files[k].path, *soname = NULL;
    const int next = open(own, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (next < 0) continue;
    status = add_needed(next, own, found, &soname, error);
    found->files[k].soname = soname;
    close(next);
  }
  return status;
}

/* ---- Rivals ---------------------------------------------------------------------------------- */

static int is_called(const cuplug__private *file, const char *name) {
  return name && (!strcmp(file->needed, name) || (file->soname && !strcmp(file->soname, name)));
}

static int digest(const char *path, uint8_t digest[CUPLUG__DIGEST_BYTES]) {
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const int is_read = fd >= 0 && !cuplug__digest_file(fd, CUPLUG__MAX_LISTED_BYTES, digest, NULL);
  if (fd >= 0) close(fd);
  return is_read;
}

/* 1 if two of them have one name and are not the same file. */
static int are_rivals(const cuplug__private *a, const cuplug__private *b) {
  return (is_called(a, b->needed) || is_called(a, b->soname)) &&
         !(a->device == b->device && a->inode == b->inode);
}

/* 1 if the contents of two such files differ, or one has replaced the other. Reads both. */
static int differ(const cuplug__private *a, const cuplug__private *b) {
  uint8_t digests[2][CUPLUG__DIGEST_BYTES];
  return !strcmp(a->path, b->path) || !digest(a->path, digests[0]) ||
         !digest(b->path, digests[1]) || memcmp(digests[0], digests[1], sizeof digests[0]) != 0;
}

/* ---- Claims ---------------------------------------------------------------------------------- */

/* The files found first are retained, as other threads may be reading them. */
static void claim(cuplug__plugin *plugin, cuplug__privates *found) {
  cuplug__registry_lock();
  if (!plugin->privates.files) {
    plugin->privates = *found;
    *found = (cuplug__privates){0};
  }
  plugin->is_claiming = 1;
  cuplug__registry_unlock();
  cuplug__privates_end(found);
}

/* The file for which another plugin has claimed the name of `own`, if it differs. */
static const cuplug__private *find_rival(const cuplug__plugin *plugin, const cuplug__private *own,
                                         const cuplug__plugin **rival) {
  const cuplug__private *found = NULL;
  cuplug__registry_lock();
  for (*rival = cuplug__registry_plugins(); *rival; *rival = (*rival)->next) {
    if (*rival == plugin || !(*rival)->is_claiming) continue;
    for (size_t k = 0; k < (*rival)->privates.n_files && !found; k++)
      if (are_rivals(own, &(*rival)->privates.files[k])) found = &(*rival)->privates.files[k];
    if (found) break;
  }
  cuplug__registry_unlock();
  return found;
}

static int check_rivals(const cuplug__plugin *plugin, cuplug_error *error) {
  const cuplug__plugin *other;
  for (size_t k = 0; k < plugin->privates.n_files; k++) {
    const cuplug__private *own = &plugin->privates.files[k];
    const cuplug__private *rival = find_rival(plugin, own, &other);
    if (!rival || !differ(own, rival)) continue;
    if (!strcmp(own->path, rival->path))
      return cuplug__reject(error,
                            "%s: %s: replaced on disk after it was loaded; restart the process",
                            plugin->path, own->path);
    return cuplug__reject(
        error,
        "%s: %s: got %s, which %s has loaded, expected %s (a process has one "
        "library of a name); give one of them another SONAME, or link it statically",
        plugin->path, own->needed, rival->path, other->path, own->path);
  }
  return CUPLUG_OK;
}

int cuplug__claim_privates(cuplug__plugin *plugin, int fd, const char *path, cuplug_error *error) {
  cuplug__privates found;
  int status = find_all(fd, path, &found, error);
  if (status || !found.n_files) {
    cuplug__privates_end(&found);
    return status;
  }
  claim(plugin, &found);
  status = check_rivals(plugin, error);
  if (status) cuplug__unclaim_privates(plugin);
  return status;
}

void cuplug__unclaim_privates(cuplug__plugin *plugin) {
  cuplug__registry_lock();
  if (!plugin->library) plugin->is_claiming = 0;
  cuplug__registry_unlock();
}
