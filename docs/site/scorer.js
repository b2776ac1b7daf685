// The ranking of search results: a heading that is the query first, such as a scheme's name; then guide, reference, reports.
// Sphinx puts this file in front of its own searchtools.js.
var Scorer = {
  score: ([page, title, anchor, , score]) => {
    const query = (new URLSearchParams(location.search).get("q") || "").trim().toLowerCase();
    const named = anchor && title.toLowerCase().endsWith(`> ${query}`) ? 20 : 0;
    const place = { guide: 8, reports: -8 }[page.split("/")[0]] || 0;
    return score + named + place;
  },
  // The defaults of Sphinx.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
