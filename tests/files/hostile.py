"""Block files with right digests and wrong content, as only malice makes them."""

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from certsvm.files import block_file


def write_blocks(
    path: Path,
    indices: NDArray[Any],
    values: NDArray[Any],
    labels: NDArray[Any],
    weights: NDArray[Any] | None = None,
    **header: Any,
) -> Path:
    """A block file of rows of equal length; ``header`` replaces what it says of itself."""
    n = len(labels)
    summary = {"format": 2, "n_rows": n, "n_columns": 3, "n_values": values.size, "shuffled": True}
    text = json.dumps(summary | header)
    metadata = {"certsvm": text, "certsvm-digest": f"{zlib.crc32(text.encode()):08x}"}
    index, value = pa.array(indices), pa.array(values)
    fields = [pa.field("index", index.type, False), pa.field("value", value.type, False)]
    entries = pa.StructArray.from_arrays([index, value], fields=fields)
    offsets = pa.array((np.arange(n + 1) * (values.size // n)).astype(np.int32))
    columns = {"label": pa.array(labels), "row": pa.ListArray.from_arrays(offsets, entries)}
    if weights is not None:
        columns["weight"] = pa.array(weights)
    batch = pa.record_batch(list(columns.values()), names=list(columns))
    batch = batch.replace_schema_metadata(metadata)
    mark = block_file._mark(0, block_file.unpacked(batch, 3))
    with pa.OSFile(str(path), "wb") as file:
        writer = pa.ipc.new_file(file, batch.schema)
        writer.write_batch(batch, custom_metadata={"certsvm": mark})
        writer.close()
    return path


def rows(n: int = 40, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Columns, values and labels of rows of three values."""
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    return np.tile(np.arange(3, dtype=np.int32), n), rng.standard_normal(3 * n), labels


def hostile(folder: Path) -> dict[Path, str]:
    """Files, and what is to be said of each."""
    indices, values, labels = rows()

    def changed(array: NDArray[Any], value: Any) -> NDArray[Any]:
        other = array.copy()
        other[5] = value
        return other

    files: dict[Path, str] = {}
    for index in (-1, -(10**8), 3, 10**6, 2**31 - 1):
        path = write_blocks(folder / f"index{index}.arrow", changed(indices, index), values, labels)
        files[path] = f"index of {index} in 3 columns"
    wide = changed(indices.astype(np.int64), 2**62)
    files[write_blocks(folder / "wide.arrow", wide, values, labels)] = "in 3 columns"
    real = indices.astype(np.float64)
    files[write_blocks(folder / "real.arrow", real, values, labels)] = "type float64"
    for weight in (np.nan, np.inf, -1.0):
        path = folder / f"weight{weight}.arrow"
        weights = changed(np.ones(len(labels)), weight)
        files[write_blocks(path, indices, values, labels, weights)] = "weights must be finite"
    whole = write_blocks(folder / "whole.arrow", indices, indices.astype(np.int64), labels)
    files[whole] = "values of type int64"
    wrong = write_blocks(folder / "label.arrow", indices, values, changed(labels, np.nan))
    files[wrong] = "labels that are not finite"
    for columns in (-5, "3", 2.5, 2**63, None, True):
        path = folder / f"columns{columns}.arrow"
        files[write_blocks(path, indices, values, labels, n_columns=columns)] = "rows, columns"
    names = write_blocks(folder / "names.arrow", indices, values, labels, feature_names=[1, 2, 3])
    files[names] = "names of columns"
    return files
