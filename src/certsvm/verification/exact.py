"""Checks the certificates of a certsvm model with integers and fractions alone: nothing is rounded.

    python exact.py MODEL DATA [--label NAME] [--weight NAME] [--zero-based] [--float32] [--json]

This file needs Python's standard library and nothing else. For each class, a certificate claims
two numbers about J(w) = |w|^2 / 2 + C sum_k s_k loss(label_k w.x_k): J of the model's weights is at
most ``primal + primal_rounding``, and no weights have a J below ``dual - dual_rounding``. The first
is computed. The second follows from weak duality: L(alpha) <= J(w) for all w and every alpha in the
box 0 <= alpha_k <= C s_k, and the witness beside the model gives one. Every float64 is a fraction,
so J and L are fractions, too, and compared with the claims exactly.

docs/check-it-yourself.md in certsvm's documentation has the theorem, docs/model-format.md the files
that are read here. Exit codes: 0 confirmed, 3 half confirmed (there is no witness), 1 refuted,
2 something cannot be read.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import json
import lzma
import math
import os
import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from hashlib import sha256
from itertools import chain
from operator import mul
from typing import Any

Row = tuple[Any, float, list[int], list[float]]
"""Label, weight, columns in ascending order, counted from 0, and their values."""
ExactWitness = Callable[[int, float], float]
"""Gives alpha_k, from k and C s_k in float64."""
Exact = tuple[list[int], int]
"""Numbers as integers, and e: they are these over 2^e."""

# Quotients are rounded up to multiples of 2^-4400: a lower L is a bound, too.
BITS = 4400
PROBLEM = ("C", "loss", "intercept_scaling", "penalize_intercept")
NUMBERS = ("C", "intercept_scaling", "primal", "primal_rounding", "dual", "dual_rounding")
LONGEST_LINE = 1 << 28
TYPES: dict[str, Any] = {"F64": "d", "U8": "B", "U16": "H", "U32": "I"}
OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}


def exactly(numbers: Iterable[float]) -> Exact:
    """Floats as integers."""
    ratios = [x.as_integer_ratio() for x in numbers]
    common = max(d for _, d in ratios)
    return [n * (common // d) for n, d in ratios], common.bit_length() - 1


class Problem:
    """One class against the others.

    The last of ``weights`` is the intercept, and the last column of all rows is one. ``dual`` says
    whether there is an alpha.
    """

    def __init__(self, claim: dict[str, Any], weights: Sequence[float], *, dual: bool) -> None:
        self.about = {name: claim[name] for name in PROBLEM}
        self.C, self.rho, *self.claimed = (Fraction(float(claim[name])) for name in NUMBERS)
        self.squared = {"hinge": False, "squared_hinge": True}[claim["loss"]]
        self.free = {False: self.rho > 0, True: False}[claim["penalize_intercept"]]
        self.weights, self.dual = exactly(weights), dual
        self.losses, self.feasible = Fraction(0), True
        # Of the rows of either label: sum_k alpha_k label_k x_k, times 2^e, and
        # sum_k alpha_k^2 / s_k, times 2^BITS.
        self.v, self.e, self.squares = [[0] * len(weights), [0] * len(weights)], 0, [0, 0]

    def add(self, y: int, s: float, columns: list[int], row: Exact, alpha: float | None) -> None:
        """Add a row, with the label y = +-1 and the weight s."""
        (w, e), (values, f) = self.weights, row
        margin = y * sum(map(mul, map(w.__getitem__, columns), values))
        distance = Fraction(max(0, (1 << (e + f)) - margin), 1 << (e + f))
        self.losses += Fraction(s) * distance ** (1 + self.squared)
        if alpha is not None:
            self.add_alpha(alpha, y, s, columns, row)

    def add_alpha(self, alpha: float, y: int, s: float, columns: list[int], row: Exact) -> None:
        """Add alpha of a row, which must be in the box; that of the hinge may be rounded up."""
        end = math.inf if self.squared and s > 0.0 else float(self.C) * s
        self.feasible &= 0.0 <= alpha <= end and alpha < math.inf
        if not self.feasible or alpha == 0.0:
            return
        if not self.squared and alpha > self.C * Fraction(s):
            alpha = math.nextafter(alpha, 0.0)
        (values, f), side, (n, d) = row, int(y < 0), alpha.as_integer_ratio()
        if self.squared:
            m, c = s.as_integer_ratio()
            # Rounded up.
            self.squares[side] -= -(n * n * c << BITS) // (d * d * m)
        bits = d.bit_length() - 1 + f
        if bits > self.e:
            self.v, self.e = [[x << (bits - self.e) for x in v] for v in self.v], bits
        factor, v = y * n << (self.e - bits), self.v[side]
        for j, x in zip(columns, values, strict=True):
            v[j] += factor * x

    def verdict(self) -> dict[str, Any]:
        """Compare J and L with the claims; without a feasible alpha, L is None."""
        (*w, b), e = self.weights
        # There is no intercept without a column for it.
        sane = self.C > 0 <= self.rho and (self.rho > 0 or b == 0) and self.feasible
        last = Fraction(b, 1 << e) / self.rho if b and self.rho and not self.free else 0
        J = (Fraction(sum(map(mul, w, w)), 4**e) + last**2) / 2 + self.C * self.losses
        L = self.L() if self.dual and sane else None
        primal, above, dual, below = self.claimed
        true = sane and primal + above >= J and (J if L is None else L) >= dual - below
        word = "refuted" if not true else "half confirmed" if L is None else "confirmed"
        low = None if L is None else dual - L
        found = {"J": J, "L": L, "J - primal": J - primal, "dual - L": low}
        return {**self.about, "verdict": word, **found, "gap": J / L - 1 if L and L > 0 else None}

    def L(self) -> Fraction:
        """L of alpha, balanced if the intercept is free."""
        # The sums of alpha of either label, times 2^e, and by what each is multiplied: g and h over
        # a common denominator.
        p, n = self.v[0][-1], -self.v[1][-1]
        g, h, common = (n, p, max(p, n)) if self.free and max(p, n) else (1, 1, 1)
        unit = common << self.e
        *v, last = (g * a + h * b for a, b in zip(*self.v, strict=True))
        L = Fraction(g * p + h * n, unit) - (self.rho * Fraction(last, unit)) ** 2 / 2
        L -= Fraction(sum(map(mul, v, v)), 2 * unit**2)
        for factor, squares in zip((g, h), self.squares, strict=True):
            L -= Fraction(factor**2 * squares, common**2 << BITS) / (4 * self.C)
        return L


def judge(
    claims: Sequence[dict[str, Any]], classes: list[Any], class_weight: Sequence[float],
    weights: Sequence[Sequence[float]], rows: Iterable[Row], witnesses: Sequence[ExactWitness],
) -> list[dict[str, Any]]:  # fmt: skip
    """The verdicts on all classes; without witnesses, their list is empty."""
    dual = len(witnesses) > 0
    problems = [Problem(*parts, dual=dual) for parts in zip(claims, weights, strict=True)]
    if not problems:
        raise ValueError("the model has no certificate")
    two, d = len(classes) == 2, len(weights[0]) - 1
    for k, (label, s, columns, values) in enumerate(rows):
        if label not in classes:
            raise ValueError(f"the model does not know the label {label!r}")
        if sorted({*columns, -1, d}) != [-1, *columns, d]:
            raise ValueError(f"a column is not below {d}, or they do not ascend")
        own = class_weight[classes.index(label)] * s
        if own < 0.0 or s < 0.0:
            raise ValueError("a weight is negative")
        row = exactly([*values, 1.0])
        for i, (c, problem) in enumerate(zip(classes[two:], problems, strict=True)):
            y = 1 if label == c else -1
            weight = own if two or y == 1 else s
            alpha = witnesses[i](k, float(problem.C) * weight) if dual else None
            problem.add(y, weight, [*columns, d], row, alpha)
    return [{"class": c, **p.verdict()} for c, p in zip(classes[two:], problems, strict=True)]


def container(path: str, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The content of a model or witness, and its arrays."""
    with open(path, "rb") as file:
        data = file.read()
    first = 8 + int.from_bytes(data[:8], "little")
    header, arrays = json.loads(data[8:first]), dict[str, Any]()
    document = json.loads(header.pop("__metadata__")["certsvm"])
    if (document["format"], document["kind"], sys.byteorder) != (1, kind, "little"):
        raise ValueError(f"{path} is no {kind} of format 1")
    for name, entry in header.items():
        begin, end = (first + offset for offset in entry["data_offsets"])
        flat = memoryview(data[begin:end]).cast(TYPES[entry["dtype"]])
        width = math.prod(entry["shape"][1:])
        arrays[name] = [flat[i * width : (i + 1) * width] for i in range(entry["shape"][0])]
    return document["content"], arrays


