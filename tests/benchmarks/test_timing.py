from functools import partial

from benchmarks.timing import best_seconds


def test_jobs_take_turns() -> None:
    calls: list[str] = []
    best = best_seconds({name: partial(calls.append, name) for name in "ab"}, repeats=3)
    assert calls == ["a", "b"] * 3
    assert list(best) == ["a", "b"]
    assert min(best.values()) >= 0.0
