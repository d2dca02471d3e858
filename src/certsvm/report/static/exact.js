"use strict";
// Checks the certificates of a model with integers alone: nothing is rounded. A certificate is true
// if J of the weights is at most primal + primal_rounding, and L of the witness's alpha at least
// dual - dual_rounding, since L(alpha) <= J(w) for all w and every alpha of the box. Every float64
// is an integer over a power of two, written here as [m, e] for m / 2^e. verification/exact.py of
// certsvm is the same in Python; docs/model-format.md says what is in the files.

const bits = new DataView(new ArrayBuffer(8));
function ratio(x) {
  if (Number.isInteger(x)) return [BigInt(x), 0];
  const word = wordOf(Math.abs(x)), exponent = word >> 52n;
  const m = (word & 0xfffffffffffffn) + (exponent && 1n << 52n);
  return [x < 0 ? -m : m, 1075 - Math.max(Number(exponent), 1)];
}

const wordOf = (x) => { bits.setFloat64(0, x); return bits.getBigUint64(0); };
// The number before a positive one.
const before = (x) => { bits.setBigUint64(0, wordOf(x) - 1n); return bits.getFloat64(0); };

// Numbers over one power of two, which grows when it has to.
class Sums {
  constructor(n) { this.m = new Array(n).fill(0n); this.e = 0; }
  static of(numbers) { return numbers.reduce((sums, x, i) => sums.add(i, ...ratio(x)), new Sums(numbers.length)); }
  add(i, m, e) {
    if (e > this.e) [this.m, this.e] = [this.m.map((n) => n << BigInt(e - this.e)), e];
    this.m[i] += m << BigInt(this.e - e);
    return this;
  }
}

// Fractions [n, d] with d > 0.
const over2 = (m, e) => [m, 1n << BigInt(e)];
const fraction = (x) => over2(...ratio(x));
const plus = ([a, b], [c, d]) => [a * d + c * b, b * d];
const minus = (a, [c, d]) => plus(a, [-c, d]);
const times = ([a, b], [c, d]) => [a * c, b * d];
const over = ([a, b], [c, d]) => (c < 0n ? [-a * d, -b * c] : [a * d, b * c]);
// With the squared hinge, quotients are rounded up to multiples of 2^-4400, which lowers L.
const QUOTIENT = 4400;

// One class against the others.
class Problem {
  constructor(claim, weights, codes, scale) {
    const [squared, free] = [claim.loss === "squared_hinge", claim.intercept_scaling > 0 && !claim.penalize_intercept];
    Object.assign(this, { claim, codes, scale, squared, free, d: weights.length - 1, feasible: true });
    [this.weights, this.losses] = [Sums.of(weights), new Sums(1)];
    // Of the rows of either label: sum_k alpha_k label_k x_k, and sum_k alpha_k^2 / s_k.
    [this.v, this.squares] = [[new Sums(weights.length), new Sums(weights.length)], [0n, 0n]];
  }

  // Row k has the label y = +-1 and the weight s. The model's last weight is that of a constant one.
  add(k, y, s, columns, row) {
    const { m, e } = this.weights, [ms, es] = ratio(s), side = y < 0 ? 1 : 0;
    let sum = m[this.d] << BigInt(row.e);
    columns.forEach((j, n) => { sum += m[j] * row.m[n]; });
    const loss = (1n << BigInt(e + row.e)) - BigInt(y) * sum, p = this.squared ? 2 : 1;
    if (loss > 0n) this.losses.add(0, ms * loss ** BigInt(p), es + p * (e + row.e));
    if (!this.codes) return;
    if (k >= this.codes.length) throw Error(`the witness is about ${k} rows`);
    const box = this.claim.C * s, top = 2 ** (8 * this.codes.BYTES_PER_ELEMENT) - 1;
    const alpha = box * (this.scale * (this.codes[k] / top));
    this.feasible &&= alpha >= 0 && alpha < Infinity && (alpha <= box || (this.squared && s > 0));
    if (!this.feasible || alpha === 0) return;
    let [[ma, ea], [mc, ec]] = [ratio(alpha), ratio(this.claim.C)];
    if (this.squared) {
      const n = ma ** 2n << BigInt(QUOTIENT + es), d = ms << BigInt(2 * ea);
      this.squares[side] += (n + d - 1n) / d;
    } else if (ma << BigInt(ec + es) > mc * ms << BigInt(ea)) [ma, ea] = ratio(before(alpha));  // C s was rounded up.
    const v = this.v[side];
    v.add(this.d, 0n, ea + row.e);
    const factor = BigInt(y) * ma << BigInt(v.e - ea - row.e);
    columns.forEach((j, n) => { v.m[j] += factor * row.m[n]; });
    v.m[this.d] += factor << BigInt(row.e);
  }

