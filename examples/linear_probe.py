"""
A linear probe of your own embeddings
=====================================

Fits one class against the rest to embeddings in files, with a proof for each class, and prints the
accuracy on other embeddings::

    python linear_probe.py train.npy train_labels.npy test.npy test_labels.npy --device cuda

Without names of files, it runs on made-up embeddings. :doc:`plot_linear_probe` explains the steps.
"""

import argparse
import time

import numpy as np

from certsvm import LinearSVC


def made_up_embeddings(n_rows=4000, n_columns=64, n_classes=10):
    """Unit rows in overlapping clusters, of which 800 are to test with."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n_rows)
    X = rng.standard_normal((n_classes, n_columns))[y]
    X += 2.5 * rng.standard_normal(X.shape)
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
    return X[800:], y[800:], X[:800], y[:800]


def main():
    parser = argparse.ArgumentParser()
    names = "TRAIN.npy TRAIN_LABELS.npy TEST.npy TEST_LABELS.npy"
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"all or none of {names}")
    parser.add_argument("--C", type=float, default=1.0, help="1 by default")
    parser.add_argument("--tol", type=float, default=0.01, help="0.01 by default: within 1 %%")
    parser.add_argument("--device", help="cuda trains on a GPU, all classes at once")
    parser.add_argument("--report", metavar="FILE.html", help="write a page about the probe")
    arguments = parser.parse_args()
    if arguments.files and len(arguments.files) != 4:
        parser.error(f"give four files, {names}, or none")
    files = [np.load(name, mmap_mode="c") for name in arguments.files]  # a copy only where written
    X, y, X_test, y_test = files or made_up_embeddings()

    began = time.perf_counter()
    probe = LinearSVC(arguments.C, tol=arguments.tol, device=arguments.device, random_state=0)
    probe.fit(X, y)
    seconds = time.perf_counter() - began
    met = sum(certificate.met for certificate in probe.certificates_)
    print(f"{X.shape[0]:,} rows, {X.shape[1]} columns: {seconds:.2f} s")
    print(f"{met} of {len(probe.certificates_)} certificates met; the worst: {probe.certificate_}")
    print(f"accuracy {probe.score(X_test, y_test):.2%}")
    if len(probe.classes_) > 5:
        print(f"top 5    {probe.top_k_accuracy(X_test, y_test, k=5):.2%}")
    if arguments.report:
        probe.report(arguments.report, X_test, y_test)


if __name__ == "__main__":
    main()
