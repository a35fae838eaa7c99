/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a signature: it is parsed, or refused with a reason and a place inside the text. */
#include <internal/signature.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void require(int condition) {
  if (!condition) abort();
}

static void check_parameter(const cuplug_signature *s, const cuplug_parameter *x) {
  require(memchr(x->name, 0, sizeof(x->name)) != NULL);
  require(x->type_variable >= -1 && x->type_variable < s->n_variables);
  require(x->n_dims >= 0 && x->n_dims <= 16 && x->n_choices >= 0 && x->n_choices <= 8);
  for (int32_t d = 0; d < x->n_dims; d++) {
    int is_named = x->dims[d].kind == CUPLUG_DIM_NAMED || x->dims[d].kind == CUPLUG_DIM_VARIADIC;
    require(!is_named || (x->dims[d].value >= 0 && x->dims[d].value < s->n_dim_names));
    require(x->dims[d].value >= 0);
  }
  for (int32_t c = 0; c < x->n_choices; c++) require(strlen(x->choices[c]) < sizeof(s->text));
}

static void check_parsed(const cuplug_signature *s, const char *text) {
  require(!strcmp(s->text, text) && *s->name);
  require(s->n_parameters <= CUPLUG_MAX_PARAMETERS && s->n_outputs <= CUPLUG_MAX_OUTPUTS);
  for (int32_t k = 0; k < s->n_parameters + s->n_outputs; k++)
    check_parameter(s, &s->parameters[k]);
  for (int32_t k = 0; k < s->n_variables; k++) require(s->variables[k].dtypes != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  cuplug_signature signature;
  cuplug_error error;
  uint32_t position;
  char *text = malloc(bytes + 1);
  if (!text) return 0;
  memcpy(text, data, bytes);
  text[bytes] = 0;
  int status = cuplug_parse_signature(text, &signature, &position, &error);
  if (!status) {
    check_parsed(&signature, text);
  } else {
    require(status == CUPLUG_ERROR_VALUE && error.status == status && *error.message);
    require(position <= strlen(text));
  }
  free(text);
  return 0;
}
