"use strict";
// A slider chooses a position in columns of numbers; everything that shows a column follows.
for (const slider of document.querySelectorAll("[data-columns]")) {
  const columns = JSON.parse(document.getElementById(slider.dataset.columns).textContent);
  const input = slider.querySelector("input");
  const charts = document.querySelectorAll(`svg[data-follows="${slider.dataset.columns}"]`);
  const lines = [...charts].map((chart) => {
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    line.setAttribute("class", "cursor");
    line.setAttribute("y1", chart.dataset.top);
    line.setAttribute("y2", chart.dataset.bottom);
    chart.append(line);
    return line;
  });

  function show() {
    const i = Number(input.value);
    for (const output of slider.querySelectorAll("output[data-column]")) {
      output.textContent = columns[output.dataset.column][i];
    }
    charts.forEach((chart, n) => {
      const { left, right } = chart.dataset;
      const x = Number(left) + columns.share[i] * (Number(right) - Number(left));
      lines[n].setAttribute("x1", x);
      lines[n].setAttribute("x2", x);
    });
    for (const bar of slider.querySelectorAll("[data-weight]")) {
      const value = columns.weights[bar.dataset.weight][i];
      bar.querySelector("i").style.width = `${100 * Math.abs(value) / columns.longest}%`;
      bar.querySelector("i").className = value < 0 ? "negative" : "";
      bar.querySelector("b").textContent = value.toPrecision(3);
    }
  }

  input.addEventListener("input", show);
  show();
}
