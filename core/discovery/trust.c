/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/trust.h"

#include "base/hash.h"
#include "base/library.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* Reads names and numbers of users, separated by ":"; unknown ones are skipped. */
static void trust_owners(cuplug__trust *trust, const char *owners) {
  trust->n_trusted = 0;
  while (owners && *owners && trust->n_trusted < CUPLUG__MAX_TRUSTED) {
    char owner[256];
    const size_t n = strcspn(owners, ":");
    if (n && n < sizeof owner) {
      memcpy(owner, owners, n);
      owner[n] = 0;
      trust->n_trusted += (uint32_t)find_user(owner, &trust->trusted[trust->n_trusted]);
    }
    owners += n + (owners[n] == ':');
  }
}

static int is_trusted(const cuplug__trust *trust, uid_t user) {
  for (uint32_t k = 0; k < trust->n_trusted; k++)
    if (trust->trusted[k] == user) return 1;
  return 0;
}

static int check_group(const cuplug__trust *trust, int fd, const struct stat *s,
                       cuplug_error *error) {
  if (!(s->st_mode & S_IWGRP) || trust->allow_group) return CUPLUG_OK;
  if (is_private(s->st_gid) && !has_access_list(fd)) return CUPLUG_OK;
  return cuplug__reject(
      error,
      "group %u may write it (mode %03o); remove this permission with chmod g-w, or "
      "set CUPLUG_ALLOW_GROUP=1",
      (unsigned)s->st_gid, (unsigned)s->st_mode & 0777u);
}

static int check_status(const cuplug__trust *trust, int fd, const struct stat *s, int is_above,
                        cuplug_error *error) {
  if (s->st_uid != 0 && s->st_uid != geteuid() && !is_trusted(trust, s->st_uid))
    return cuplug__reject(error,
                          "owned by user %u, expected root or user %u; CUPLUG_TRUSTED_OWNERS=%u "
                          "or CUPLUG_ALLOW_UNSAFE=1 allows it",
                          (unsigned)s->st_uid, (unsigned)geteuid(), (unsigned)s->st_uid);
  if (is_above && s->st_mode & S_ISVTX) return CUPLUG_OK;
  if (s->st_mode & S_IWOTH)
    return cuplug__reject(
        error,
        "anyone may write it (mode %03o); remove this permission with chmod o-w, or "
        "set CUPLUG_ALLOW_UNSAFE=1",
        (unsigned)s->st_mode & 0777u);
  return check_group(trust, fd, s, error);
}

static int check(const cuplug__trust *trust, int fd, int is_above, cuplug_error *error) {
  struct stat s;
  if (fstat(fd, &s)) return cuplug__reject(error, "cannot be read: %s", strerror(errno));
  return check_status(trust, fd, &s, is_above, error);
}

int cuplug__owner_check(const cuplug__trust *trust, int fd, const struct stat *status,
                        const char *path, cuplug_error *error) {
  if (trust->allow_unsafe || cuplug__is_stock(path)) return CUPLUG_OK;
  return status ? check_status(trust, fd, status, 0, error) : check(trust, fd, 0, error);
}

/* Opens the real path of a file or directory step by step. Links are no longer followed: one that
 * has replaced a directory meanwhile is an error. The last folder is kept, with its part of `real`:
 * most links lead to one. */
static int walk(cuplug__trust *trust, char *real, int flags, cuplug_error *error) {
  int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (char *name = real + 1; fd >= 0 && *name;) {
    char *end = strchrnul(name, '/');
    const char after = *end;
    if (check(trust, fd, 1, error)) {
      name[-(name > real + 1)] = 0;
      cuplug__prefix(error, "%s, on the way to it: ", real);
      close(fd);
      return CUPLUG__REFUSED;
    }
    *end = 0;
    const int next = openat(fd, name, (after ? O_PATH : flags) | O_NOFOLLOW | O_CLOEXEC);
    const int code = errno;
    if (after)
      close(fd);
    else
      *name = 0, trust->folder = real, trust->folder_fd = fd;
    errno = code;
    fd = next;
    *end = after;
    name = end + (after != 0);
  }
  return fd;
}

