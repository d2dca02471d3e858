"""Where commands may write.

The rule for all of them: an output, and the witness that belongs to an output that is a model, is
never an input, nor what belongs to an input, nor another output, nor a file of a kind that the
command does not write. It is applied before anything is read, so that an hour of training is not
lost. What has no format of its own, such as predictions, replaces any file that is not certsvm's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from certsvm.cli.app import BadInput

_BEGINNINGS = {
    b"solver_type": "text model", b"<!DOCTYPE html>": "page", b"ARROW1": "converted file"
}  # fmt: skip
# Kinds that cannot be told from other files.
_WITHOUT_FORMAT = ("predictions", "picture")


def require_outputs(inputs: Iterable[str | None], **kinds: str | None) -> None:
    """Raise unless the outputs, each given by its kind, may be written.

    Kinds are model, text_model, converted_file, scaled_file, scaling, page, predictions, picture
    and checkpoint. An input may be a folder, whose files are inputs, or "-", standard input.
    Predictions may go to "-", standard output, to a device or to a pipe.
    """
    from certsvm.files import witness_path

    paths = {kind.replace("_", " "): path for kind, path in kinds.items() if path is not None}
    if "picture" in paths:
        import matplotlib  # noqa: F401  a missing package is found before training
    if "model" in paths:
        paths["witness"] = witness_path(paths["model"])
    known = [path for path in inputs if path is not None]
    known += [witness_path(path) for path in known if path != "-" and not os.path.isdir(path)]
    for kind, path in paths.items():
        special = path == "-" or (os.path.exists(path) and not os.path.isfile(path))
        if special and kind == "predictions":
            # With ">>", predictions would be read as rows, without an end.
            out = "/dev/stdout"
            if path == "-" and os.path.isfile(out) and any(_is_input(out, i) for i in known):
                raise BadInput("standard output is an input, and would be appended to")
            continue
        if special:
            raise BadInput(f"a {kind} cannot be written to {path}: it needs a file")
        folder = os.path.dirname(os.path.abspath(path))
        if not os.access(folder, os.W_OK):
            raise BadInput(f"there is no folder {folder} that can be written to, for {path}")
        others = [other for name, other in paths.items() if name != kind]
        if os.path.realpath(path) in map(os.path.realpath, others):
            raise BadInput(f"{path} is the name of two outputs")
        if not os.path.exists(path):
            continue
        if any(_is_input(path, other) for other in known):
            raise BadInput(f"{path} is an input, and would be overwritten")
        found = kind_at(path)
        if found not in ((None, "") if kind in _WITHOUT_FORMAT else (kind, "")):
            what = f"is not a {kind}" + (f" but a {found}" if found else "")
            if kind == "scaled file":
                what = "cannot be told from data of yours"
            raise BadInput(
                f"{path} exists and {what}: it would be overwritten. Choose another name for the "
                "output, or remove the file."
            )


def _is_input(output: str, source: str) -> bool:
    if source == "-":
        return os.path.samefile(sys.stdin.fileno(), output)
    if os.path.isdir(source):
        return os.path.samefile(source, os.path.dirname(os.path.abspath(output)))
    return os.path.exists(source) and os.path.samefile(source, output)


def kind_at(path: str) -> str | None:
    """The kind of a file; "" if it is empty, None if it is none of ours."""
    from certsvm.files.container import kind_of_container

    with open(path, "rb") as file:
        start = file.read(4096)
    known = (kind for beginning, kind in _BEGINNINGS.items() if start.startswith(beginning))
    kind = next(known, kind_of_container(start)) if start else ""
    # Ours name their maker.
    foreign = kind in ("page", "converted file") and b"certsvm" not in start
    return f"{kind} of another program" if foreign else kind
