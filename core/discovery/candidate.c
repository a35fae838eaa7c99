/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/candidate.h"

#include "base/hash.h"
#include "base/status.h"
#include "discovery/elf.h"
#include "discovery/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <internal/functions.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cuplug__identity_equal(const cuplug__identity *a, const cuplug__identity *b) {
  return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
         a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

uint64_t cuplug__identity_hash(const cuplug__identity *identity) {
  const uint64_t words[] = {(uint64_t)identity->device, (uint64_t)identity->inode};
  return cuplug__hash(0, words, sizeof words);
}

static cuplug__identity identity_from(const struct stat *s) {
  return (cuplug__identity){
      .device = s->st_dev, .inode = s->st_ino, .bytes = s->st_size, .modified = s->st_mtim};
}

int cuplug__identity_of(int fd, const char *path, cuplug__identity *identity) {
  struct stat status;
  if (fstatat(fd, path, &status, *path ? 0 : AT_EMPTY_PATH)) return 0;
  *identity = identity_from(&status);
  return 1;
}

static int fail_to_open(const char *path, int code, cuplug_error *error) {
  struct stat status;
  if (code == ENOMEM) return cuplug__no_memory(error, "opening a file");
  if (code == ENOENT && !lstat(path, &status) && S_ISLNK(status.st_mode))
    return cuplug__reject(error, "dangling link: its target does not exist");
  if (code == ENOENT || code == ENOTDIR)
    return cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "no such file");
  return cuplug__reject(error, "cannot be opened: %s", strerror(code));
}

static const char *kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
  case S_IFDIR:
    return "a directory";
  case S_IFIFO:
    return "a FIFO";
  case S_IFCHR:
    return "a character device";
  case S_IFBLK:
    return "a block device";
  default:
    return "a special file";
  }
}

static int stat_open(int fd, struct stat *status, cuplug_error *error) {
  if (fstat(fd, status)) return cuplug__reject(error, "cannot be read: %s", strerror(errno));
  if (!S_ISREG(status->st_mode))
    return cuplug__reject(error, "got %s, expected a regular file", kind_of(status->st_mode));
  return CUPLUG_OK;
}

/* The directory was checked when it was opened; the target of a link is checked again. Opening a
 * FIFO must not wait for a writer. */
static int open_path(int directory, const char *path, cuplug__trust *trust, int *fd,
                     cuplug_error *error) {
  const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  *fd = directory == AT_FDCWD ? -1 : openat(directory, name, flags | O_NOFOLLOW);
  if (*fd < 0 && (directory == AT_FDCWD || errno == ELOOP))
    *fd = cuplug__owner_open(trust, path, flags, error);
  if (*fd >= 0) return CUPLUG_OK;
  return *fd == CUPLUG__REFUSED ? CUPLUG_ERROR_PLUGIN : fail_to_open(path, errno, error);
}

int cuplug__open_file(const char *path, cuplug__trust *trust, int *fd, cuplug__identity *identity,
                      cuplug_error *error) {
  struct stat status;
  int result = open_path(AT_FDCWD, path, trust, fd, error);
  if (!result) result = stat_open(*fd, &status, error);
  if (!result) result = cuplug__owner_check(trust, *fd, &status, path, error);
  if (!result) *identity = identity_from(&status);
  return result;
}

int cuplug__check_listed(int fd, const cuplug__trust *trust, cuplug_error *error) {
  if (!trust->has_list) return CUPLUG_OK;
  int status = cuplug__trust_check_digest(trust, fd, error);
  if (status || !(cuplug__elf_places(fd) & CUPLUG__HAS_PATHS)) return status;
  return cuplug__reject(error,
                        "searches for libraries in its own directories (RPATH, RUNPATH or a path), "
                        "which CUPLUG_ALLOW_LIST does not cover; link it without -rpath");
}

int cuplug__candidate_read(int directory, const char *path, cuplug__trust *trust,
                           cuplug__candidate *candidate, cuplug_error *error) {
  struct stat status;
  memset(candidate, 0, sizeof(*candidate));
  cuplug__table_start(&candidate->table);
  int result = open_path(directory, path, trust, &candidate->fd, error);
  if (!result) result = stat_open(candidate->fd, &status, error);
  if (result) return result;
  candidate->identity = identity_from(&status);
  result = cuplug__table_read(candidate->fd, (uint64_t)status.st_size, &candidate->table, error);
  if (!result) result = cuplug__owner_check(trust, candidate->fd, &status, path, error);
  return result ? result : cuplug__check_stack(candidate->table.notes.needs_stack, error);
}

int cuplug__candidate_accept(const char *path, cuplug__candidate *candidate, cuplug_error *error) {
  cuplug__trust trust;
  *candidate = (cuplug__candidate){.fd = -1};
  int result = cuplug__trust_start(&trust, error);
  if (result) return result;
  result = cuplug__candidate_read(AT_FDCWD, path, &trust, candidate, error);
  if (!result) result = cuplug__check_listed(candidate->fd, &trust, error);
  if (result && result != CUPLUG_ERROR_MEMORY) cuplug__prefix(error, "%s: ", path);
  cuplug__trust_end(&trust);
  return result;
}

/* Checks the owner of a file; with `is_code`, all requirements on libraries. */
static int check_path(const char *path, int is_code, cuplug_error *error) {
  cuplug__trust trust;
  cuplug__identity identity;
  cuplug__clear(error);
  int fd = -1, status = cuplug__trust_start(&trust, error);
  if (!status)
    status = is_code ? cuplug__open_file(path, &trust, &fd, &identity, error)
                     : open_path(AT_FDCWD, path, &trust, &fd, error);
  if (!status)
    status = is_code ? cuplug__check_listed(fd, &trust, error)
                     : cuplug__owner_check(&trust, fd, NULL, path, error);
  if (fd >= 0) close(fd);
  cuplug__trust_end(&trust);
  return status;
}

int cuplug_check_owner(const char *path, cuplug_error *error) { return check_path(path, 0, error); }

int cuplug_check_trust(const char *path, cuplug_error *error) { return check_path(path, 1, error); }

void cuplug__candidate_end(cuplug__candidate *candidate) {
  if (candidate->fd >= 0) close(candidate->fd);
  cuplug__table_end(&candidate->table);
}
