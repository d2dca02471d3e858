"""Hostile files: mutants of every kind of file, read by the library and by the commands."""

import bz2
import gzip
import lzma
import multiprocessing
import random
import resource
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import zstandard
from safetensors.numpy import save_file

from certsvm import Model, Problem, Rows, verify_model
from certsvm.files import BlockFile, load_liblinear, load_libsvm, load_witness
from certsvm.files.embeddings import Embeddings
from certsvm.files.tables import Table
from certsvm.matrices import refuse_broken
from certsvm.solvers import make_solver
from certsvm.training.loop import train
from tests.cli.running import noisy, write
from tests.faults import mutations
from tests.faults.proofs import false_verdicts
from tests.faults.tally import HANG, Budget, Tally, attempt, complaint
from tests.faults.writers import must
from tests.files.hostile import rows, write_blocks

# Longest time and most memory to read a file of some kilobytes.
SECONDS, MEMORY = 60.0, 6 * 2**30
SOLVERS = ("sgd-s", "dcd", "ocas", "working-set")
FORMATS = ("libsvm", "libsvm.gz", "libsvm.xz", "libsvm.bz2", "libsvm.zst", "csv", "csv.gz",
           "parquet", "arrow", "model", "witness", "checkpoint", "liblinear",
           "npy", "safetensors", "lists")  # fmt: skip
COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "libsvm.gz": gzip.compress, "libsvm.xz": lzma.compress, "libsvm.bz2": bz2.compress,
    "libsvm.zst": zstandard.ZstdCompressor(write_checksum=True).compress, "csv.gz": gzip.compress,
}  # fmt: skip


class Mutants:
    """Originals in a folder, their mutants, and what reading them leads to."""

    def __init__(self, folder: Path, name: str = "mutant") -> None:
        self.folder = folder
        self.X, self.y = noisy(n_rows=15, n_columns=3, seed=1)
        self.path = folder / name

    def make_originals(self) -> None:
        write(self.folder / "libsvm", n_rows=15, n_columns=3, seed=1)
        dense = self.X.toarray()
        lines = ["a,b,c,label", *(",".join(map(repr, [*x.tolist(), int(v)])) for x, v in
                                  zip(dense, self.y, strict=True))]  # fmt: skip
        (self.folder / "csv").write_text("\n".join(lines) + "\n")
        for name, compress in COMPRESSED.items():
            text = (self.folder / name.partition(".")[0]).read_bytes()
            (self.folder / name).write_bytes(compress(text))
        columns = {name: dense[:, j] for j, name in enumerate("abc")} | {"label": self.y}
        pa.parquet.write_table(pa.table(columns), self.folder / "parquet", row_group_size=6)
        write_blocks(self.folder / "arrow", *rows(12))
        with (self.folder / "npy").open("wb") as file:
            np.save(file, dense.astype(np.float32))
        np.save(self.folder / "labels.npy", self.y)
        save_file({"X": dense, "y": self.y}, self.folder / "safetensors")
        lists = pa.table({"rows": dense.tolist(), "label": self.y})
        pa.parquet.write_table(lists, self.folder / "lists", row_group_size=6)
        # The name of a witness is that of its model.
        must(self.folder, "train", "libsvm", "-B", 1, "-o", "model", "--witness", "-q")
        must(self.folder, "export", "model", "liblinear")
        for solver in SOLVERS:
            self.train(solver, self.folder / f"checkpoint-{solver}")

    def train(self, solver: str, path: Path) -> None:
        """Go on from a checkpoint, which must not prove what is not true."""
        problem = Problem(Rows(self.X), np.where(self.y > 0, 1.0, -1.0), C=1.0)
        result = train(problem, make_solver(solver), tol=1e-4, max_iter=4, checkpoint=path)
        true = train(problem, make_solver("newton"), tol=1e-12).certificate
        claim = result.certificate
        assert claim.dual - claim.dual_rounding <= true.primal
        assert claim.primal + claim.primal_rounding >= true.dual
        J = 0.5 * result.w @ result.w + np.maximum(0.0, 1.0 - self.y * (self.X @ result.w)).sum()
        assert abs(claim.primal - J) <= 1e-9 * J

    def make(self, format: str, r: random.Random) -> str:
        """Write a mutant; returns the original's name."""
        original = self.folder / format
        if format in ("libsvm", "csv", "liblinear"):
            self.path.write_bytes(mutations.mutated_text(original.read_bytes(), r))
        elif format in (*COMPRESSED, "npy", "safetensors", "lists"):
            self.path.write_bytes(mutations.mutated_bytes(original.read_bytes(), r))
        elif format == "parquet":
            mutations.mutated_parquet(original, self.path, r)
        elif format == "arrow":
            mutations.mutated_blocks(original, self.path, r)
        else:
            if format == "checkpoint":
                original = self.folder / f"checkpoint-{r.choice(SOLVERS)}"
            elif format == "witness":
                original = self.folder / "model.witness"
            mutations.mutated_container(original, format, self.path, r)
        return original.name

    def read(self, format: str, original: str) -> str:
        """Read a mutant as the library does; says what came of it, or raises what is wrong."""
        if format.startswith("libsvm"):
            X, y = load_libsvm(self.path, n_jobs=1)
            refuse_broken(X)
            assert np.isfinite(X.data).all()
            assert np.isfinite(y).all()
        elif format.startswith(("csv", "parquet")):
            for batch in Table(self.path).blocks(1 << 16):
                assert np.isfinite(batch.X).all()
        elif format in ("npy", "safetensors", "lists"):
            labels = str(self.folder / "labels.npy") if format == "npy" else None
            for batch in Embeddings(self.path, label=labels).blocks(1 << 16):
                assert len(batch.X) == len(batch.y)
        elif format == "arrow":
            for batch in BlockFile(self.path)():
                refuse_broken(batch.X)
        elif format == "liblinear":
            model = load_liblinear(self.path)
            if model.n_features < 10**6:
                model.decision_function(np.zeros((1, model.n_features)))
        elif format == "checkpoint":
            self.train(original.removeprefix("checkpoint-"), self.path)
        else:
            return self.verdict(format)
        return "valid"

    def verdict(self, format: str) -> str:
        """Verify the model with this model or witness, and the verdict by exact arithmetic."""
        model = Model.load(self.path if format == "model" else self.folder / "model")
        str(model)
        path = self.path if format == "witness" else self.folder / "model.witness"
        witness, _ = load_witness(path)
        # Model.load compares the digests, which keeps most mutants from being judged.
        object.__setattr__(model, "witness", witness)
        report = verify_model(model, [(self.X, self.y, None)])
        labels = (self.y == model.classes[-1]).astype(np.int64)
        found = false_verdicts(model, self.X.toarray(), labels, None, list(report))
        if found:
            raise AssertionError(f"false verdict: {found}")
        return report.verdict