  J() {
    const { m, e } = this.weights, rho = fraction(this.claim.intercept_scaling);
    const last = m[this.d] && !this.free ? over(over2(m[this.d], e), rho) : [0n, 1n];
    const square = plus(over2(m.slice(0, -1).reduce((sum, x) => sum + x * x, 0n), 2 * e), times(last, last));
    return plus(times(square, [1n, 2n]), times(fraction(this.claim.C), over2(this.losses.m[0], this.losses.e)));
  }

  // If the intercept is free, the alpha of the label with the larger sum are scaled down.
  L() {
    const [a, b] = this.v, e = Math.max(a.e, b.e), one = [1n, 1n];
    for (const v of this.v) v.add(0, 0n, e);
    const [p, n] = [a.m[this.d], -b.m[this.d]];
    const f = this.free && p !== n ? (p > n ? [[n, p], one] : [one, [p, n]]) : [one, one];
    const [fa, fb, d] = [f[0][0] * f[1][1], f[1][0] * f[0][1], f[0][1] * f[1][1] << BigInt(e)];
    const sum = (j) => fa * a.m[j] + fb * b.m[j], last = times([sum(this.d), d], fraction(this.claim.intercept_scaling));
    const square = a.m.slice(0, -1).reduce((total, _, j) => total + sum(j) ** 2n, 0n);
    let L = minus([fa * p + fb * n, d], times(plus([square, d * d], times(last, last)), [1n, 2n]));
    for (const [i, q] of this.squares.entries()) L = minus(L, over(times(times(f[i], f[i]), over2(q, QUOTIENT + 2)), fraction(this.claim.C)));
    return L;
  }

  verdict() {
    const c = this.claim, numbers = [c.primal, c.primal_rounding, c.dual, c.dual_rounding, c.C, c.intercept_scaling];
    const valid = numbers.every(Number.isFinite) && c.C > 0 && c.intercept_scaling >= 0 && this.feasible
      && (c.intercept_scaling > 0 || this.weights.m[this.d] === 0n) && ["hinge", "squared_hinge"].includes(c.loss);
    if (!valid) return { verdict: "refuted", gap: null };
    const J = this.J(), L = this.codes ? this.L() : null;
    const above = minus(minus(J, fraction(c.primal)), fraction(c.primal_rounding));
    const below = minus(minus(fraction(c.dual), fraction(c.dual_rounding)), L ?? J);
    const gap = L && L[0] > 0n ? roundedUp(minus(over(J, L), [1n, 1n])) : null;
    return { verdict: above[0] > 0n || below[0] > 0n ? "refuted" : L ? "confirmed" : "half confirmed", gap };
  }
}

// A fraction as a number of four digits that is no smaller.
function roundedUp([n, d]) {
  for (let e = n.toString().length - d.toString().length - 5; ; e++) {
    const scaled = e > 0 ? [n, d * 10n ** BigInt(e)] : [n * 10n ** BigInt(-e), d];
    const q = (scaled[0] + scaled[1] - 1n) / scaled[1];
    if (q <= 9999n) return Number(`${q}e${e}`);
  }
}

