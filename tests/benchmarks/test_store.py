from pathlib import Path

from benchmarks.store import Store


def test_entries_survive_the_process_and_fresh_forgets_them(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.json"
    store = Store(path)
    assert store.get("cells", "key") is None
    store.put("cells", "key", {"seconds": 1.5})
    store.put("trials", "key", [1])
    again = Store(path)
    assert again.get("cells", "key") == {"seconds": 1.5}
    assert again.get("trials", "key") == [1]
    assert Store(path, fresh=True).get("cells", "key") is None
    assert [file.name for file in path.parent.iterdir()] == ["store.json"]