static void forget_folder(cuplug__trust *trust) {
  if (trust->folder) close(trust->folder_fd);
  free(trust->folder);
  trust->folder = NULL;
}

/* 1 if the file at a real path is in the folder that is kept; forgets another one. */
static int is_in_folder(cuplug__trust *trust, const char *real) {
  const size_t n = (size_t)(strrchr(real, '/') + 1 - real);
  if (trust->folder && real[n] && !strncmp(trust->folder, real, n) && !trust->folder[n]) return 1;
  forget_folder(trust);
  return 0;
}

int cuplug__owner_open(cuplug__trust *trust, const char *path, int flags, cuplug_error *error) {
  if (trust->allow_unsafe) return open(path, flags | O_CLOEXEC);
  char *real = realpath(path, NULL);
  if (!real) return -1;
  const int fd = cuplug__is_stock(real)      ? open(real, flags | O_CLOEXEC)
                 : is_in_folder(trust, real) ? openat(trust->folder_fd, strrchr(real, '/') + 1,
                                                      flags | O_NOFOLLOW | O_CLOEXEC)
                                             : walk(trust, real, flags, error);
  const int code = errno;
  if (trust->folder != real) free(real);
  errno = code;
  return fd;
}

/* ---- Settings, and the allow-list ------------------------------------------------------------ */

#define MAX_LIST_BYTES (16 << 20)
#define DIGITS (2 * CUPLUG__DIGEST_BYTES)

/* 64 hexadecimal digits that end a line or come before a space; NULL: none. */
static const char *digest_in(const char *line) {
  line += *line == '\\'; /* sha256sum marks escaped file names so */
  const int is_digest = strspn(line, "0123456789abcdefABCDEF") == DIGITS;
  return is_digest && strchr(" \t", line[DIGITS]) ? line : NULL;
}

/* Finds the digests in the list's text, which is split into lines. */
static int parse_list(cuplug__trust *trust, cuplug_error *error) {
  size_t n_lines = 1, number = 1;
  for (const char *c = trust->list; *c; c++) n_lines += *c == '\n';
  trust->digests = malloc(n_lines * sizeof(*trust->digests));
  if (!trust->digests) return cuplug__no_memory(error, "reading the allow-list");
  for (char *text = trust->list; text; number++) {
    char *line = text;
    text = strchr(line, '\n');
    if (text) *text++ = 0;
    line[strcspn(line, "\r")] = 0;
    line += strspn(line, " \t");
    if (!*line || *line == '#') continue;
    if (!(trust->digests[trust->n_digests] = digest_in(line)))
      return cuplug__reject(
          error, "line %zu: got no SHA-256 digest, expected 64 hexadecimal digits", number);
    trust->n_digests++;
  }
  return CUPLUG_OK;
}

static int read_list(cuplug__trust *trust, int fd, cuplug_error *error) {
  struct stat status;
  if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size > MAX_LIST_BYTES)
    return cuplug__reject(
        error, "got a larger or special file, expected a regular file of at most 16 MiB");
  size_t room = (size_t)status.st_size, n = 0;
  char *text = trust->list = malloc(room + 1);
  if (!text) return cuplug__no_memory(error, "reading the allow-list");
  for (ssize_t step = 1; step > 0 && n<room; n += step> 0 ? (size_t)step : 0)
    step = read(fd, text + n, room - n);
  text[n] = 0;
  return n == room ? parse_list(trust, error) : cuplug__reject(error, "cannot be read to its end");
}

static int open_list(cuplug__trust *trust, const char *path, cuplug_error *error) {
  if (*path != '/') return cuplug__reject(error, "relative path");
  int fd = cuplug__owner_open(trust, path, O_RDONLY | O_NONBLOCK, error);
  if (fd == CUPLUG__REFUSED) return CUPLUG_ERROR_PLUGIN;
  if (fd < 0 && errno == ENOMEM) return cuplug__no_memory(error, "reading the allow-list");
  if (fd < 0) return cuplug__reject(error, "cannot be opened: %s", strerror(errno));
  int result = cuplug__owner_check(trust, fd, NULL, path, error);
  if (!result) result = read_list(trust, fd, error);
  close(fd);
  return result;
}

