/* SPDX-License-Identifier: Apache-2.0 */
/* Linking of compiled parts to machine code by nvJitLink, which optimizes them as a whole. */
#include "base/core.h"
#include "compilers/nvrtc.h"

#include <stdlib.h>

#define ANY_INPUT 10 /* NVJITLINK_INPUT_ANY: the library detects the type of a part */

typedef struct nvJitLink *nvJitLinkHandle;

/* X(function, parameters): all return an nvJitLinkResult, 0 for success. */
#define LINKER_LIST(X)                                                            \
  X(nvJitLinkCreate, (nvJitLinkHandle *, uint32_t, const char **))                \
  X(nvJitLinkDestroy, (nvJitLinkHandle *))                                        \
  X(nvJitLinkAddData, (nvJitLinkHandle, int, const void *, size_t, const char *)) \
  X(nvJitLinkComplete, (nvJitLinkHandle))                                         \
  X(nvJitLinkGetLinkedCubinSize, (nvJitLinkHandle, size_t *))                     \
  X(nvJitLinkGetLinkedCubin, (nvJitLinkHandle, void *))                           \
  X(nvJitLinkGetLinkedPtxSize, (nvJitLinkHandle, size_t *))                       \
  X(nvJitLinkGetLinkedPtx, (nvJitLinkHandle, char *))                             \
  X(nvJitLinkGetErrorLogSize, (nvJitLinkHandle, size_t *))                        \
  X(nvJitLinkGetErrorLog, (nvJitLinkHandle, char *))

typedef struct linker {
#define CUPLUG__X(function, parameters) int(*function) parameters;
  LINKER_LIST(CUPLUG__X)
#undef CUPLUG__X
} linker;

static int open_linker(const char *path, linker *l, cuplug_error *error) {
  const cuplug__function functions[] = {
#define CUPLUG__X(function, parameters) {#function, &l->function},
      LINKER_LIST(CUPLUG__X)
#undef CUPLUG__X
  };
  return cuplug__open_compiler(path, "nvJitLink", functions, sizeof functions / sizeof *functions,
                               error);
}

/* The message is the linker's error log. */
static int fail(const linker *l, nvJitLinkHandle handle, int code, const cuplug_linking *linking,
                cuplug_binary *binary, cuplug_error *error) {
  size_t bytes = 0;
  if (handle && !l->nvJitLinkGetErrorLogSize(handle, &bytes) && bytes) {
    binary->log = calloc(1, bytes + 1);
    if (binary->log) l->nvJitLinkGetErrorLog(handle, binary->log);
  }
  const char *log = binary->log ? binary->log : "";
  return core->fail(error, CUPLUG_ERROR_COMPILE, "%s: linking: error %d of nvJitLink%s%s",
                    linking->name, code, *log ? "\n" : "", log);
}

static int take_image(const linker *l, nvJitLinkHandle handle, int is_ptx, cuplug_binary *binary) {
  size_t bytes = 0;
  int code = is_ptx ? l->nvJitLinkGetLinkedPtxSize(handle, &bytes)
                    : l->nvJitLinkGetLinkedCubinSize(handle, &bytes);
  if (code) return code;
  binary->image = calloc(1, bytes + 1);
  if (!binary->image) return -1;
  binary->image_bytes = bytes;
  binary->is_ptx = is_ptx;
  return is_ptx ? l->nvJitLinkGetLinkedPtx(handle, binary->image)
                : l->nvJitLinkGetLinkedCubin(handle, binary->image);
}

static int link_parts(const linker *l, const cuplug_linking *linking, cuplug_binary *binary,
                      cuplug_error *error) {
  nvJitLinkHandle handle = NULL;
  int code = l->nvJitLinkCreate(&handle, linking->n_options, (const char **)linking->options);
  for (uint32_t k = 0; k < linking->n_parts && !code; k++)
    code = l->nvJitLinkAddData(handle, ANY_INPUT, linking->parts[k], linking->part_bytes[k],
                               linking->part_names[k]);
  if (!code) code = l->nvJitLinkComplete(handle);
  if (!code) code = take_image(l, handle, linking->is_ptx, binary);
  const int status = code ? fail(l, handle, code, linking, binary, error) : CUPLUG_OK;
  if (handle) l->nvJitLinkDestroy(&handle);
  return status;
}

int cuplug_link_program(const char *path, const cuplug_linking *linking, cuplug_binary **binary,
                        cuplug_error *error) {
  linker l;
  cuplug__clear(error);
  *binary = NULL;
  int status = open_linker(path, &l, error);
  if (status) return status;
  *binary = calloc(1, sizeof **binary);
  if (!*binary) return core->no_memory(error, "linking");
  return link_parts(&l, linking, *binary, error);
}
