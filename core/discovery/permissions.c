/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/permissions.h"

#include "base/library.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Requested when the core is loaded: in a child that was forked while another thread loaded a
 * library, the dynamic linker can no longer be called. */
static char own_folder[4096];
__attribute__((constructor)) static void find_own_folder(void) {
  if (!realpath(cuplug__library_of(cuplug__install_directory), own_folder)) *own_folder = 0;
  char *slash = strrchr(own_folder, '/');
  if (slash) *slash = 0;
}

const char *cuplug__install_directory(void) { return own_folder; }

/* The stock plugins, by a path that does not leave their folder: users that can write there can
 * write the core itself. */
int cuplug__is_stock(const char *path) {
  const size_t n = strlen(own_folder);
  return n && !strncmp(path, own_folder, n) && !strncmp(path + n, "/cuplug", 7) &&
         (!path[n + 7] || path[n + 7] == '/') && !strstr(path + n, "/..");
}

/* Access lists show in the bits of the group, which are their mask: more than the group may be
 * meant by them. */
static int has_access_list(int fd) {
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return getxattr(link, "system.posix_acl_access", NULL, 0) >= 0 ||
         (errno != ENODATA && errno != ENOTSUP);
}

/* 1 if a group has the user's name and no other members, as systems with umask 002 create. */
static int is_private(gid_t group) {
  char names[2][1024];
  struct passwd user, *own = NULL;
  struct group entry, *found = NULL;
  if (!geteuid() || getpwuid_r(geteuid(), &user, names[0], sizeof names[0], &own) || !own ||
      own->pw_gid != group || getgrgid_r(group, &entry, names[1], sizeof names[1], &found) ||
      !found || strcmp(found->gr_name, own->pw_name) != 0)
    return 0;
  for (char **member = found->gr_mem; *member; member++)
    if (strcmp(*member, own->pw_name) != 0) return 0;
  return 1;
}

/* The user of a name, or of a decimal number; 0: none. */
static int find_user(const char *owner, uid_t *found) {
  char names[1024], *end;
  struct passwd user, *known = NULL;
  errno = 0;
  const unsigned long number = strtoul(owner, &end, 10);
  if (*owner >= '0' && *owner <= '9' && !*end) {
    *found = (uid_t)number;
    return !errno && number < (uid_t)-1;
  }
  if (getpwnam_r(owner, &user, names, sizeof names, &known) || !known) return 0;
  *found = known->pw_uid;
  return 1;
}

void cuplug__rules_trust(cuplug__rules *rules, const char *owners) {
  rules->n_trusted = 0;
  while (owners && *owners && rules->n_trusted < CUPLUG__MAX_TRUSTED) {
    char owner[256];
    const size_t n = strcspn(owners, ":");
    if (n && n < sizeof owner) {
      memcpy(owner, owners, n);
      owner[n] = 0;
      rules->n_trusted += (uint32_t)find_user(owner, &rules->trusted[rules->n_trusted]);
    }
    owners += n + (owners[n] == ':');
  }
}

static int is_trusted(const cuplug__rules *rules, uid_t user) {
  for (uint32_t k = 0; k < rules->n_trusted; k++)
    if (rules->trusted[k] == user) return 1;
  return 0;
}

static int check_group(const cuplug__rules *rules, int fd, const struct stat *s,
                       cuplug_error *error) {
  if (!(s->st_mode & S_IWGRP) || rules->allow_group) return CUPLUG_OK;
  if (is_private(s->st_gid) && !has_access_list(fd)) return CUPLUG_OK;
  return cuplug__reject(
      error,
      "group %u may write it (mode %03o): take that right away with chmod g-w, or "
      "set CUPLUG_ALLOW_GROUP=1",
      (unsigned)s->st_gid, (unsigned)s->st_mode & 0777u);
}

static int check_status(const cuplug__rules *rules, int fd, const struct stat *s, int is_above,
                        cuplug_error *error) {
  if (s->st_uid != 0 && s->st_uid != geteuid() && !is_trusted(rules, s->st_uid))
    return cuplug__reject(error,
                          "owned by user %u, expected root or user %u; CUPLUG_TRUSTED_OWNERS=%u "
                          "or CUPLUG_ALLOW_UNSAFE=1 allows it",
                          (unsigned)s->st_uid, (unsigned)geteuid(), (unsigned)s->st_uid);
  if (is_above && s->st_mode & S_ISVTX) return CUPLUG_OK;
  if (s->st_mode & S_IWOTH)
    return cuplug__reject(
        error,
        "anyone may write it (mode %03o): take that right away with chmod o-w, or "
        "set CUPLUG_ALLOW_UNSAFE=1",
        (unsigned)s->st_mode & 0777u);
  return check_group(rules, fd, s, error);
}

