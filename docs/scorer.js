/* SPDX-License-Identifier: Apache-2.0 */
/* The order of search results: the theme's scores, with the page of symptoms first and the pages about
   the project last. */
const FIRST = /^troubleshooting$/, LAST = /^(benchmarks|reliability|architecture|reference\/(changes|contributing))$/;
var Scorer = {
  score: ([page, , , , score]) => score + (FIRST.test(page) ? 12 : LAST.test(page) ? -4 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
