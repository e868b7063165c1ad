"""Shared passages."""

from __future__ import annotations

from pathlib import Path

import pytest

import resemblance as rs


def words(first: int, count: int) -> str:
    return " ".join(f"word{number}" for number in range(first, first + count))


@pytest.fixture
def store(tmp_path: Path) -> rs.Store:
    schema = rs.Schema(text=rs.Text.words(3), containment=rs.Containment(3, window=4))
    store = rs.Store.create(tmp_path / "pages.rsm", schema)
    for page in range(20):
        quoted = words(1_000 * page, 30)
        store.insert(f"page {page}", f"{words(100 * page, 40)} {quoted} the end of all pages")
    return store


def test_a_paragraph_is_found_in_its_page(store: rs.Store) -> None:
    paragraph = words(7_000, 30)
    found = store.snapshot().contained_in(paragraph)
    assert [overlap.key for overlap in found] == ["page 7"]
    overlap = found[0]
    assert overlap.query_share == 1.0
    assert 0 < overlap.document_share < 1
    assert overlap.longest_run is not None and overlap.longest_run > 20
    assert overlap.query_share_variance is None
    assert (found.query_hashes, found.capped_hashes) == (overlap.shared_hashes, 0)
    assert len(store.snapshot().contained_in(words(90_000, 30))) == 0


def test_many_are_answered_as_one_by_one(store: rs.Store) -> None:
    snapshot = store.snapshot()
    texts = [f"{words(1_000 * page, 30)} the end of all pages" for page in range(20)]
    for one, many in [
        (snapshot.contained_in, snapshot.contained_in_many),
        (snapshot.contents_of, snapshot.contents_of_many),
        (snapshot.overlaps, snapshot.overlaps_many),
    ]:
        assert many(texts) == [one(text) for text in texts]
    limited = snapshot.overlaps(texts[0], limit=2, max_document_frequency=5)
    assert [overlap.key for overlap in limited] == ["page 0"]
    assert limited.capped_hashes > 0
    pages = [record.signature for record in snapshot.records()]
    assert snapshot.contents_of(pages[3])[0].document_share == 1.0
    assert snapshot.contents_of(pages[3])[0].longest_run is None


def test_filters_choose_documents(store: rs.Store) -> None:
    snapshot = store.snapshot()
    texts = [f"{words(1_000 * page, 30)} the end of all pages" for page in range(20)]
    later = rs.Filter(key_prefix="page 1", matching=lambda document: document.id > 1)
    found = snapshot.overlaps(texts[0], filter=later, max_document_frequency=10)
    expected = [overlap for overlap in snapshot.overlaps(texts[0]) if overlap.id >= 10]
    assert list(found) == expected and len(expected) > 1
    assert found.capped_hashes == 0 < snapshot.overlaps(texts[0], max_document_frequency=10).capped_hashes
    for one, many in [
        (snapshot.contained_in, snapshot.contained_in_many),
        (snapshot.contents_of, snapshot.contents_of_many),
        (snapshot.overlaps, snapshot.overlaps_many),
    ]:
        assert many(texts, filter=later) == [one(text, filter=later) for text in texts]
        raising = rs.Filter(matching=lambda document: bool(1 / 0))
        with pytest.raises(ZeroDivisionError):
            one(texts[0], filter=raising)
        with pytest.raises(ZeroDivisionError):
            many(texts, filter=raising)


def test_positions_tell_where_passages_stand(tmp_path: Path) -> None:
    containment = rs.Containment(3, window=1, positions=True)
    schema = rs.Schema(text=rs.Text.words(3), containment=containment)
    assert schema.containment == containment and rs.Containment(3).positions is False
    store = rs.Store.create(tmp_path / "placed.rsm", schema)
    page = f"{words(0, 40)} {words(7_000, 30)} the end"
    store.insert("page", page)
    query = f"They say {words(7_000, 12)} and then {words(7_020, 5)}"
    [found] = store.snapshot().overlaps(query)
    assert found.passages is not None
    for passage in found.passages:
        (start, end), (there, there_end) = passage.query, passage.document
        assert query.split()[start : end + 2] == page.split()[there : there_end + 2]
    assert [passage.query for passage in found.passages] == [(2, 12), (16, 19)]
    [again] = store.snapshot().overlaps(schema.sketch(query))
    assert again == found
    plain = rs.Store.create(tmp_path / "plain.rsm", rs.Schema(text=rs.Text.words(3), containment=rs.Containment(3)))
    plain.insert("page", page)
    assert plain.snapshot().overlaps(page)[0].passages is None


def test_boilerplate_is_what_many_documents_have(tmp_path: Path) -> None:
    schema = rs.Schema(text=rs.Text.words(3), containment=rs.Containment(3, window=1))
    store = rs.Store.create(tmp_path / "pages.rsm", schema)
    menu = "Hôme | About us | All rights reserved"
    for page in range(12):
        store.insert(None, f"{menu} {words(100 * page, 20)}" + (" the end" if page < 4 else ""))
    texts = [f"{words(9_000, 7)} é {menu} {words(8_000, 5)}", words(9_000, 9), words(300, 20) + " the end"]
    found = store.snapshot().frequent_passages(texts, 5)
    assert [[text[at.start : at.end] for at in own] for text, own in zip(texts, found)] == [[menu], [], []]
    assert [(at.shingles, at.documents) for at in found[0]] == [(4, 12)]
    assert store.snapshot().frequent_passages(texts * 300, 5, threads=2) == found * 300
    some = rs.Filter(matching=lambda document: document.id < 7)
    assert [at.documents for at in store.snapshot().frequent_passages(texts, 5, filter=some)[0]] == [7]
    assert store.snapshot().frequent_passages(texts, 7, filter=some) == [[], [], []]
    with pytest.raises(TypeError, match="texts"):
        store.snapshot().frequent_passages([schema.sketch("a b c d")], 5)


def test_mistakes_name_the_parameter(store: rs.Store, tmp_path: Path) -> None:
    with pytest.raises(rs.InvalidParameterError, match="min_share"):
        store.snapshot().overlaps("some text", min_share=2.0)
    with pytest.raises(rs.InvalidParameterError, match="containment alone"):
        store.query("some text")
    with pytest.raises(rs.InvalidParameterError, match="scaled"):
        rs.Schema(containment=rs.Containment(5, window=3, scaled=2))
    near = rs.Store.create(tmp_path / "near.rsm", rs.Schema(text=rs.Text.words(3), minhash=rs.MinHash(64)))
    with pytest.raises(rs.InvalidParameterError, match="containment"):
        near.snapshot().overlaps("some text")
