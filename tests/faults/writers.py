"""Every command that writes a file, on small data, and what it writes if nothing happens."""

import random
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from certsvm import Model, verify_model
from certsvm.files import BlockFile, load_libsvm, witness_path
from certsvm.verification.verify import CONFIRMED, HALF_CONFIRMED
from tests.cli.running import write
from tests.faults.tally import attempt, complaint

# Many passes, each of them short; they end before the target is met.
PASSES = ("--solver", "sgd-s", "-c", "50", "--tol", "1e-7", "--max-iter", "60", "--n-jobs", "1")
STATE = ("--checkpoint", "state", "--checkpoint-every", "0", "--witness")


@dataclass
class Writer:
    """A command that writes "out"; ``data`` is what its model can be verified on."""

    name: str
    words: tuple[str, ...]
    data: str | None = None
    seconds: float = 0.0
    code: int = 0
    whole: dict[str, bytes] = field(default_factory=dict)
    earlier: dict[str, bytes] = field(default_factory=dict)

    @property
    def resumes(self) -> bool:
        return "--checkpoint" in self.words

    def clear(self, folder: Path) -> None:
        """Remove what earlier runs left."""
        shutil.rmtree(folder / "state", ignore_errors=True)
        for path in [*folder.glob("out*"), *folder.glob(".out*")]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def put_old(self, folder: Path, r: random.Random) -> dict[str, bytes]:
        """An output of an earlier run and its witness, or none."""
        old = self.earlier if r.random() < 0.5 else {}
        for name, content in old.items():
            (folder / name).write_bytes(content)
        return old

    def outcome(self, folder: Path, found: dict[str, bytes], old: dict[str, bytes]) -> str | None:
        """What the output is: "absent", "old" or "complete"; None if it is neither."""
        model, proof = found.get("out"), found.get("out.witness")
        if model is None or model == old.get("out"):
            return "absent" if model is None else "old"
        if model == self.whole["out"] and (not self.data or proof == self.whole.get("out.witness")):
            return "complete"
        return "complete" if self.data and self.verified(folder) else None

    def verified(self, folder: Path) -> bool:
        """Whether a model that is not the one of a whole run is one, and true."""
        assert self.data is not None
        witness = Path(witness_path(folder / "out")).exists()
        try:
            model = Model.load(folder / "out", witness=witness)
        except ValueError:
            return False
        path, blocks = folder / self.data, []
        if path.suffix == ".arrow":
            blocks = [tuple(batch) for batch in BlockFile(path)()]
        else:
            blocks = [load_libsvm(path)]
        return verify_model(model, blocks).verdict == (CONFIRMED if witness else HALF_CONFIRMED)


def prepared(folder: Path, names: tuple[str, ...] | None = None) -> list[Writer]:
    """The commands, each of which has run once in the folder without a fault."""
    write(folder / "data", n_rows=2000, n_columns=30)
    write(folder / "classes", n_rows=1500, n_columns=20, n_classes=3)
    for words in (
        ("convert", "data", "data.arrow", "--block-size", "100k", "-q"),
        ("train", "data", "-o", "model", "-q", "--witness"),
        ("export", "model", "liblinear"),
    ):
        must(folder, *words)
    train = ("train", "data", *PASSES, "-o", "out", "-q")
    writers = [
        Writer("train", train, "data"),
        Writer("train classes", ("train", "classes", *train[2:]), "classes"),
        Writer("train --stream", ("train", "data.arrow", "--stream", *train[2:]), "data.arrow"),
        Writer("train --checkpoint --witness", (*train, *STATE), "data"),
        Writer("train --stream --checkpoint --witness",
               ("train", "data.arrow", "--stream", *train[2:], *STATE), "data.arrow"),
        Writer("convert", ("convert", "data", "out", "--seed", "1", "--block-size", "100k", "-q")),
        Writer("scale", ("scale", "data", "out", "-q")),
        Writer("predict", ("predict", "model", "data", "-o", "out", "-q")),
        Writer("export", ("export", "model", "out")),
        Writer("import", ("import", "liblinear", "out")),
    ]  # fmt: skip
    model = {"out": (folder / "model").read_bytes(),
             "out.witness": (folder / "model.witness").read_bytes()}  # fmt: skip
    writers = [writer for writer in writers if names is None or writer.name in names]
    for writer in writers:
        writer.clear(folder)
        began = time.monotonic()
        writer.code = must(folder, *writer.words)
        writer.seconds = time.monotonic() - began
        paths = [folder / "out", folder / "out.witness"]
        writer.whole = {path.name: path.read_bytes() for path in paths if path.exists()}
        writer.earlier = {"out": b"solver_type" if writer.name == "export" else b"old"}
        if writer.name == "scale":
            # It replaces no file.
            writer.earlier = {}
        if writer.data or writer.name == "import":
            writer.earlier = model
        elif writer.name == "convert":
            writer.earlier = {"out": (folder / "data.arrow").read_bytes()}
        writer.clear(folder)
    return writers


def must(folder: Path, *words: Any) -> int:
    """Run a command that has to work."""
    ran = attempt(*words, cwd=folder)
    wrong = complaint(ran, (0, 3))
    if wrong or ran is None:
        raise RuntimeError(f"{words}: {wrong}")
    return ran.code
