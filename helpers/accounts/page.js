"use strict";
// Save what was decided about the pairs of this page as decisions.csv, which `authorbook` reads.
// An apostrophe keeps a spreadsheet from computing a text, as helpers/core/messages.py does.
const formula = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const plain = (text) => (formula.test(text) ? "'" + text : text);
const quoted = (text) => '"' + plain(text).replaceAll('"', '""') + '"';
const rows = () => {
  const lines = [];
  const who = document.getElementById("who").value.trim();
  const when = new Date().toISOString().slice(0, 19) + "Z";
  for (const pair of document.querySelectorAll(".pair")) {
    const decision = pair.querySelector("input[type=radio]:checked");
    if (!decision) continue;
    const note = pair.querySelector(".note input").value.trim();
    const values = [pair.dataset.a, pair.dataset.b, decision.value, who, when, note];
    lines.push(values.map(quoted).join(","));
  }
  return lines;
};
document.getElementById("save")?.addEventListener("click", () => {
  const lines = rows();
  const saved = document.getElementById("saved");
  if (!lines.length) {
    saved.textContent = "Nothing is decided yet.";
    return;
  }
  const header = "account_a,account_b,decision,who,when,note";
  const content = [header, ...lines].join("\r\n") + "\r\n";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "text/csv" }));
  link.download = "decisions.csv";
  link.click();
  URL.revokeObjectURL(link.href);
  saved.textContent = `${lines.length} decided.`;
});
// A printed page shows every pair, as far as it is read.
addEventListener("beforeprint", () => {
  for (const pair of document.querySelectorAll(".pair")) pair.open = true;
});
