/* SPDX-License-Identifier: Apache-2.0 */
#include "base/copied.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3: mapped code needs no right to be executed as a program */
#define MFD_NOEXEC_SEAL 8u
#endif

int cuplug__copy_is_possible(void) { return !access("/proc/self/fd", X_OK); }

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

int cuplug__copy_to_memory(const char *name, int fd, off_t bytes) {
  const int copy = create(name);
  if (copy < 0 || fill(copy, fd, bytes)) return copy;
  close(copy);
  return -1;
}

/* Between folder and file stand the bits of a number: 0 is "/", 1 is "/./". */
char *cuplug__respell(const char *path) {
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

/* By the number of the process, which may be another in the /proc that is mounted: debuggers open
 * the path in a process of their own, where /proc/self would lead to a pipe that they wait for. */
char *cuplug__copy_path(int copy) {
  char process[24], path[64];
  const ssize_t n = readlink("/proc/self", process, sizeof process - 1);
  process[n > 0 ? n : 0] = 0;
  snprintf(path, sizeof path, "/proc/%s/fd/%d", n > 0 ? process : "self", copy);
  return cuplug__respell(path);
}