def quantised(codes: Any, scale: float) -> ExactWitness:
    """The alpha of codes of 8, 16 or 32 bits."""
    return lambda k, box: box * (scale * (codes[k] / (256.0**codes.itemsize - 1.0)))


def lines(path: str, read: dict[str, Any]) -> Iterator[str]:
    """The lines of a text, plain or compressed; ``read`` has the number of the last."""
    with open(path, "rb") as file:
        opener = OPENERS.get(file.read(2), open)
    with opener(path, "rb") as file:
        while line := file.readline(LONGEST_LINE):
            read["line"] += 1
            if len(line) == LONGEST_LINE:
                raise ValueError(f"it has {LONGEST_LINE} bytes or more")
            yield line.decode()


def number(text: str) -> float:
    """The float64 nearest to a decimal number. Python would also read 1_0."""
    return float({"true": "1", "false": "0"}.get(text.lower(), text.replace("_", "?")))


def libsvm_rows(texts: Iterator[str], base: int) -> Iterator[Row]:
    """The rows of libsvm text."""
    for text in texts:
        label, *items = text.replace("_", "?").partition("#")[0].split() or [""]
        pairs = [item.split(":") for item in items if not item.startswith("qid:")]
        if label:
            yield float(label), 1.0, [int(j) - base for j, _ in pairs], [float(x) for _, x in pairs]


