/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target on the files in the command line, without a fuzzer. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define MAX_BYTES (1 << 20)

static int replay(const char *path) {
  FILE *file = fopen(path, "rb");
  uint8_t *data = malloc(MAX_BYTES);
  if (!file || !data) {
    fprintf(stderr, "%s: cannot be read\n", path);
    return 1;
  }
  size_t bytes = fread(data, 1, MAX_BYTES, file);
  fclose(file);
  LLVMFuzzerTestOneInput(data, bytes);
  free(data);
  return 0;
}

int main(int n_args, char **args) {
  for (int k = 1; k < n_args; k++)
    if (replay(args[k])) return 1;
  printf("%d inputs\n", n_args - 1);
  return n_args < 2;
}
