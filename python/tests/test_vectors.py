"""Dense vectors, against brute force by NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import resemblance as rs

DIMENSIONS = 48


def clusters(families: int, members: int, spread: float, seed: int = 1) -> Any:
    """Vectors around random directions."""
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(families, DIMENSIONS))
    noise = chance.normal(size=(families, members, DIMENSIONS)) * spread
    return (centres[:, None] + noise).reshape(-1, DIMENSIONS).astype(np.float32)


def cosines(vectors: Any) -> Any:
    wide = vectors.astype(np.float64)
    units = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return units @ units.T


def pairs_at(similarities: Any, least: float) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for a, b in np.argwhere(np.triu(similarities >= least, 1))}


def test_pairs_are_those_of_brute_force_but_for_the_recall() -> None:
    vectors = clusters(200, 5, 0.2)
    schema = rs.Schema(vector=rs.Vector.cosine(DIMENSIONS, threshold=0.95, recall=0.99))
    store = rs.Store.in_memory(schema)
    store.insert_many(schema.sketch_vectors(vectors), map(str, range(len(vectors))))
    expected = pairs_at(cosines(vectors), 0.95)
    found = {(pair.a, pair.b): pair.similarity for pair in store.pairs()}
    assert found.keys() <= expected and len(expected) > 500
    # The recall is 0.99 at the threshold, and higher above it.
    assert len(found) > 0.98 * len(expected)
    similarities = cosines(vectors)
    assert all(abs(similarities[pair] - similarity) < 1e-5 for pair, similarity in found.items())


def test_distances_are_those_of_brute_force() -> None:
    vectors = clusters(100, 4, 0.1, seed=2)
    schema = rs.Schema(vector=rs.Vector.euclidean(DIMENSIONS, 1.0, recall=0.99))
    store = rs.Store.in_memory(schema)
    store.insert_many(schema.sketch_vectors(vectors), map(str, range(len(vectors))))
    differences = vectors[:, None].astype(np.float64) - vectors
    distances = np.sqrt((differences**2).sum(2))
    expected = {(int(a), int(b)) for a, b in np.argwhere(np.triu(distances <= 1.0, 1))}
    rules = schema.vector
    assert rules is not None
    found = {(pair.a, pair.b): rules.distance_at(pair.similarity or 0.0) for pair in store.pairs()}
    assert found.keys() <= expected and len(expected) > 300
    assert len(found) > 0.98 * len(expected)
    assert all(abs(distances[pair] - distance) < 1e-3 for pair, distance in found.items())


@pytest.mark.parametrize("kept", ["f32", "f16", "i8", None])
def test_near_vectors_are_not_inserted_again(kept: str | None) -> None:
    schema = rs.Schema(vector=rs.Vector.cosine(3, kept=kept))
    store = rs.Store.in_memory(schema)
    assert store.insert_if_new("a", schema.sketch_vector([1.0, 2.0, 3.0])).is_new
    found = store.insert_if_new("b", schema.sketch_vector([2, 4, 6.01]))
    assert not found.is_new and found.found is not None and found.found.key == "a"
    assert found.found.is_exact == (kept is not None)
    assert store.insert_if_new("c", schema.sketch_vector([-1.0, 2.0, 3.0])).is_new


def test_forms_of_vectors_are_equal() -> None:
    schema = rs.Schema(vector=rs.Vector.cosine(DIMENSIONS))
    vectors = clusters(3, 3, 0.3)
    expected = schema.sketch_vectors(vectors)
    flat = pa.array(vectors.reshape(-1))
    lists = [
        pa.FixedSizeListArray.from_arrays(flat, DIMENSIONS),
        pa.array(vectors.astype(np.float64).tolist(), pa.list_(pa.float64())),
        pa.array(vectors.tolist(), pa.large_list(pa.float32())),
    ]
    for other in [*lists, vectors.tolist(), np.asfortranarray(vectors), vectors.astype(np.float64)]:
        assert schema.sketch_vectors(other) == expected
    assert schema.sketch_vectors(vectors, threads=1) == expected
    assert [schema.sketch_vector(row) for row in vectors] == list(expected)
    kept = expected[0].vector
    assert kept is not None and np.allclose(kept, vectors[0] / np.linalg.norm(vectors[0]))
    assert schema.sketch_vectors(vectors.astype(np.float16))[0].vector is not None


def test_a_batch_may_have_no_vectors() -> None:
    pl = pytest.importorskip("polars")
    schema = rs.Schema(vector=rs.Vector.cosine(4))
    floats = pa.float32()
    empty: list[Any] = [
        [],
        np.zeros((0, 4), "f4"),
        pa.array([], pa.list_(floats)),
        pa.array([], pa.list_(floats, 4)),
        pa.chunked_array([], pa.large_list(floats)),
        pl.Series([], dtype=pl.List(pl.Float32)),
    ]
    for vectors in empty:
        assert len(schema.sketch_vectors(vectors)) == 0
    wrong: Any
    for wrong in ([[], []], np.zeros((3, 0)), np.zeros((0, 5)), pa.array([[], []], pa.list_(floats))):
        with pytest.raises(rs.InvalidParameterError, match=r"found [05] numbers in each row, expected 4"):
            schema.sketch_vectors(wrong)
    with pytest.raises(TypeError, match="found 4 numbers in row 1, expected 0 as in the first"):
        schema.sketch_vectors(pa.array([[], [1.0] * 4], pa.list_(floats)))
    with pytest.raises(TypeError, match="found 3 numbers in row 2, expected 4 as in the first"):
        schema.sketch_vectors(pa.chunked_array([[[1.0] * 4] * 2, [[1.0] * 3]], pa.list_(floats)))


def test_vectors_without_a_place_are_refused_by_name() -> None:
    schema = rs.Schema(vector=rs.Vector.cosine(2))
    for wrong, said in [
        ([1.0], "2 numbers"),
        ([np.nan, 0.0], "NaN at position 0"),
        ([0.0, np.inf], "inf at position 1"),
        ([0.0, 0.0], "zeros"),
    ]:
        with pytest.raises(ValueError, match=said):
            schema.sketch_vector(wrong)
    for wrong in ["text", [["a", "b"]], [1.0, 2.0], pa.array(["a"]), pa.array([[1.0, None]])]:
        with pytest.raises((TypeError, ValueError)):
            schema.sketch_vectors(wrong)
    with pytest.raises(ValueError, match="2 numbers in each row"):
        schema.sketch_vectors(np.ones((4, 3)))
    with pytest.raises(ValueError, match="vectors alone"):
        schema.sketch_vector([1.0, 2.0], text="a text")
    with pytest.raises(ValueError, match="vector"):
        schema.sketch("a text")
    with pytest.raises(ValueError, match="MinHash"):
        rs.Schema(vector=rs.Vector.cosine(2), minhash=rs.MinHash())
    with pytest.raises(ValueError, match="distance"):
        rs.Schema(vector=rs.Vector(2, "euclidean"))


def test_vectors_beside_texts() -> None:
    schema = rs.Schema(
        vector=rs.Vector.cosine(2), text=rs.Text.words(2), simhash=rs.SimHash(max_distance=3), near="both"
    )
    store = rs.Store.in_memory(schema)
    texts = ["the same text is here", "the same text is here", "another text is over there"]
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.001]])
    store.insert_many(schema.sketch_vectors(vectors, texts=texts), ["a", "b", "c"])
    assert list(store.pairs()) == []
    assert [(pair.a, pair.b) for pair in store.pairs(by="minhash")] == [(0, 2)]
    assert [(pair.a, pair.b) for pair in store.pairs(by="simhash")] == [(0, 1)]
    assert len(list(store.pairs(by="any"))) == 2


def test_a_schema_with_vectors_round_trips(tmp_path: Path) -> None:
    for vector in [rs.Vector.cosine(7, kept="i8"), rs.Vector.euclidean(7, 0.25, values=128)]:
        schema = rs.Schema(vector=vector)
        again = rs.Schema.from_bytes(schema.to_bytes())
        assert again == schema and again.minhash is None
        assert again.vector is not None and again.vector.dimensions == 7
        assert rs.Schema(vector=schema.vector) == schema
        signature = schema.sketch_vector(range(1, 8))
        assert rs.Signature.from_bytes(schema, signature.to_bytes()) == signature
        path = tmp_path / f"{vector.metric}.rsm"
        with rs.Store.create(path, schema) as store:
            store.insert("a", signature)
        with rs.Store.open(path) as store:
            (match,) = store.query(signature)
            assert match.key == "a" and match.similarity == 1.0 and match.is_exact
