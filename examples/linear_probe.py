"""
A linear probe on embeddings, with proof
========================================

How good are embeddings? Fit a linear classifier to them, one class against the rest, and count. The
answer is about the embeddings only if the classifier is the best one, which the certificates prove
here for each class. On a GPU this takes seconds for a million rows and a thousand classes:

    python linear_probe.py --rows 1281167 --columns 1024 --classes 1000

Without a GPU it runs on fewer rows. Replace ``embeddings`` by your own.
"""

import argparse
import time

import torch

from certsvm import LinearSVC


def embeddings(n_rows, n_columns, n_classes, device, seed=0):
    """Overlapping clusters of unit rows in half precision, and labels, 2 % of them wrong."""
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, device=device)

    lengths = torch.arange(1, n_columns + 1, device=device) ** -0.35
    centres = normal(n_classes, n_columns) * lengths
    y = torch.randint(n_classes, (n_rows,), generator=generator, device=device)
    X = torch.empty(n_rows, n_columns, dtype=torch.float16, device=device)
    for first in range(0, n_rows, 100_000):
        part = slice(first, min(first + 100_000, n_rows))
        block = centres[y[part]] + 1.3 * normal(part.stop - first, n_columns) * lengths
        X[part] = block / block.norm(dim=1, keepdim=True)
    wrong = torch.rand(n_rows, generator=generator, device=device) < 0.02
    others = torch.randint(n_classes, (n_rows,), generator=generator, device=device)
    return X, torch.where(wrong, others, y)


def top_accuracy(scores, y, k):
    """The share of rows whose label is among the k classes of the highest scores."""
    return (scores.topk(k).indices == y[:, None]).any(1).double().mean().item()


def main():
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000 if gpu else 5_000)
    parser.add_argument("--columns", type=int, default=768 if gpu else 64)
    parser.add_argument("--classes", type=int, default=100 if gpu else 20)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=0.01)
    parser.add_argument("--report", metavar="FILE.html", help="write a page about the fit")
    arguments = parser.parse_args()
    device = "cuda" if gpu else "cpu"
    X, y = embeddings(arguments.rows, arguments.columns, arguments.classes, device)
    n_test = arguments.rows // 10
    X_test, y_test, X, y = X[:n_test], y[:n_test], X[n_test:], y[n_test:]

    began = time.perf_counter()
    probe = LinearSVC(arguments.C, tol=arguments.tol).fit(X, y)
    seconds = time.perf_counter() - began
    gaps = [certificate.proved_gap for certificate in probe.certificates_]
    met = sum(certificate.met for certificate in probe.certificates_)
    print(f"{len(y):,} rows x {X.shape[1]} columns, {len(gaps)} classes: {seconds:.2f} s")
    print(f"proved to {arguments.tol:.2%} of the optimum: {met} classes, the worst {max(gaps):.3%}")
    scores = probe.decision_function(X_test)
    codes = torch.searchsorted(torch.as_tensor(probe.classes_, device=device), y_test)
    right, near = (top_accuracy(scores, codes, k) for k in (1, 5))
    print(f"accuracy {right:.2%}, top 5 {near:.2%}")
    if arguments.report:
        probe.report(arguments.report)


if __name__ == "__main__":
    main()
