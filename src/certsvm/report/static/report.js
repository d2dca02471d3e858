"use strict";
// The slider chooses a value of C; figures, charts and weights follow.
const slider = document.querySelector(".slider");
const { Cs, share, shown, fitted, weights } =
  JSON.parse(document.getElementById("columns").textContent);
const charts = [...document.querySelectorAll(".followed svg")];
const cursors = charts.map((chart) => {
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  line.setAttribute("class", "cursor");
  line.setAttribute("y1", chart.dataset.top);
  line.setAttribute("y2", chart.dataset.bottom);
  return chart.appendChild(line);
});

// Between two fits, weights are linear in C.
function interpolated(values, C) {
  const next = fitted.findIndex((fit) => C <= fit);
  if (next === 0 || fitted[next] === C) return values[next];
  const part = (C - fitted[next - 1]) / (fitted[next] - fitted[next - 1]);
  return values[next - 1] + part * (values[next] - values[next - 1]);
}

function showWeights(group, { names, values }, C) {
  const at = values.map((column) => interpolated(column, C));
  const order = [...at.keys()].sort((a, b) => Math.abs(at[b]) - Math.abs(at[a]));
  const longest = Math.abs(at[order[0]]) || 1;
  group.querySelectorAll(".bar").forEach((row, n) => {
    const value = at[order[n]];
    const width = 50 * Math.abs(value / longest);
    const [name, bar] = [row.querySelector("span"), row.querySelector("i")];
    name.textContent = name.title = names[order[n]];
    bar.className = value < 0 ? "negative" : "";
    bar.style.left = `${value < 0 ? 50 - width : 50}%`;
    bar.style.width = `${width}%`;
    row.querySelector("b").textContent = Number(value.toPrecision(3));
  });
}

function show() {
  const i = Number(slider.querySelector("input").value);
  for (const output of slider.querySelectorAll("output")) {
    output.textContent = shown[output.dataset.column][i];
  }
  charts.forEach((chart, n) => {
    const { left, right } = chart.dataset;
    const x = Number(left) + share[i] * (Number(right) - Number(left));
    cursors[n].setAttribute("x1", x);
    cursors[n].setAttribute("x2", x);
  });
  slider.querySelectorAll(".weights").forEach((group, n) => showWeights(group, weights[n], Cs[i]));
}

slider.querySelector("input").addEventListener("input", show);
show();