def read_mutants(connection: Any, folder: Path, seed: int, first: int, count: int) -> None:
    """The child: reads mutants one by one and sends what happened to each."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    mutants = Mutants(folder, "read")
    for k in range(first, count):
        format = FORMATS[k % len(FORMATS)]
        original = mutants.make(format, random.Random(f"{seed} files {k}"))
        try:
            connection.send((mutants.read(format, original), None))
        except (ValueError, OSError) as error:
            refused = "refused" if str(error) else "refused without a reason"
            connection.send((refused, None if str(error) else traceback.format_exc()))
        except BaseException as error:
            connection.send((type(error).__name__, traceback.format_exc()[-1500:]))


def watched(folder: Path, seed: int, count: int) -> Iterator[tuple[str, str | None]]:
    """Results of mutants 0, 1, ...; a child that dies or hangs is one, and another goes on."""
    context, k = multiprocessing.get_context("spawn"), 0
    while k < count:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=read_mutants, args=(theirs, folder, seed, k, count))
        child.start()
        theirs.close()
        try:
            while k < count:
                if not ours.poll(SECONDS):
                    result = HANG, f"no end after {SECONDS:.0f} s"
                    break
                result = ours.recv()
                yield result
                k += 1
            else:
                return
        except EOFError:
            child.join()
            result = "crash", f"the reader ended with {child.exitcode}"
        finally:
            child.kill()
            child.join()
        yield result
        k += 1


def campaign(seed: int, budget: Budget, folder: Path, commands: int = 200) -> Tally:
    tally, mutants = Tally("files"), Mutants(folder)
    mutants.make_originals()
    results = watched(folder, seed, budget.count)
    for k in Budget(0.7 * budget.seconds, budget.count).rounds():
        happened, wrong = next(results)
        format = FORMATS[k % len(FORMATS)]
        if wrong:
            # The same mutant again, to be looked at.
            mutants.make(format, random.Random(f"{seed} files {k}"))
            kept = folder / f"wrong-{k}-{format}"
            mutants.path.rename(kept)
            wrong = f"number {k}: {wrong}\n{kept.read_bytes()[:3000]!r}"
        tally.add(format, happened, wrong)
    results.close()
    for k in Budget(0.3 * budget.seconds, commands).rounds():
        one_command(mutants, k, random.Random(f"{seed} commands {k}"), tally)
    return tally


def one_command(mutants: Mutants, k: int, r: random.Random, tally: Tally) -> None:
    """Read a mutant with a real command."""
    folder = mutants.folder
    format = FORMATS[k % len(FORMATS)]
    mutants.make(format, r)
    name = f"mutant.{format}" if format.startswith(("csv", "safetensors")) else "mutant"
    mutants.path.replace(folder / name)
    for old in (f"{name}.witness", "out", "out.witness"):
        (folder / old).unlink(missing_ok=True)
    words: tuple[Any, ...]
    if format == "model":
        words = r.choice([("verify", name, "libsvm"), ("info", name), ("export", name, "out"),
                          ("predict", name, "libsvm"), ("evaluate", name, "libsvm")])  # fmt: skip
    elif format == "liblinear":
        words = r.choice([("import", name, "out"), ("predict", name, "libsvm"), ("info", name)])
    elif format == "witness":
        (folder / name).replace(folder / f"{name}.witness")
        (folder / name).write_bytes((folder / "model").read_bytes())
        words = ("verify", name, "libsvm")
    elif format == "checkpoint":
        (folder / "state").mkdir(exist_ok=True)
        (folder / name).replace(folder / "state" / "class-0.checkpoint")
        words = ("train", "libsvm", "--checkpoint", "state", "-o", "out", "-q")
    else:
        words = r.choice([("train", name, "-o", "out", "-q", "--max-iter", 50), ("info", name),
                          ("convert", name, "out", "-q", "--memory", "8G"),
                          ("evaluate", "model", name),
                          ("predict", "model", name, "-q")])  # fmt: skip
        words += ("--labels", "labels.npy") if format == "npy" else ()
    ran = attempt(*words, cwd=folder)
    wrong = complaint(ran)
    if wrong:
        wrong = f"{words}: {wrong}"
    tally.add("by a command", f"exit code {ran.code}" if ran else HANG, wrong)
