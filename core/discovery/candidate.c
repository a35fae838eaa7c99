/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/candidate.h"

#include "base/status.h"
#include "discovery/table.h"
#include "discovery/trust.h"

#include <cuplug/host.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int cuplug__identity_equal(const cuplug__identity *a, const cuplug__identity *b) {
  return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
         a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

static cuplug__identity identity_from(const struct stat *s) {
  return (cuplug__identity){
      .device = s->st_dev, .inode = s->st_ino, .bytes = s->st_size, .modified = s->st_mtim};
}

int cuplug__identity_of(const char *path, cuplug__identity *identity) {
  struct stat status;
  if (stat(path, &status)) return 0;
  *identity = identity_from(&status);
  return 1;
}

static int fail_to_open(int directory, const char *name, int code, cuplug_error *error) {
  struct stat status;
  int is_there = !fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW);
  if (code == ENOENT && is_there && S_ISLNK(status.st_mode))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "dangling link: its target does not exist");
  if (code == ENOENT || code == ENOTDIR)
    return cuplug__fail(error, CUPLUG_ERROR_NOT_FOUND, "no such file");
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "cannot be opened: %s", strerror(code));
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
  if (fstat(fd, status))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "cannot be read: %s", strerror(errno));
  if (!S_ISREG(status->st_mode))
    return cuplug__fail(error, CUPLUG_ERROR_PLUGIN, "%s, a regular file is wanted",
                        kind_of(status->st_mode));
  return CUPLUG_OK;
}

static int read_open(int fd, const cuplug__trust *trust, cuplug__candidate *candidate,
                     cuplug_error *error) {
  struct stat status;
  int result = stat_open(fd, &status, error);
  if (result) return result;
  candidate->identity = identity_from(&status);
  result = cuplug__table_read(fd, (uint64_t)status.st_size, &candidate->table, error);
  if (!result) result = cuplug__trust_check_owner(trust, &status, error);
  if (!result) result = cuplug__trust_check_digest(trust, fd, error);
  return result;
}

/* Opening a FIFO must not wait for a writer. */
static int open_candidate(int directory, const char *name) {
  return openat(directory, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

int cuplug__candidate_read(int directory, const char *name, const cuplug__trust *trust,
                           cuplug__candidate *candidate, cuplug_error *error) {
  memset(candidate, 0, sizeof(*candidate));
  cuplug__table_start(&candidate->table);
  int fd = open_candidate(directory, name);
  if (fd < 0) return fail_to_open(directory, name, errno, error);
  int status = read_open(fd, trust, candidate, error);
  close(fd);
  return status;
}

static int check_trust(const char *path, const cuplug__trust *trust, cuplug_error *error) {
  struct stat status;
  int fd = open_candidate(AT_FDCWD, path);
  if (fd < 0) return fail_to_open(AT_FDCWD, path, errno, error);
  int result = stat_open(fd, &status, error);
  if (!result) result = cuplug__trust_check_owner(trust, &status, error);
  if (!result) result = cuplug__trust_check_digest(trust, fd, error);
  close(fd);
  return result;
}

int cuplug_check_trust(const char *path, cuplug_error *error) {
  cuplug__trust trust;
  cuplug__clear(error);
  int status = cuplug__trust_start(&trust, error);
  if (!status) status = check_trust(path, &trust, error);
  cuplug__trust_end(&trust);
  return status;
}

void cuplug__candidate_end(cuplug__candidate *candidate) { cuplug__table_end(&candidate->table); }

int cuplug__candidate_check_name(int directory, const char *name,
                                 const cuplug__candidate *candidate, cuplug_error *error) {
  char wanted[sizeof("lib.so") + CUPLUG_MAX_NAME];
  struct stat status;
  snprintf(wanted, sizeof(wanted), "lib%s.so", candidate->table.name);
  if (!strcmp(name, wanted)) return CUPLUG_OK;
  int both = !fstatat(directory, wanted, &status, 0);
  return cuplug__fail(
      error, CUPLUG_ERROR_PLUGIN, "it holds the plugin \"%s\", so its file must be called %s%s",
      candidate->table.name, wanted, both ? ", which is in the same directory, too" : "");
}