def csv_rows(
    texts: Iterator[str], content: dict[str, Any], d: int, read: dict[str, Any]
) -> Iterator[Row]:
    """The rows of a table, with the columns of the model by name, if it has names."""
    first = next(texts).lstrip("\ufeff")
    table = csv.reader(chain([first], texts), delimiter=max(",\t;", key=first.count), strict=True)
    header = next(table)
    label = read["label"] = read["label"] or ("label" if "label" in header else header[-1])
    others = [name for name in header if name not in (label, read["weight"])]
    names = content["feature_names"] or others
    sources: list[tuple[str, str | None]] = [(name, None) for name in names]
    spans = content["parameters"].get("one_hot") or {}
    for column, (a, b) in spans.items():
        sources[a:b] = [(column, name[len(column) + 1 :]) for name in names[a:b]]
    used = {column for column, _ in sources}
    read["one-hot"] = [*spans]
    read["used"] = [column for column in others if column in used]
    read["not used"] = [column for column in others if column not in used]
    if any(v is not None and f"{c}={v}" != n for (c, v), n in zip(sources, names, strict=True)):
        raise ValueError("a feature of a one-hot column is not called column=value")
    different = len({*header}) == len(header) and len({*sources}) == len(sources) == d
    if not different or not used <= {*others}:
        raise ValueError(f"the columns of the model are not {sorted(used)[:9]}, each once")
    for fields in table:
        row = dict(zip(header, fields, strict=True))
        values = [number(row[c]) if v is None else float(row[c] == v) for c, v in sources]
        if any(1.0 not in values[a:b] for a, b in spans.values()):
            raise ValueError("the model does not know a value of a column of categories")
        name = row[label] if isinstance(content["classes"][0], str) else number(row[label])
        weight = number(row[read["weight"]]) if read["weight"] else 1.0
        columns = [j for j, x in enumerate(values) if x]
        yield name, weight, columns, [values[j] for j in columns]


