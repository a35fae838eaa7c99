/* SPDX-License-Identifier: Apache-2.0 */
#include "signature/words.h"

#include "base/near.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* By the bits of CUPLUG_WORD_INOUT ... */
static const char *const words[] = {"inout", "zero", "detached", "host"};
enum { N_WORDS = sizeof words / sizeof *words };

static int is_word_at(const char *text, const char *word, size_t n) {
  return !strncmp(text, word, n) && !word[n];
}

static const char *skip_word(const char *at) {
  while (cuplug__is_word(*at)) at++;
  while (*at == ' ') at++;
  return at;
}

/* Whether a `where` clause begins there, as it does behind the short form of an output. */
static int is_where(const char *at) {
  return !strncmp(at, "where", 5) && !cuplug__is_word(at[5]) && *skip_word(at) != ':';
}

/* Refuses what resembles an allowed word. */
static int check_unknown(cuplug__parser *p, uint32_t allowed, size_t n) {
  char seen[CUPLUG_MAX_NAME];
  if (n >= sizeof seen) return CUPLUG_OK;
  snprintf(seen, sizeof seen, "%.*s", (int)n, p->at);
  for (int k = 0; k < N_WORDS; k++) {
    if (!(allowed >> k & 1) || cuplug__name_distance(seen, words[k]) < 0) continue;
    p->token = p->at;
    return cuplug__fail(p->error, CUPLUG_ERROR_VALUE,
                        "%s: byte %zu: got \"%s\" before a name; did you mean %s?", p->what,
                        (size_t)(p->at - p->s->text), seen, words[k]);
  }
  return CUPLUG_OK;
}

int cuplug__parse_words(cuplug__parser *p, uint32_t allowed, uint32_t *found) {
  *found = 0;
  for (;;) {
    cuplug__skip_space(p);
    const char *next = skip_word(p->at);
    size_t n = 0;
    int k = 0;
    if (!cuplug__is_word(*next) || next == p->at || is_where(next)) return CUPLUG_OK;
    while (cuplug__is_word(p->at[n])) n++;
    while (k < N_WORDS && !(allowed >> k & 1 && is_word_at(p->at, words[k], n))) k++;
    if (k == N_WORDS) return check_unknown(p, allowed, n);
    *found |= 1u << k;
    p->at = next;
  }
}