static int check(const cuplug__rules *rules, int fd, int is_above, cuplug_error *error) {
  struct stat s;
  if (fstat(fd, &s)) return cuplug__reject(error, "cannot be read: %s", strerror(errno));
  return check_status(rules, fd, &s, is_above, error);
}

int cuplug__owner_check(const cuplug__rules *rules, int fd, const char *path, cuplug_error *error) {
  return rules->allow_unsafe || cuplug__is_stock(path) ? CUPLUG_OK : check(rules, fd, 0, error);
}

int cuplug__owner_check_status(const cuplug__rules *rules, int fd, const struct stat *status,
                               const char *path, cuplug_error *error) {
  return rules->allow_unsafe || cuplug__is_stock(path) ? CUPLUG_OK
                                                       : check_status(rules, fd, status, 0, error);
}

/* Opens the real path step by step. Links are not followed any more: one that has taken the place
 * of a directory meanwhile is an error. */
static int walk(const cuplug__rules *rules, char *real, int flags, cuplug_error *error) {
  int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), status = CUPLUG_OK;
  char *name = real + 1;
  while (fd >= 0 && *name && !status) {
    char *end = strchrnul(name, '/');
    const char after = *end;
    if ((status = check(rules, fd, 1, error))) {
      name[-(name > real + 1)] = 0;
      cuplug__prefix(error, "%s, on the way to it: ", real);
      break;
    }
    *end = 0;
    const int next = openat(fd, name, (after ? O_PATH : flags) | O_NOFOLLOW | O_CLOEXEC);
    const int code = errno;
    close(fd);
    errno = code;
    fd = next;
    *end = after;
    name = end + (after != 0);
  }
  if (!status) return fd;
  close(fd);
  return CUPLUG__REFUSED;
}

int cuplug__owner_open(const cuplug__rules *rules, const char *path, int flags,
                       cuplug_error *error) {
  if (rules->allow_unsafe) return open(path, flags | O_CLOEXEC);
  char *real = realpath(path, NULL);
  if (!real) return -1;
  int fd = cuplug__is_stock(real) ? open(real, flags | O_CLOEXEC) : walk(rules, real, flags, error);
  const int code = errno;
  free(real);
  errno = code;
  return fd;
}

/* ---- Links ----------------------------------------------------------------------------------- */

void cuplug__folder_end(cuplug__folder *kept) {
  if (kept->path) close(kept->fd);
  free(kept->path);
  kept->path = NULL;
}

/* For a folder of n bytes; 1 if it is the cached one, now or before. */
static int keep_folder(const cuplug__rules *rules, const char *path, size_t n,
                       cuplug__folder *kept) {
  cuplug_error reason;
  if (kept->path && !strncmp(kept->path, path, n) && !kept->path[n]) return 1;
  cuplug__folder_end(kept);
  kept->path = strndup(path, n);
  if (!kept->path) return 0;
  kept->fd = cuplug__owner_open(rules, kept->path, O_PATH | O_DIRECTORY, &reason);
  if (kept->fd >= 0 && !check(rules, kept->fd, 1, &reason)) return 1;
  if (kept->fd >= 0) close(kept->fd);
  free(kept->path);
  kept->path = NULL;
  return 0;
}

/* Reads where the link at `path` leads; a relative one begins with the link's own folder. */
static int read_link(int directory, const char *path, char *target, size_t room) {
  const char *name = strrchr(path, '/') + 1;
  const size_t above = (size_t)(name - path);
  ssize_t n = above < room ? readlinkat(directory, name, target, room) : -1;
  if (n <= 0 || (size_t)n + above >= room) return 0;
  const size_t before = *target == '/' ? 0 : above;
  memmove(target + before, target, (size_t)n);
  memcpy(target, path, before);
  target[before + (size_t)n] = 0;
  return 1;
}

int cuplug__owner_open_link(const cuplug__rules *rules, int directory, const char *path, int flags,
                            cuplug__folder *kept) {
  char target[2048];
  if (rules->allow_unsafe || !read_link(directory, path, target, sizeof target)) return -1;
  const char *name = strrchr(target, '/') + 1;
  if (name == target + 1 || !keep_folder(rules, target, (size_t)(name - 1 - target), kept))
    return -1;
  return openat(kept->fd, name, flags | O_NOFOLLOW | O_CLOEXEC);
}
