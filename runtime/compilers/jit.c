/* SPDX-License-Identifier: Apache-2.0 */
/* Compilation of CUDA source to machine code. */
#include "base/core.h"
#include "compilers/nvrtc.h"

#include <runtime/jit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OWN_OPTIONS 5    /* at most */
#define VIRTUAL "compute_" /* before an architecture: PTX for it */

/* Omits NVRTC's declarations of textures and of the CUDA runtime, which take time in a small
 * kernel. Code that uses them is rejected, and compiled again with them. An NVRTC without the
 * option rejects it at once. */
#define MINIMAL "--minimal"

static int fail(const cuplug__nvrtc *nvrtc, int code, const char *name, cuplug_error *error) {
  if (code == CUPLUG__NVRTC_ERROR_OUT_OF_MEMORY)
    return core->fail(error, CUPLUG_ERROR_MEMORY, "%s: NVRTC ran out of memory", name);
  return core->fail(error, CUPLUG_ERROR_COMPILE, "%s: NVRTC: %s", name,
                    nvrtc->nvrtcGetErrorString(code));
}

static int fail_architecture(const cuplug__nvrtc *nvrtc, const cuplug_program *program,
                             cuplug_error *error) {
  const int *known = nvrtc->architectures, newest = known[nvrtc->n_architectures - 1];
  return core->fail(error, CUPLUG_ERROR_COMPILE,
                    "%s: architecture: got %s, expected one that NVRTC %d.%d compiles for: %d to "
                    "%d",
                    program->name, program->architecture, nvrtc->version / 1000,
                    nvrtc->version % 1000 / 10, known[0], newest);
}

/* Machine code if NVRTC knows the architecture, PTX for the driver if the GPU is newer, or for
 * "compute_90". */
static int choose_architecture(const cuplug__nvrtc *nvrtc, const cuplug_program *program,
                               char option[64], int *is_ptx, cuplug_error *error) {
  const int *known = nvrtc->architectures, newest = known[nvrtc->n_architectures - 1];
  const char *asked = program->architecture;
  const int asks_ptx = !strncmp(asked, VIRTUAL, strlen(VIRTUAL));
  if (asks_ptx) asked += strlen(VIRTUAL);
  const int wanted = atoi(asked);
  *is_ptx = asks_ptx || wanted > newest;
  if (wanted > newest)
    snprintf(option, 64, "--gpu-architecture=compute_%d", newest);
  else
    snprintf(option, 64, "--gpu-architecture=%s%.16s", asks_ptx ? VIRTUAL : "sm_", asked);
  for (int k = 0; k < nvrtc->n_architectures; k++)
    if (known[k] == wanted) return CUPLUG_OK;
  return wanted > newest ? CUPLUG_OK : fail_architecture(nvrtc, program, error);
}

typedef int size_function(nvrtcProgram, size_t *);
typedef int text_function(nvrtcProgram, char *);

static int take(size_function *get_size, text_function *get, nvrtcProgram compiled, void **text,
                size_t *bytes) {
  *bytes = 0;
  int code = get_size(compiled, bytes);
  *text = code ? NULL : calloc(1, *bytes + 1);
  if (code || !*text) return code ? code : CUPLUG__NVRTC_ERROR_OUT_OF_MEMORY;
  return get(compiled, *text);
}

static int take_log(const cuplug__nvrtc *nvrtc, nvrtcProgram compiled, cuplug_binary *binary) {
  void *log;
  size_t bytes;
  int code = take(nvrtc->nvrtcGetProgramLogSize, nvrtc->nvrtcGetProgramLog, compiled, &log, &bytes);
  binary->log = log;
  return code;
}

static int take_image(const cuplug__nvrtc *nvrtc, nvrtcProgram compiled,
                      const cuplug_program *program, cuplug_binary *binary) {
  size_t bytes;
  size_function *get_size = program->is_part ? nvrtc->nvrtcGetLTOIRSize
                            : binary->is_ptx ? nvrtc->nvrtcGetPTXSize
                                             : nvrtc->nvrtcGetCUBINSize;
  text_function *get = program->is_part ? nvrtc->nvrtcGetLTOIR
                       : binary->is_ptx ? nvrtc->nvrtcGetPTX
                                        : nvrtc->nvrtcGetCUBIN;
  int code = take(get_size, get, compiled, &binary->image, &bytes);
  binary->image_bytes = bytes;
  return code;
}