// The content and the arrays of a model or witness: a safetensors file, in base64.
function container(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const first = 8 + Number(new DataView(bytes.buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, first)));
  // JSON has no infinity, and an integer beyond 2^53 would be rounded.
  const content = header.__metadata__.certsvm.replace(/"(?:[^"\\]|\\.)*"|-?Infinity|-?\d[\d.e+-]*/gi,
    (token) => (/^-?(Infinity|\d{16,})$/.test(token) ? "null" : token));
  const types = { F64: Float64Array, U8: Uint8Array, U16: Uint16Array, U32: Uint32Array };
  const array = (name) => {
    const { dtype, shape: [n, width = 1], data_offsets: [begin, end] } = header[name];
    const flat = new types[dtype](bytes.slice(first + begin, first + end).buffer);
    return Array.from({ length: n }, (_, i) => flat.subarray(i * width, (i + 1) * width));
  };
  return { ...JSON.parse(content).content, array };
}

function number(text) {
  const value = { true: 1, false: 0 }[text.trim().toLowerCase()] ?? (/^[\d\s.e+-]*\d[\d\s.]*$/i.test(text) ? Number(text) : NaN);
  if (!Number.isFinite(value)) throw Error(`${JSON.stringify(text)} is not a finite number`);
  return value;
}

// The rows of libsvm text: label, weight, columns, values.
function* libsvmRows(text, base, seen) {
  for (const line of text.split("\n")) {
    [seen.line, seen.read] = [seen.line + 1, seen.read + line.length + 1];
    const [label, ...items] = line.split("#")[0].split(/\s+/).filter((item) => item && !item.startsWith("qid:"));
    const pairs = items.map((item) => item.split(":"));
    if (!pairs.every((pair) => pair.length === 2 && /^\+?\d+$/.test(pair[0]))) throw Error("not a list of index:value");
    if (label !== undefined) yield [number(label), 1, pairs.map(([j]) => Number(j) - base), pairs.map(([, x]) => number(x))];
  }
}

// The lines of CSV, as lists of fields.
function* linesOf(text, separator, seen) {
  const field = new RegExp(`(?:"((?:[^"]|"")*)"|(?!")([^${separator}\r\n]*))(${separator}|\r?\n|$)`, "gy");
  for (let fields = []; field.lastIndex < text.length || fields.length;) {
    const match = field.exec(text);
    if (!match) throw Error("a quote is not closed, or text follows it");
    fields.push(match[1]?.replaceAll('""', '"') ?? match[2]);
    if (match[3] === separator) continue;
    [seen.line, seen.read] = [seen.line + 1, field.lastIndex];
    if (fields.length > 1 || fields[0]) yield fields;
    fields = [];
  }
}

// The rows of a table, which begins with the names of its columns.
function* tableRows(text, { classes, parameters, feature_names }, options, seen) {
  const count = (mark) => text.split("\n", 1)[0].split(mark).length;
  const lines = linesOf(text, [",", "\t", ";"].reduce((a, b) => (count(b) > count(a) ? b : a)), seen);
  const header = lines.next().value ?? [], place = (name) => {
    if (header.filter((other) => other === name).length !== 1) throw Error(`there is not one column ${name}`);
    return header.indexOf(name);
  };
  seen.label = options.label || (header.includes("label") ? "label" : header.at(-1));
  const label = place(seen.label), weight = options.weight ? place(options.weight) : -1;
  const others = header.filter((_, n) => n !== label && n !== weight), names = feature_names ?? others;
  // A column of strings is several features, one for each value.
  const values = names.map(() => null), columns = [...names], spans = Object.entries(parameters.one_hot ?? {});
  for (const [column, [from, to]] of spans)
    for (let j = from; j < to; j++) [columns[j], values[j]] = [column, names[j].slice(column.length + 1)];
  if (names.some((name, j) => values[j] !== null && name !== `${columns[j]}=${values[j]}`)) throw Error("a feature of a one-hot column is not called column=value");
  const places = columns.map(place), read = (fields, n, j) => (values[j] === null ? number(fields[n]) : Number(fields[n] === values[j]));
  if (places.includes(label) || places.includes(weight)) throw Error("the model uses the labels or weights as a feature");
  [seen.unused, seen.oneHot] = [others.filter((name) => !columns.includes(name)), spans.map(([column]) => column)];
  for (const fields of lines) {
    if (fields.length !== header.length) throw Error(`there are ${fields.length} fields, not ${header.length}`);
    const own = typeof classes[0] === "string" ? fields[label] : number(fields[label]);
    const row = places.map((n, j) => read(fields, n, j));
    if (spans.some(([, span]) => !row.slice(...span).includes(1))) throw Error("the model does not know a value of a column of categories");
    yield [own, weight < 0 ? 1 : number(fields[weight]), [...places.keys()], row];
  }
}

