/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the plugins on the search path, then replaces a plugin's file and loads the new code:
 *
 *     files libpositive.so new.so
 */
#include <cuplug/host.h>
#include <stdio.h>

/* Prints each file, and why it is not used. No code of plugins runs. */
static int list_files(cuplug_error *error) {
  cuplug_listing *listing;
  int status = cuplug_list(1, &listing, error);
  if (status) return status;
  for (size_t k = 0; k < cuplug_listing_n_files(listing); k++) {
    const cuplug_file *file = cuplug_listing_file(listing, k);
    const int is_used = cuplug_file_state(file) == CUPLUG_STATE_OK;
    printf("%s %s: %s\n", cuplug_file_name(file), cuplug_file_version(file),
           is_used ? "used" : cuplug_file_reason(file));
  }
  cuplug_free_listing(listing);
  return CUPLUG_OK;
}

/* Replaces *op by the operator of the new file. Operators found before keep the old code. */
static int replace(const char *path, const char *with, cuplug_operator **op, cuplug_error *error) {
  if (rename(with, path)) return perror(with), 1;
  return cuplug_reload(*op, op, error);
}

int main(int argc, char **argv) {
  cuplug_operator *op;
  cuplug_error error;
  if (argc != 3) return fputs("usage: files PLUGIN NEW\n", stderr), 2;
  if (list_files(&error) || cuplug_load(argv[1], &op, 1, NULL, &error))
    return fprintf(stderr, "%s\n", error.message), 1;
  printf("%s %s\n", cuplug_operator_name(op), cuplug_operator_version(op));
  if (replace(argv[1], argv[2], &op, &error)) return fprintf(stderr, "%s\n", error.message), 1;
  printf("%s %s\n", cuplug_operator_name(op), cuplug_operator_version(op));
  return 0;
}