static int take_names(const cuplug__nvrtc *nvrtc, nvrtcProgram compiled,
                      const cuplug_program *program, cuplug_binary *binary) {
  const char *lowered;
  binary->lowered = calloc(program->n_names + 1, sizeof *binary->lowered);
  if (!binary->lowered) return CUPLUG__NVRTC_ERROR_OUT_OF_MEMORY;
  for (uint32_t k = 0; k < program->n_names; k++) {
    int code = nvrtc->nvrtcGetLoweredName(compiled, program->names[k], &lowered);
    if (code) return code;
    binary->lowered[k] = strdup(lowered);
    if (!binary->lowered[k]) return CUPLUG__NVRTC_ERROR_OUT_OF_MEMORY;
    binary->n_names = k + 1;
  }
  return 0;
}

/* Compiles the created program. For rejected code, the message is the compiler's log. */
static int compile(const cuplug__nvrtc *nvrtc, nvrtcProgram created, const cuplug_program *program,
                   const char *const *options, int n_options, cuplug_binary *binary,
                   cuplug_error *error) {
  int code = 0;
  for (uint32_t k = 0; !code && k < program->n_names; k++)
    code = nvrtc->nvrtcAddNameExpression(created, program->names[k]);
  if (code) return fail(nvrtc, code, program->name, error);
  int refusal = nvrtc->nvrtcCompileProgram(created, n_options, options);
  code = take_log(nvrtc, created, binary);
  if (refusal && !code && *binary->log)
    return core->fail(error, CUPLUG_ERROR_COMPILE, "%s: %s\n%s", program->name,
                      nvrtc->nvrtcGetErrorString(refusal), binary->log);
  if (refusal) return fail(nvrtc, refusal, program->name, error);
  if (!code) code = take_names(nvrtc, created, program, binary);
  if (!code) code = take_image(nvrtc, created, program, binary);
  return code ? fail(nvrtc, code, program->name, error) : CUPLUG_OK;
}

static int create_and_compile(const cuplug__nvrtc *nvrtc, const cuplug_program *program,
                              const char *const *options, int n_options, cuplug_binary *binary,
                              cuplug_error *error) {
  nvrtcProgram created = NULL;
  int code =
      nvrtc->nvrtcCreateProgram(&created, program->text, program->name, (int)program->n_headers,
                                program->header_texts, program->header_names);
  if (code) return fail(nvrtc, code, program->name, error);
  int status = compile(nvrtc, created, program, options, n_options, binary, error);
  nvrtc->nvrtcDestroyProgram(&created);
  return status;
}

static void empty(cuplug_binary *binary) {
  for (uint32_t k = 0; k < binary->n_names; k++) free(binary->lowered[k]);
  free(binary->lowered);
  free(binary->image);
  free(binary->log);
  *binary = (cuplug_binary){.is_ptx = binary->is_ptx};
}

/* The last option is MINIMAL. */
static int compile_minimal_first(const cuplug__nvrtc *nvrtc, const cuplug_program *program,
                                 const char *const *options, int n_options, cuplug_binary *binary,
                                 cuplug_error *error) {
  int status = CUPLUG_ERROR_COMPILE;
  if (program->try_minimal)
    status = create_and_compile(nvrtc, program, options, n_options, binary, error);
  if (status != CUPLUG_ERROR_COMPILE) return status;
  empty(binary);
  cuplug__clear(error);
  return create_and_compile(nvrtc, program, options, n_options - 1, binary, error);
}

int cuplug_compile_program(const char *path, const cuplug_program *program, cuplug_binary **binary,
                           cuplug_error *error) {
  const cuplug__nvrtc *nvrtc;
  char architecture[64];
  cuplug__clear(error);
  *binary = NULL;
  int status = cuplug__nvrtc_open(path, &nvrtc, error);
  if (status) return status;
  int n_options = 0;
  const char **options = calloc(program->n_options + N_OWN_OPTIONS, sizeof *options);
  *binary = calloc(1, sizeof **binary);
  if (!options || !*binary) {
    status = core->no_memory(error, "compiling");
    goto free_options;
  }
  status = choose_architecture(nvrtc, program, architecture, &(*binary)->is_ptx, error);
  if (status) goto free_options;
  options[n_options++] = architecture;
  options[n_options++] = "-lineinfo";
  if (program->is_part) options[n_options++] = "-dlto"; /* the linker generates the code */
  if (program->is_part) options[n_options++] = "-rdc=true";
  for (uint32_t k = 0; k < program->n_options; k++) options[n_options++] = program->options[k];
  options[n_options++] = MINIMAL;
  status = compile_minimal_first(nvrtc, program, options, n_options, *binary, error);
free_options:
  free(options);
  return status;
}

void cuplug_free_binary(cuplug_binary *binary) {
  if (!binary) return;
  empty(binary);
  free(binary);
}