// The verdict on each class, and what was read. An error names the line.
async function verifyExactly(modelText, witnessText, file, options = {}, progress = () => {}) {
  const model = container(modelText), witness = witnessText ? container(witnessText) : null;
  const { classes, parameters } = model, seen = { line: 0, rows: 0, values: 0, read: 0, of: file.size };
  const [coef, intercept, factors] = ["coef", "intercept", "class_weight"].map(model.array), d = coef[0].length;
  const [codes, scales] = witness ? ["codes", "scale"].map(witness.array) : [[], []];
  const problems = model.certificates.map((claim, i) => new Problem(claim, [...coef[i], intercept[i][0]], codes[i], scales[i]?.[0]));
  if (!problems.length || ![...coef, ...intercept].every((numbers) => numbers.every(Number.isFinite))) throw Error("the model has no certificate, or a weight that is not finite");
  const two = classes.length === 2, text = typeof classes[0] === "string", utf8 = new TextEncoder();
  const sha = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  // Rows are hashed in groups of 4096, as words of 64 bits; a label that is a string, by its digest.
  const labels = await Promise.all(classes.map(async (c) => (text ? new BigUint64Array((await sha(utf8.encode(c))).buffer) : [wordOf(Number(c) + 0)])));
  let [digests, group] = [[], []];
  const close = async () => { if (group.length) digests.push(await sha(new BigUint64Array(group))); group = []; await progress(seen); };
  try {
    const data = await file.text(), base = parameters.zero_based ? 0 : 1;
    const rows = /\.(csv|tsv)$/i.test(file.name) ? tableRows(data, model, options, seen) : libsvmRows(data, base, seen);
    for (const [label, s, places, given] of rows) {
      const at = classes.findIndex((c) => (text ? c === label : Number(c) === label));
      if (at < 0) throw Error(`the model does not know the label ${label}`);
      if (!places.every((j, n) => j > (n ? places[n - 1] : -1) && j < d)) throw Error(`columns do not ascend, or one is beyond the ${d} of the model`);
      const numbers = parameters.float32 ? given.map(Math.fround) : given;
      const weight = factors[at][0] * s;
      if (!(Math.min(s, weight) >= 0 && Math.max(...numbers.map(Math.abs), s, weight) < Infinity)) throw Error("a weight is negative, or a number infinite");
      const entries = places.map((j, n) => [j, numbers[n]]).filter(([, x]) => x !== 0);
      group.push(BigInt(entries.length), ...labels[at], ...entries.flatMap(([j, x]) => [BigInt(j), wordOf(x)]));
      const columns = entries.map(([j]) => j), row = Sums.of(entries.map(([, x]) => x));
      problems.forEach((problem, i) => {
        const own = two || i === at ? factors[at][0] : 1;
        problem.add(seen.rows, at === (two ? 1 : i) ? 1 : -1, own * s, columns, row);
      });
      seen.values += entries.length;
      if (++seen.rows % 4096 === 0) await close();
    }
  } catch (error) {
    throw Error(`${file.name}${seen.line ? `, line ${seen.line}` : ""}: ${error.message}`);
  }
  await close();
  const counts = BigInt64Array.of(BigInt(seen.rows), BigInt(seen.values)), kind = !seen.rows ? "" : text ? "s" : "n";
  const whole = await sha(await new Blob([counts, kind, ...digests]).arrayBuffer());
  seen.digest = [...whole].map((b) => b.toString(16).padStart(2, "0")).join("");
  return { verdicts: problems.map((problem, i) => ({ label: classes[two ? 1 : i], ...problem.verdict() })), seen, same: model.fingerprint && model.fingerprint.digest === seen.digest };
}
