"use strict";
// The data file that is chosen or dropped is checked against the model of this page.
const check = document.getElementById("check");
const [picker, label, weight] = check.querySelectorAll("input");
const [bar, verdicts, about] = ["progress", "tbody", "p.about"].map((what) => check.querySelector(what));
const embedded = (id) => document.getElementById(id)?.textContent;
// Text in a browser is limited to some 500 MB.
const LARGEST_FILE = 4e8;

function told(summary, seen, same) {
  const unused = seen.unused?.length ? `; columns not used: ${seen.unused.join(", ")}` : "";
  const encoded = seen.oneHot?.length ? `; one-hot: ${seen.oneHot.join(", ")}` : "";
  const column = seen.label ? `; labels: column ${seen.label}${encoded}${unused}` : "";
  const known = { true: "the training data", false: "NOT the training data, or not in their order" }[same];
  about.textContent = `${summary} Read: ${seen.rows} rows, ${seen.values} values${column}; `
    + `SHA-256 ${seen.digest}${known ? `: ${known}` : ""}.`;
}

async function run(file) {
  if (!file) return;
  verdicts.replaceChildren();
  check.dataset.verdict = "";
  bar.hidden = false;
  bar.removeAttribute("value");
  about.textContent = `Reading ${file.name} ...`;
  try {
    if (file.size > LARGEST_FILE) throw Error(`${file.name} is too large for a page: use certsvm verify --exact`);
    const options = { label: label.value, weight: weight.value };
    let last = 0;
    const { verdicts: found, seen, same } = await verifyExactly(embedded("model"), embedded("witness"), file, options, async (at) => {
      about.textContent = `${at.rows.toLocaleString("en")} rows ...`;
      if (at.of) bar.value = at.read / at.of;
      // Let the page be drawn.
      if (performance.now() - last > 100) { await new Promise((done) => setTimeout(done)); last = performance.now(); }
    });
    for (const { label: name, verdict, gap } of found) {
      const row = verdicts.insertRow();
      for (const text of [name, verdict, gap === null ? "not proved" : `at most ${Number((100 * gap).toPrecision(4))} %`]) row.insertCell().textContent = text;
    }
    const worst = ["refuted", "half confirmed", "confirmed"].find((word) => found.some(({ verdict }) => verdict === word));
    check.dataset.verdict = worst;
    told({
      confirmed: "Confirmed: both bounds were recomputed from this file, without rounding.",
      "half confirmed": "Half confirmed: J was recomputed from this file, without rounding; there is no witness for L.",
      refuted: "Refuted: the claims do not hold for this file.",
    }[worst], seen, same);
  } catch (error) {
    check.dataset.verdict = "error";
    about.textContent = error.message;
  }
  bar.hidden = true;
}

picker.addEventListener("change", () => run(picker.files[0]));
for (const type of ["dragover", "drop"]) {
  check.addEventListener(type, (event) => {
    event.preventDefault();
    if (type === "drop") run(event.dataTransfer.files[0]);
  });
}