def digested(rows: Iterable[Row], read: dict[str, Any]) -> Iterator[Row]:
    """The same rows; ``read`` gets their number and digest, as docs/model-format.md defines it."""
    n_rows, n_values, kind, digests, group = 0, 0, b"", b"", sha256()
    for row in rows:
        label, _, columns, values = row
        entries = [(j, x) for j, x in zip(columns, values, strict=True) if x]
        name = sha256(label.encode()).digest() if isinstance(label, str) else b""
        kind, name = b"s" if name else b"n", name or struct.pack("<d", label + 0.0)
        group.update(struct.pack("<q", len(entries)) + name)
        group.update(struct.pack("<" + "qd" * len(entries), *chain(*entries)))
        n_rows, n_values = n_rows + 1, n_values + len(entries)
        if n_rows % 4096 == 0:
            digests, group = digests + group.digest(), sha256()
        yield row
    digests += group.digest() if n_rows % 4096 else b""
    digest = sha256(struct.pack("<qq", n_rows, n_values) + kind + digests).hexdigest()
    read |= {"rows": n_rows, "values": n_values, "digest": digest}


def verify_exactly(
    model: str, data: str, label: str | None = None, weight: str | None = None,
    zero_based: bool = False, float32: bool = False,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:  # fmt: skip
    """The verdicts on the certificates of a model in a file, and what was read of the data.

    Whatever cannot be read is a ValueError that names the file and the line.
    """
    read: dict[str, Any] = {"file": data, "line": 0, "label": label, "weight": weight}
    try:
        content, arrays = container(model, "model")
        parameters, claims = content["parameters"], content["certificates"]
        witnesses: list[ExactWitness] = []
        weights = [[*w, b] for w, (b,) in zip(arrays["coef"], arrays["intercept"], strict=True)]
        if os.path.exists(model + ".witness"):
            kept = container(model + ".witness", "witness")[1]
            witnesses = [*map(quantised, kept["codes"], chain(*kept["scale"]))]
        if any(ending in data for ending in (".csv", ".tsv")):
            rows = csv_rows(lines(data, read), content, len(weights[0]) - 1, read)
        else:
            read["zero based"] = zero_based or bool(parameters.get("zero_based"))
            rows = libsvm_rows(lines(data, read), not read["zero based"])
        read["float32"] = float32 or bool(parameters.get("float32"))
        if read["float32"]:
            rows = ((c, s, j, array("f", x).tolist()) for c, s, j, x in rows)
        factors = read["class weights"] = [factor for (factor,) in arrays["class_weight"]]
        rows = digested(rows, read)
        verdicts = judge(claims, content["classes"], factors, weights, rows, witnesses)
        known = content["fingerprint"]
        read["same data"] = known and known["digest"] == read["digest"]
    except Exception as error:
        place = f"{data}, line {read['line']}" if read["line"] else f"{model}, {data}"
        raise ValueError(f"{place}: {error}") from error
    return verdicts, read


def upwards(x: Fraction) -> float:
    """A fraction with six digits, rounded up."""
    context = Context(prec=6, rounding=ROUND_CEILING)
    return float(context.divide(*map(Decimal, x.as_integer_ratio())))


def main() -> int:
    """Print the verdicts; the exit code is that of the worst."""
    parser = argparse.ArgumentParser(description="Check a model's certificates without rounding.")
    for name in ("model", "data", "--label", "--weight"):
        parser.add_argument(name)
    for name in ("--zero-based", "--float32", "--json"):
        parser.add_argument(name, action="store_true")
    options = vars(parser.parse_args())
    as_json = options.pop("json")
    try:
        verdicts, read = verify_exactly(**options)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for verdict in verdicts:
        # A lower bound is rounded down.
        verdict["L"] = None if verdict["L"] is None else -upwards(-verdict["L"])
    text = json.dumps({"problems": verdicts, "data": read}, default=upwards)
    for facts in [] if as_json else [*json.loads(text)["problems"], read]:
        print(", ".join(f"{name}: {fact!r}" for name, fact in facts.items()))
    if as_json:
        print(text)
    words = {verdict["verdict"] for verdict in verdicts}
    if "half confirmed" in words:
        print(f"L was not checked: there is no {options['model']}.witness", file=sys.stderr)
    return 1 if "refuted" in words else 3 if "half confirmed" in words else 0


if __name__ == "__main__":
    sys.exit(main())