static int is_set(const char *variable) {
  const char *value = secure_getenv(variable);
  return value && !strcmp(value, "1");
}

int cuplug__trust_start(cuplug__trust *trust, cuplug_error *error) {
  const char *list = secure_getenv("CUPLUG_ALLOW_LIST");
  trust->allow_unsafe = is_set("CUPLUG_ALLOW_UNSAFE");
  trust->allow_group = is_set("CUPLUG_ALLOW_GROUP");
  trust_owners(trust, secure_getenv("CUPLUG_TRUSTED_OWNERS"));
  trust->in_place = is_set("CUPLUG_LOAD_IN_PLACE");
  trust->has_list = list && *list;
  trust->folder = trust->list = NULL;
  trust->digests = NULL;
  trust->n_digests = 0;
  cuplug__clear(&trust->fault);
  if (!trust->has_list) return CUPLUG_OK;
  int status = open_list(trust, list, &trust->fault);
  if (!status) return CUPLUG_OK;
  if (status == CUPLUG_ERROR_MEMORY) {
    cuplug__trust_end(trust);
    return cuplug__no_memory(error, "reading the allow-list");
  }
  cuplug__prefix(&trust->fault,
                 "not accepted, because CUPLUG_ALLOW_LIST cannot be used: %s: ", list);
  return CUPLUG_OK;
}

void cuplug__trust_end(cuplug__trust *trust) {
  forget_folder(trust);
  free(trust->list);
  free(trust->digests);
  trust->list = NULL;
  trust->digests = NULL;
}

int cuplug__digest_file(int fd, int64_t max_bytes, uint8_t digest[CUPLUG__DIGEST_BYTES],
                        cuplug_error *error) {
  cuplug__sha256 sha;
  char block[8192];
  off_t at = 0;
  ssize_t n = 0;
  cuplug__sha256_start(&sha);
  while (at <= max_bytes && (n = pread(fd, block, sizeof(block), at)) > 0) {
    cuplug__sha256_add(&sha, block, (size_t)n);
    at += n;
  }
  if (n < 0) return cuplug__reject(error, "cannot be read: %s", strerror(errno));
  cuplug__sha256_end(&sha, digest);
  return CUPLUG_OK;
}

static int digest_bounded(int fd, uint8_t digest[CUPLUG__DIGEST_BYTES], cuplug_error *error) {
  struct stat status;
  if (!fstat(fd, &status) && status.st_size > CUPLUG__MAX_LISTED_BYTES)
    return cuplug__reject(error, "got %lld bytes, expected at most 1 GiB with CUPLUG_ALLOW_LIST",
                          (long long)status.st_size);
  return cuplug__digest_file(fd, CUPLUG__MAX_LISTED_BYTES, digest, error);
}

int cuplug__trust_check_digest(const cuplug__trust *trust, int fd, cuplug_error *error) {
  if (!trust->has_list) return CUPLUG_OK;
  if (trust->fault.status) return cuplug__reject(error, "%s", trust->fault.message);
  uint8_t digest[CUPLUG__DIGEST_BYTES];
  int status = digest_bounded(fd, digest, error);
  if (status) return status;
  char text[DIGITS + 1];
  for (size_t k = 0; k < CUPLUG__DIGEST_BYTES; k++) sprintf(text + 2 * k, "%02x", digest[k]);
  for (size_t k = 0; k < trust->n_digests; k++)
    if (!strncasecmp(trust->digests[k], text, DIGITS)) return CUPLUG_OK;
  return cuplug__reject(error, "not on the allow-list of CUPLUG_ALLOW_LIST: its SHA-256 is %s",
                        text);
}
