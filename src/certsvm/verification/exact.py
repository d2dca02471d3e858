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
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from hashlib import blake2b, sha256
from itertools import chain
from operator import mul
from typing import Any

Row = tuple[Any, float, list[int], list[float]]
"""Label, weight, columns in ascending order, counted from 0, and their values."""
Exact = tuple[list[int], int]
"""Numbers as integers, and e: they are these over 2^e."""

LONGEST_LINE = 1 << 28
BEGINNING = rb'{"__metadata__":{"certsvm":"{\"crc32\":\"'
TYPES: dict[str, Any] = {"F64": "d", "U8": "B", "U16": "H", "U32": "I"}
OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}


def exactly(numbers: Iterable[Any]) -> Exact:
    """Floats, or fractions like them, as integers."""
    ratios = [x.as_integer_ratio() for x in numbers]
    common = max(d for _, d in ratios)
    return [n * (common // d) for n, d in ratios], common.bit_length() - 1


def product(vector: Exact, columns: list[int], row: Exact) -> Fraction:
    """The inner product of a vector and a row."""
    terms = map(mul, map(vector[0].__getitem__, columns), row[0])
    return Fraction(sum(terms), 1 << (vector[1] + row[1]))


def total(terms: list[Fraction]) -> Fraction:
    """The sum, in halves: sums of many fractions grow long."""
    return terms[0] if len(terms) == 1 else total(terms[::2]) + total(terms[1::2])


class Problem:
    """One class against the others; ``witness`` has what its alpha is made of, if there is one.

    The last of ``weights`` is the intercept, and the last column of all rows is one.
    """

    def __init__(self, claim: dict[str, Any], weights: Sequence[float], witness: Any) -> None:
        names = ("C", "scale", "intercept_scaling", "primal_rounding", "dual_rounding")
        self.C, self.scale, *_ = numbers = [float(claim[name]) for name in names]
        self.exact_C, self.allowed, self.rho, self.up, self.down = map(Fraction, numbers)
        self.primal, self.dual = Fraction(float(claim["primal"])), Fraction(float(claim["dual"]))
        self.squared = {"hinge": False, "squared_hinge": True}[claim["loss"]]
        self.free = {False: self.rho > 0, True: False}[claim["penalize_intercept"]]
        self.intercept = "free" if self.free else f"of height {float(self.rho)}"
        self.weights, self.witness, d = exactly(weights), witness, len(weights) - 1
        if witness and "vectors" in witness:
            v = [Fraction(x) for x in witness["vectors"]]
            # An entry beyond the columns is for one of the height rho.
            self.vector = exactly([*v[:d], self.rho * sum(v[d:])])
        self.losses, self.feasible, self.squares = Fraction(0), True, dict[Any, Fraction]()
        # sum_k alpha_k label_k x_k, times 2^e, of the rows of either label.
        self.v, self.e = [[0] * (d + 1), [0] * (d + 1)], 0

    def add(self, k: int, y: int, s: float, columns: list[int], row: Exact) -> None:
        """Add row k, with the label y = +-1 and the weight s."""
        loss = max(Fraction(0), 1 - y * product(self.weights, columns, row))
        self.losses += Fraction(s) * loss ** (1 + self.squared)
        alpha = self.alpha(k, y, s, columns, row) if self.witness else 0.0
        inside = alpha <= self.C * s if not self.squared else s > 0.0 or alpha == 0.0
        self.feasible &= inside and 0.0 <= alpha < math.inf
        if not (self.feasible and alpha):
            return
        # C s may have been rounded up.
        box = Fraction(alpha) if self.squared else self.exact_C * Fraction(s)
        exact, side = min(Fraction(alpha), box), int(y < 0)
        if self.squared:
            self.squares[side, s] = self.squares.get((side, s), Fraction(0)) + exact**2
        bits = exact.denominator.bit_length() - 1 + row[1]
        if bits > self.e:
            self.v, self.e = [[n << (bits - self.e) for n in v] for v in self.v], bits
        m, v = y * exact.numerator << (self.e - bits), self.v[side]
        for j, x in zip(columns, row[0], strict=True):
            v[j] += m * x

    def alpha(self, k: int, y: int, s: float, columns: list[int], row: Exact) -> float:
        """Evaluate alpha of row k in float64, as docs/model-format.md says."""
        box, w = self.C * s, self.witness
        if "alpha" in w:
            return float(w["alpha"][k])
        if "codes" in w:
            value = box * (w["scale"][0] * (w["codes"][k] / (256.0 ** w["codes"].itemsize - 1.0)))
        else:
            distance = 1.0 - float(y * product(self.vector, columns, row))
            response = min(box, max(0.0, box / 2.0 + w["sigma"][0] * (s * distance)))
            value = self.scale * (2.0 * box * max(0.0, distance) if self.squared else response)
        return float(value if self.squared else min(box, value))

    def verdict(self) -> dict[str, Any]:
        """Compare J and L with the claims; without a feasible alpha, L is None."""
        (*w, b), e = self.weights
        last = Fraction(b, 1 << e) / self.rho if self.rho and not self.free else Fraction(0)
        J = (Fraction(sum(map(mul, w, w)), 4**e) + last**2) / 2 + self.exact_C * self.losses
        L = self.L() if self.witness and self.feasible else None
        gap = J / L - 1 if L is not None and L > 0 else None
        sane = self.exact_C > 0 <= min(self.allowed, self.rho, self.up, self.down)
        # There is no intercept without a column for it.
        sane &= self.feasible and (self.squared or self.allowed <= 1) and (self.rho > 0 or b == 0)
        low = J if L is None else L
        true = sane and J - self.primal <= self.up and self.dual - low <= self.down
        word = "refuted" if not true else "half confirmed" if L is None else "confirmed"
        below = None if L is None else self.dual - L
        about = {"C": self.C, "squared hinge": self.squared, "intercept": self.intercept}
        found = {"J": J, "L": L, "J - primal": J - self.primal, "dual - L": below, "gap": gap}
        return {**about, "verdict": word, **found}

    def L(self) -> Fraction:
        """L of alpha, balanced if the intercept is free."""
        unit = Fraction(1, 1 << self.e)
        f, sums = [Fraction(1), Fraction(1)], [abs(v[-1]) * unit for v in self.v]
        if self.free:
            f = [min(f[0], b / a) if a else b for a, b in (sums, sums[::-1])]
        # Integers are faster than fractions.
        common = math.lcm(f[0].denominator, f[1].denominator)
        g, h = (int(factor * common) for factor in f)
        *v, last = (g * a + h * b for a, b in zip(*self.v, strict=True))
        square = (sum(map(mul, v, v)) + (self.rho * last) ** 2) * (unit / common) ** 2
        terms = [f[0] * sums[0] + f[1] * sums[1] - square / 2]
        for (side, s), squares in self.squares.items():
            terms.append(-(f[side] ** 2) * squares / (4 * self.exact_C * Fraction(s)))
        return total(terms)


def judge(
    claims: Sequence[dict[str, Any]], classes: list[Any], class_weight: Sequence[float],
    weights: Sequence[Sequence[float]], rows: Iterable[Row], witnesses: Sequence[Any] | None = None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:  # fmt: skip
    """The verdicts on all classes, and how many rows and values were read, with their digest."""
    problems = list(map(Problem, claims, weights, witnesses or [None] * len(claims)))
    two, d = len(classes) == 2, len(weights[0]) - 1
    if len(set(classes)) < max(2, len(classes)) or min(class_weight) < 0.0:
        raise ValueError("the model has not two different classes, or a negative weight of one")
    n_rows, n_values, digests, group, kind = 0, 0, b"", sha256(), b""
    for label, s, columns, values in rows:
        if label not in classes:
            raise ValueError(f"the model does not know the label {label!r}")
        finite = all(map(math.isfinite, values)) and 0.0 <= s < math.inf
        if sorted({*columns, -1, d}) != [-1, *columns, d] or not finite:
            raise ValueError(f"a column is not below {d} and ascending, or a number not finite")
        entries = [(j, x) for j, x in zip(columns, values, strict=True) if x]
        name = sha256(label.encode()).digest() if isinstance(label, str) else b""
        kind, name = b"s" if name else b"n", name or struct.pack("<d", label + 0.0)
        group.update(struct.pack("<q", len(entries)) + name)
        group.update(struct.pack("<" + "qd" * len(entries), *chain(*entries)))
        columns, row = [*(j for j, _ in entries), d], exactly([*(x for _, x in entries), 1.0])
        for c, problem in zip(classes[two:], problems, strict=True):
            y, own = 1 if label == c else -1, label if two else c
            factor = class_weight[classes.index(own)] if label == own else 1.0
            problem.add(n_rows, y, factor * s, columns, row)
        n_rows, n_values = n_rows + 1, n_values + len(entries)
        if n_rows % 4096 == 0:
            digests, group = digests + group.digest(), sha256()
    digests += group.digest() if n_rows % 4096 else b""
    digest = sha256(struct.pack("<qq", n_rows, n_values) + kind + digests).hexdigest()
    if any(len(w.get("codes", range(n_rows))) != n_rows for w in witnesses or []):
        raise ValueError(f"the witness is about other rows than these {n_rows}")
    verdicts = [{"class": c} | p.verdict() for c, p in zip(classes[two:], problems, strict=True)]
    return verdicts, {"rows": n_rows, "values": n_values, "digest": digest}


def container(path: str, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The content of a model or witness, and its arrays."""
    with open(path, "rb") as file:
        data = file.read()
    at, first = 8 + len(BEGINNING), 8 + int.from_bytes(data[:8], "little")
    checksum = b"%08x" % zlib.crc32(data[at + 8 :])
    if data[8 : at + 8] != BEGINNING + checksum or sys.byteorder != "little":
        raise ValueError(f"{path} is not a file of certsvm, or damaged")
    header, arrays = json.loads(data[8:first]), dict[str, Any]()
    document = json.loads(header.pop("__metadata__")["certsvm"])
    if (document["format"], document["kind"]) != (1, kind):
        raise ValueError(f"{path} is no {kind} of format 1")
    for name, entry in header.items():
        begin, end = (first + offset for offset in entry["data_offsets"])
        flat = memoryview(data[begin:end]).cast(TYPES[entry["dtype"]])
        width = math.prod(entry["shape"][1:])
        arrays[name] = [flat[i * width : (i + 1) * width] for i in range(entry["shape"][0])]
    return document["content"], arrays


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
    read |= {"used": [c for c in others if c in used], "one hot": [*spans]}
    read["not used"] = [column for column in others if column not in used]
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
        yield name, weight, [*range(len(values))], values


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
        parameters, claims, witnesses = content["parameters"], content["certificates"], None
        weights = [[*w, b] for w, (b,) in zip(arrays["coef"], arrays["intercept"], strict=True)]
        if os.path.exists(model + ".witness"):
            about, stored = container(model + ".witness", "witness")
            text = json.dumps(claims, ensure_ascii=False, separators=(",", ":")).encode()
            content_of = b"".join([*arrays["coef"], *arrays["intercept"], text])
            if blake2b(content_of, digest_size=16).hexdigest() != about["model"]:
                raise ValueError("the witness belongs to another model")
            witnesses = [{n: a[i] for n, a in stored.items()} for i in range(len(claims))]
        if any(ending in data for ending in (".csv", ".tsv")):
            rows = csv_rows(lines(data, read), content, len(weights[0]) - 1, read)
        else:
            read["zero based"] = zero_based or bool(parameters.get("zero_based"))
            rows = libsvm_rows(lines(data, read), not read["zero based"])
        read["float32"] = float32 or bool(parameters.get("float32"))
        if read["float32"]:
            rows = ((c, s, j, array("f", x).tolist()) for c, s, j, x in rows)
        read["class weights"] = class_weight = [factor for (factor,) in arrays["class_weight"]]
        verdicts, seen = judge(claims, content["classes"], class_weight, weights, rows, witnesses)
    except Exception as error:
        place = f"{data}, line {read['line']}" if read["line"] else f"{model}, {data}"
        raise ValueError(f"{place}: {error}") from error
    known = content["fingerprint"] and content["fingerprint"]["digest"] == seen["digest"]
    return verdicts, {**read, **seen, "same data": known}


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
    return 1 if "refuted" in words else 3 if "half confirmed" in words else 0


if __name__ == "__main__":
    sys.exit(main())
