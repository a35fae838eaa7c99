/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery/trust.h"

#include "base/sha256.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LIST_BYTES (16 << 20)

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Reads 64 hexadecimal digits that end a line or come before a space. */
static int parse_digest(const char *line, uint8_t digest[CUPLUG__DIGEST_BYTES]) {
  line += *line == '\\'; /* sha256sum marks escaped file names so */
  for (int k = 0; k < CUPLUG__DIGEST_BYTES; k++, line += 2) {
    int high = hex_digit(line[0]);
    int low = high < 0 ? -1 : hex_digit(line[1]);
    if (low < 0) return 0;
    digest[k] = (uint8_t)(high << 4 | low);
  }
  return !*line || *line == ' ' || *line == '\t';
}

/* Takes the digests out of the list's text, which is cut into lines. */
static int parse_list(cuplug__trust *trust, char *text, cuplug_error *error) {
  size_t n_lines = 1;
  for (const char *c = text; *c; c++) n_lines += *c == '\n';
  trust->digests = malloc(n_lines * sizeof(*trust->digests));
  if (!trust->digests) return cuplug__no_memory(error, "reading the allow-list");
  for (size_t number = 1; text; number++) {
    char *line = text;
    text = strchr(line, '\n');
    if (text) *text++ = 0;
    line[strcspn(line, "\r")] = 0;
    line += strspn(line, " \t");
    if (!*line || *line == '#') continue;
    if (!parse_digest(line, trust->digests[trust->n_digests]))
      return cuplug__reject(error, "line %zu: no SHA-256 digest of 64 hexadecimal digits", number);
    trust->n_digests++;
  }
  return CUPLUG_OK;
}

static int read_list(cuplug__trust *trust, int fd, cuplug_error *error) {
  struct stat status;
  if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size > MAX_LIST_BYTES)
    return cuplug__reject(error, "no regular file of at most 16 MiB");
  size_t room = (size_t)status.st_size, n = 0;
  char *text = malloc(room + 1);
  if (!text) return cuplug__no_memory(error, "reading the allow-list");
  for (ssize_t step = 1; step > 0 && n<room; n += step> 0 ? (size_t)step : 0)
    step = read(fd, text + n, room - n);
  text[n] = 0;
  int result = n == room ? parse_list(trust, text, error)
                         : cuplug__reject(error, "cannot be read to its end");
  free(text);
  return result;
}

static int open_list(cuplug__trust *trust, const char *path, cuplug_error *error) {
  if (*path != '/') return cuplug__reject(error, "relative path");
  int fd = cuplug__owner_open(&trust->rules, path, O_RDONLY | O_NONBLOCK, error);
  if (fd == CUPLUG__REFUSED) return CUPLUG_ERROR_PLUGIN;
  if (fd < 0 && errno == ENOMEM) return cuplug__no_memory(error, "reading the allow-list");
  if (fd < 0) return cuplug__reject(error, "cannot be opened: %s", strerror(errno));
  int result = cuplug__owner_check(&trust->rules, fd, path, error);
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
  trust->rules.allow_unsafe = is_set("CUPLUG_ALLOW_UNSAFE");
  trust->rules.allow_group = is_set("CUPLUG_ALLOW_GROUP");
  cuplug__rules_trust(&trust->rules, secure_getenv("CUPLUG_TRUSTED_OWNERS"));
  trust->in_place = is_set("CUPLUG_LOAD_IN_PLACE");
  trust->has_list = list && *list;
  trust->digests = NULL;
  trust->n_digests = 0;
  cuplug__clear(&trust->fault);
  if (!trust->has_list) return CUPLUG_OK;
  int status = open_list(trust, list, &trust->fault);
  if (!status) return CUPLUG_OK;
  if (status == CUPLUG_ERROR_MEMORY) return cuplug__no_memory(error, "reading the allow-list");
  cuplug__prefix(&trust->fault, "not accepted, as CUPLUG_ALLOW_LIST is of no use: %s: ", list);
  return CUPLUG_OK;
}

void cuplug__trust_end(cuplug__trust *trust) {
  free(trust->digests);
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
  for (size_t k = 0; k < trust->n_digests; k++)
    if (!memcmp(trust->digests[k], digest, sizeof(digest))) return CUPLUG_OK;
  char text[2 * CUPLUG__DIGEST_BYTES + 1];
  for (size_t k = 0; k < CUPLUG__DIGEST_BYTES; k++) sprintf(text + 2 * k, "%02x", digest[k]);
  return cuplug__reject(error, "not on the allow-list of CUPLUG_ALLOW_LIST: its SHA-256 is %s",
                        text);
}
