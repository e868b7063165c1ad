"""Schemas and signatures: what they are made of, and how they travel."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import resemblance as rs
from conftest import jaccard, shingles, texts

SCHEMAS = [
    rs.Schema(minhash=rs.MinHash(64)),
    rs.Schema(text=rs.Text.words(3), minhash=rs.MinHash(128, threshold=0.6, recall=0.9)),
    rs.Schema(text=rs.Text.characters(9), simhash=rs.SimHash(128, max_distance=2)),
    rs.Schema(
        text=rs.Text("words", 2, nfkc=True, strip_accents=True, stop_words="en", stem="en"),
        minhash=rs.MinHash(64, bands=16, rows=4),
        simhash=rs.SimHash(64),
        near="both",
        seed=7,
        expected_documents=1000,
        empty_documents="alike",
    ),
    rs.Schema(text=rs.Text.code(4), minhash=rs.MinHash(128, kind="one-pass", value_bits=8)),
    rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64, kind="bottom-k")),
    rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64), exact=True),
    rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64), exact_bits=32),
    rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64), clusters=True, cluster_threshold=0.9),
    rs.Schema(simhash=rs.SimHash(), clusters=True, cluster_distance=2, cluster_linkage="star"),
    rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64, kind="weighted")),
    rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64, kind="probability")),
    rs.Schema(minhash=rs.MinHash(64, kind="external", value_bits=16)),
    rs.Schema(vector=rs.Vector.cosine(384, recall=0.99), clusters=True),
    rs.Schema(vector=rs.Vector.euclidean(16, 0.5, kept="i8"), text=rs.Text.words(2), simhash=rs.SimHash()),
    rs.Schema(vector=rs.Vector.cosine(3, kept=None)),
    rs.Schema(text=rs.Text.words(5), containment=rs.Containment(8)),
    rs.Schema(text=rs.Text.words(5), containment=rs.Containment(5, scaled=100)),
    rs.Schema(minhash=rs.MinHash(64), containment=rs.Containment(5, window=3)),
    rs.Schema(text=rs.Text.words(2), simhash=rs.SimHash(32)),
    rs.Schema(simhash=rs.SimHash(256, max_distance=31, external=True)),
    rs.Schema(text=rs.Text.words(2), simhash=rs.SimHash(tables=((5, 2),))),
    rs.Schema(text=rs.Text("words", 3, keep_case=True, unordered=True), minhash=rs.MinHash(64)),
    rs.Schema(text=rs.Text("characters", 9, remove_spaces=True), minhash=rs.MinHash(64)),
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_a_schema_travels(schema: rs.Schema) -> None:
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert rs.Schema.from_bytes(schema.to_bytes()) == schema
    # What is printed can be run.
    assert eval(repr(schema), vars(rs)) == schema
    assert hash(eval(repr(schema), vars(rs))) == hash(schema)
    assert len({schema, rs.Schema.from_bytes(schema.to_bytes())}) == 1


def test_an_exact_store_needs_no_texts() -> None:
    schema = rs.Schema(text=rs.Text.words(1), minhash=rs.MinHash(64, threshold=0.5), exact=True)
    assert schema.exact and not SCHEMAS[0].exact
    with rs.Store.in_memory(schema) as store:
        store.insert("a", "a b c d e f g h i j")
        (found,) = store.query("b c d e f g h i j k")
        assert (found.similarity, found.is_exact) == (9 / 11, True)


def test_a_schema_states_how_sure_insert_if_new_is() -> None:
    """As a query within the bounds of the schema does."""
    for schema, about in [
        (rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64)), "estimate"),
        (rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64), exact=True), "truth"),
        (rs.Schema(text=rs.Text.words(2), simhash=rs.SimHash(64)), "signature"),
    ]:
        certainty = schema.certainty
        assert certainty is not None and certainty[0] == about
        assert 0 <= certainty[1] < 0.06
        with rs.Store.in_memory(schema) as store:
            store.insert("a", "to be or not to be")
            assert store.query("to be or not to be").certainty == certainty
    assert rs.Schema(text=rs.Text.words(5), containment=rs.Containment(8)).certainty is None


def test_schemas_differ() -> None:
    assert len(set(SCHEMAS)) == len(SCHEMAS)
    assert SCHEMAS[0] != "a schema"


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: rs.Schema(), "signature"),
        (lambda: rs.Schema(minhash=rs.MinHash(128, threshold=1.5)), "threshold"),
        (lambda: rs.Schema(minhash=rs.MinHash(-1)), "values"),
        (lambda: rs.Schema(minhash=rs.MinHash(64, bands=4)), "bands"),
        (lambda: rs.Schema(minhash=rs.MinHash(64, kind="other")), "kind"),
        (lambda: rs.Schema(simhash=rs.SimHash(65)), "bits"),
        (lambda: rs.Schema(minhash=rs.MinHash(64), near="some"), "near"),  # type: ignore[arg-type]
        (lambda: rs.Schema(text=rs.Text("lines", 1), minhash=rs.MinHash(64)), "unit"),
        (lambda: rs.Schema(text=rs.Text("words", 1, stem="xx"), minhash=rs.MinHash(64)), "stem"),
        (lambda: rs.Schema.from_bytes(b"nothing"), "schema bytes"),
    ],
)
def test_what_is_out_of_range_is_named(make: object, parameter: str) -> None:
    with pytest.raises(rs.InvalidParameterError) as raised:
        make()  # type: ignore[operator]
    assert raised.value.parameter == parameter
    assert isinstance(raised.value, ValueError)


def test_what_is_no_part_of_a_schema_is_refused() -> None:
    for wrong in (0.8, "words", rs.Text):
        with pytest.raises(TypeError, match="found (float|str|type), expected a part of a schema"):
            rs.Schema(minhash=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="found str, expected a part of a schema"):
        rs.RepeatedParts("line", "words")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="schema: found str, expected a Schema"):
        rs.pairs(["a"], "words")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="schema: found int, expected a Schema"):
        rs.evaluate(["a"], 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="against: found str, expected a Store or a Snapshot"):
        rs.dedup(["a"], against="old.rsm")  # type: ignore[arg-type]
    with pytest.raises(rs.InvalidParameterError, match="^threshold: found NaN") as raised:
        rs.pairs(["a"], threshold=float("nan"))
    assert raised.value.parameter == "threshold"


@pytest.mark.parametrize("schema", [s for s in SCHEMAS if s.text is not None and s.vector is None], ids=str)
def test_signatures_travel(schema: rs.Schema) -> None:
    documents = texts(50)
    signatures = schema.sketch_many([*documents, ""])
    again = pickle.loads(pickle.dumps(signatures))
    assert again.schema == schema
    assert again.to_bytes() == signatures.to_bytes()
    for text, signature in zip(documents, signatures):
        assert schema.sketch(text) == signature
        read = pickle.loads(pickle.dumps(signature))
        assert read.to_bytes() == signature.to_bytes()
        assert read.bucket_codes() == signature.bucket_codes()


def test_signatures_are_a_sequence_with_arrays(schema: rs.Schema) -> None:
    signatures = schema.sketch_many(texts(10))
    assert len(signatures) == 10
    assert signatures[-1] == signatures[9]
    assert list(signatures[2:8:3]) == [signatures[2], signatures[5]]
    assert [s for s in signatures[::-1]] == list(reversed(list(signatures)))
    with pytest.raises(IndexError):
        signatures[10]
    values = signatures.minhash
    assert values is not None and values.shape == (10, 128) and values.dtype == np.uint32
    assert np.array_equal(np.asarray(signatures), values)
    first = signatures[0].minhash
    assert first is not None and np.array_equal(values[0], first)


def test_ready_made_signatures() -> None:
    values = np.arange(640, dtype=np.uint32).reshape(10, 64)
    signatures = rs.Signatures.from_minhash(values)
    again = signatures.minhash
    assert again is not None and np.array_equal(again, values)
    assert pickle.loads(pickle.dumps(signatures)) == signatures
    assert pickle.loads(pickle.dumps(signatures[3])) == signatures[3]
    fingerprints = np.array([1, 2, 2**64 - 1], dtype=np.uint64)
    simhashes = rs.Signatures.from_simhash(fingerprints)
    assert simhashes[2].hamming(simhashes[0]) == 63
    assert simhashes.simhash is not None and np.array_equal(simhashes.simhash, fingerprints)
    assert rs.Signature.from_simhash(2**127, 128).simhash == 2**127
    wide = rs.Signature.from_simhash(2**255 + 5, 256)
    assert (wide.simhash, wide.simhash_bits) == (2**255 + 5, 256)
    assert rs.Signature.from_simhash(f"{2**255 + 5:064x}") == wide


def test_estimates_are_near_what_they_estimate(schema: rs.Schema) -> None:
    documents = texts(300, seed=3)
    signatures = schema.sketch_many(documents)
    errors = []
    for i in range(1, len(documents)):
        exact = jaccard(shingles(documents[i - 1]), shingles(documents[i]))
        errors.append(signatures[i - 1].jaccard(signatures[i]) - exact)
    assert abs(float(np.mean(errors))) < 0.01


def test_a_union_needs_whole_values(schema: rs.Schema) -> None:
    signatures = schema.sketch_many(texts(2, seed=3))
    with pytest.raises(rs.SignatureMismatchError):
        signatures[0].merge(signatures[1])
    whole = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64, value_bits=32))
    a, b = (whole.sketch(text) for text in ("one two three", "three four five"))
    merged = a.merge(b)
    assert merged == b.merge(a)
    shingled = ["one two", "two three", "three four", "four five"]
    assert merged == whole.sketch_features(shingled)


def test_features_are_those_of_texts(schema: rs.Schema) -> None:
    text = "A rose is a rose is a rose"
    assert len(schema.features(text)) == len(shingles(text))
    words = rs.Schema(text=rs.Text.words(1), minhash=rs.MinHash(64))
    assert words.sketch("c a b") == words.sketch_features(["a", "b", b"c"])


def _sketch(job: tuple[rs.Schema, list[str]]) -> rs.Signatures:
    schema, documents = job
    return schema.sketch_many(documents)


def test_other_processes_sketch(schema: rs.Schema) -> None:
    """As `datasets.map(..., num_proc=2)` does it: the schema is pickled, signatures come back."""
    documents = texts(400)
    jobs = [(schema, documents[:200]), (schema, documents[200:])]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(_sketch, jobs))
    here = schema.sketch_many(documents)
    assert [*parts[0].to_bytes(), *parts[1].to_bytes()] == here.to_bytes()


def test_weights_travel(schema: rs.Schema) -> None:
    plain = rs.Schema(text=rs.Text.words(1), simhash=rs.SimHash(64))
    weighted = plain.with_weights(["the cat", "the dog", "the bird and the bee"])
    assert weighted.is_weighted and weighted != plain
    again = pickle.loads(pickle.dumps(weighted))
    assert again == weighted
    assert again.sketch("the cat") == weighted.sketch("the cat")
    with pytest.raises(rs.InvalidParameterError):
        schema.with_weights(["a"])


def test_values_of_a_schema_come_back_as_its_signatures() -> None:
    """Values that a schema mixed and cut are no values that another program made."""
    documents = ["one two three four five six", "one two three four five seven", ""]
    for minhash in (rs.MinHash(128), rs.MinHash(64, value_bits=32), rs.MinHash(64, value_bits=1)):
        schema = rs.Schema(text=rs.Text.words(1), minhash=minhash)
        made = schema.sketch_many(documents)
        values, first = made.minhash, made[0].minhash
        assert values is not None and first is not None
        again = rs.Signatures.from_minhash(values, schema=schema)
        assert again == made and again.to_bytes() == made.to_bytes()
        alone = rs.Signature.from_minhash(first, schema=schema)
        assert alone.jaccard(made[0]) == 1.0 and alone.jaccard(made[1]) == made[0].jaccard(made[1])
        assert pickle.loads(pickle.dumps(alone)) == alone
        with pytest.raises(rs.SignatureMismatchError, match="found 3, expected"):
            rs.Signature.from_minhash([1, 2, 3], schema=schema)
        assert again[2].is_empty


def test_values_without_a_schema_are_refused_where_values_are_cut(path: Path) -> None:
    schema = rs.Schema(text=rs.Text.words(1), minhash=rs.MinHash(128))
    made = schema.sketch_many(["one two three four", "five six seven"])
    values = made.minhash
    assert values is not None
    bare = rs.Signatures.from_minhash(values)
    for one, other in ((made[0], bare[0]), (bare[0], made[0])):
        with pytest.raises(rs.SignatureMismatchError, match=r"without a schema, .*: Signature\.from_minhash\(values, schema="):
            one.jaccard(other)
    with rs.Store.create(path, schema) as store:
        attempts: list[Callable[[], object]] = [
            lambda: store.insert("a", bare[0]),
            lambda: store.insert_many(bare),
            lambda: store.insert_many(list(bare)),
            lambda: store.query(bare[0]),
            lambda: store.query_many(bare),
            lambda: store.nearest(bare[0]),
            lambda: store.snapshot().candidates(bare[0]),
            lambda: rs.pairs(bare, schema),
            lambda: rs.dedup(bare, schema),
            lambda: store.queue_insert_if_new("a", bare[0]),
        ]
        for attempt in attempts:
            with pytest.raises(rs.SignatureMismatchError, match="from_minhash"):
                attempt()
        assert len(store) == 0
    outside = rs.Schema(minhash=rs.MinHash(128, kind="external"))
    assert [len(found) for found in (rs.pairs(bare, outside).arrays()["a"],)] == [0]


@pytest.mark.parametrize(("size", "distance"), [(8, 6), (16, 24)])
def test_hashes_of_pictures_pair_as_brute_force_does(size: int, distance: int) -> None:
    names = ("imagehash", "PIL.Image", "sklearn.datasets")
    imagehash, images, samples = (pytest.importorskip(name) for name in names)
    digits = [images.fromarray((pixels * 15).astype(np.uint8)) for pixels in samples.load_digits().images[:500]]
    hashes = [imagehash.dhash(digit, hash_size=size) for digit in digits]
    bits = np.array([made.hash.ravel() for made in hashes])
    distances = (bits[:, None] != bits[None]).sum(axis=2)
    a, b = np.nonzero(np.triu(distances <= distance, 1))
    expected = set(zip(a.tolist(), b.tolist(), distances[a, b].tolist()))
    assert len(expected) > 50
    schema = rs.Schema(simhash=rs.SimHash(size * size, max_distance=distance, external=True))
    found = rs.pairs(rs.Signatures.from_simhash([str(made) for made in hashes]), schema).arrays()
    assert set(zip(*(found[name].tolist() for name in ("a", "b", "distance")))) == expected


def test_masked_elements_are_refused() -> None:
    values = np.ma.masked_equal(np.arange(128, dtype=np.uint32).reshape(2, 64), 5)
    single = np.ma.masked_equal(np.arange(8, dtype=np.float32), 5)
    vectors = rs.Schema(vector=rs.Vector(8))
    for call in (
        lambda: rs.Signature.from_minhash(values[0]),
        lambda: rs.Signatures.from_minhash(values),
        lambda: rs.Signatures.from_simhash(values[0].astype(np.uint64)),
        lambda: vectors.sketch_vector(single),
    ):
        with pytest.raises(rs.InvalidParameterError, match="masked"):
            call()
    # Without one that is masked, such an array is like any other.
    assert rs.Signature.from_minhash(values[1]) == rs.Signature.from_minhash(list(range(64, 128)))
