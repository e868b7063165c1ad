"""The same answers from Spark as from one process, however the rows are cut."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import WORDS, run_tool, texts

import resemblance as rs

pytest.importorskip("pyspark", reason="pyspark is not installed: the job on Spark is not tested")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: the job on Spark is not tested")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("there is no Java here: the job on Spark is not tested", allow_module_level=True)

from pyspark.sql import DataFrame, SparkSession  # noqa: E402

from resemblance import spark as rss  # noqa: E402
from resemblance.spark import _job, _result  # noqa: E402

SCHEMA = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64, threshold=0.6))


def session(master: str) -> SparkSession:
    """A session for few rows."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    made = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "1g")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.locality.wait", "0")
        .config("spark.ui.showConsoleProgress", "false")
        # The rows are few: what Spark does to be quick with many is most of its work here.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("ERROR")
    return made


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Two workers in this process; `test_spark_workers.py` has others."""
    with session("local[2]") as made:
        yield made


def corpus(count: int = 240) -> list[str]:
    """Texts with copies, texts of equal features, and empty ones: 100 and more of them."""
    made = texts(count, seed=5, words=30)
    made[7] = made[3]
    made[90] = made[3]
    made[11] = made[5].upper() + "!"
    made[20] = made[21] = ""
    made[30] = "  ,;  "
    return made


def frame(spark: SparkSession, documents: list[str], parts: int, seed: int | None = None) -> DataFrame:
    rows = [(n, f"key {n % 100}/{n}", text) for n, text in enumerate(documents)]
    if seed is not None:
        random.Random(seed).shuffle(rows)
    return spark.createDataFrame(
        spark.sparkContext.parallelize(rows, parts), "ordinal long, key string, text string"
    )


def keys(documents: list[str]) -> list[str]:
    return [f"key {n % 100}/{n}" for n in range(len(documents))]


def table(rows: list[tuple[str, str, str]]) -> list[str]:
    return ["\t".join(row) for row in sorted(rows)]


def pair_lines(documents: list[str], schema: rs.Schema, **options: Any) -> list[str]:
    """The lines of the tool for the pairs of a corpus."""
    names = keys(documents)
    rows = []
    for pair in rs.pairs(documents, schema, **options):
        one, two = sorted([names[pair.a], names[pair.b]])
        similarity = "" if pair.similarity is None else f"{pair.similarity:.6f}"
        distance = "" if pair.distance is None else str(pair.distance)
        scores = [similarity] if schema.minhash else []
        scores += [distance] if schema.simhash else []
        rows.append((one, two, "\t".join(scores)))
    return table(rows)


def cluster_lines(documents: list[str], schema: rs.Schema, **options: Any) -> list[str]:
    names = keys(documents)
    found = rs.clusters(documents, schema, **options)
    rows = [(names[cluster.ids[0]], names[n]) for cluster in found for n in cluster.ids]
    return ["\t".join(row) for row in sorted(rows)]


def dropped_rows(documents: list[str], schema: rs.Schema, policy: Any, **options: Any) -> list[Any]:
    found = rs.dedup(documents, schema, policy=policy, **options)
    return [(d.position, d.survivor, d.similarity, d.distance) for d in found.duplicates]


def lines(result: rss.Result) -> list[str]:
    return [str(row["value"]) for row in result.lines().collect()]


def dropped(result: rss.Result) -> list[Any]:
    assert result.dropped is not None
    columns = ("ordinal", "survivor", "similarity", "distance")
    return sorted(tuple(row[name] for name in columns) for row in result.dropped.collect())


def kept(result: rss.Result) -> list[int]:
    return sorted(int(row["ordinal"]) for row in result.frame.collect())


@pytest.mark.parametrize(("parts", "seed"), [(2, None), (8, 1), (31, 2)])
def test_the_answers_do_not_depend_on_partitions_and_their_order(
    spark: SparkSession, tmp_path: Path, parts: int, seed: int | None
) -> None:
    documents = corpus()
    spark.conf.set("spark.sql.shuffle.partitions", str(parts))
    given = frame(spark, documents, parts, seed)
    join = _job.Join(given, SCHEMA, str(tmp_path / "work"), _job.Options(key="key", block_pairs=40))
    # One join, and all that is made of it.
    class_pairs = join.run()
    counts = join.counts
    assert counts["documents"] == 240 and counts["empty"] == 3 and counts["null_texts"] == 0
    assert counts["copies"] > 3 and counts["kin"] == 0
    manifest = join.manifest("pairs")
    keyed = _result.keyed(join)
    pairs = _result.label(join.all_pairs(class_pairs), keyed, "a", "b")
    expected = pair_lines(documents, SCHEMA)
    assert len(expected) > 40 and lines(rss.Result(pairs, manifest)) == expected
    clusters = _result.label(join.clusters(class_pairs), keyed, "cluster", "ordinal")
    found = rss.Result(clusters, {**manifest, "result": "clusters"})
    assert lines(found) == cluster_lines(documents, SCHEMA)
    decisions: dict[str, Callable[[], DataFrame]] = {
        "first": lambda: join.first_dropped(class_pairs),
        "representative": lambda: join.first_dropped(class_pairs, by_count=True),
        "cluster": lambda: join.cluster_dropped(class_pairs),
    }
    for policy, find in decisions.items():
        rows = dropped(rss.Result(given, manifest, find()))
        assert rows == dropped_rows(documents, SCHEMA, policy)
    spark.conf.set("spark.sql.shuffle.partitions", "3")


def test_an_enormous_bucket_is_cut_short_and_what_that_leaves_out_is_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    chance, boilerplate = random.Random(3), " ".join(WORDS[:40])
    documents = [f"{boilerplate} {' '.join(chance.choices(WORDS, k=9))}" for _ in range(120)]
    documents[50:60] = documents[40:50]
    given = frame(spark, documents, 4, 1)
    found = rs.pairs(documents, SCHEMA, max_bucket=5)
    list(found)
    assert found.left_out is not None
    left_out = {name: getattr(found.left_out, name) for name in ("buckets", "documents", "pairs")}
    result = rss.pairs(given, SCHEMA, work=str(tmp_path / "work"), key="key", max_bucket=5)
    assert lines(result) == pair_lines(documents, SCHEMA, max_bucket=5)
    assert result.manifest["left_out"] == left_out and left_out["buckets"] > 0
    with pytest.raises(ValueError, match="max_bucket"):
        rss.dedup(given, SCHEMA, work=str(tmp_path / "work"), max_bucket=5)
    # A bucket of one text again and again is no bucket of many.
    copies = frame(spark, [boilerplate] * 5_000, 4, 1)
    alone = rss.dedup(copies, SCHEMA, work=str(tmp_path / "work"))
    assert kept(alone) == [0] and alone.manifest["counts"]["copies"] == 4_999


@pytest.mark.parametrize("near", ["any", "both"])
def test_both_families_and_estimates(spark: SparkSession, tmp_path: Path, near: Any) -> None:
    schema = rs.Schema(
        text=rs.Text.words(2),
        minhash=rs.MinHash(64, threshold=0.6),
        simhash=rs.SimHash(64, max_distance=3),
        near=near,
        empty_documents="alike",
    )
    documents, exact = corpus(120), near == "any"
    given = frame(spark, documents, 3, 4)
    result = rss.pairs(given, schema, work=str(tmp_path / "work"), key="key", exact=exact)
    expected = pair_lines(documents, schema, exact=exact)
    assert lines(result) == expected and len(expected) > (10 if exact else 3)
    result = rss.dedup(given, schema, work=str(tmp_path / "work"), exact=exact)
    assert dropped(result) == dropped_rows(documents, schema, "first", exact=exact)


@pytest.mark.parametrize("kept_as", ["f32", None])
def test_vectors_as_one_machine_joins_them(spark: SparkSession, tmp_path: Path, kept_as: Any) -> None:
    chance, work = random.Random(8), str(tmp_path / "work")
    vectors = [[chance.gauss(0, 1) for _ in range(24)] for _ in range(80)]
    vectors += [[x + chance.gauss(0, 0.2) for x in vectors[n % 40]] for n in range(80)]
    vectors += [[2 * x for x in vectors[3]], vectors[9]]
    schema = rs.Schema(vector=rs.Vector.cosine(24, threshold=0.95, kept=kept_as))
    signatures = schema.sketch_vectors(vectors)
    rows = [(n, f"k{n}", vector) for n, vector in enumerate(vectors)]
    chance.shuffle(rows)
    given = spark.createDataFrame(rows, "ordinal long, key string, vector array<double>").repartition(4)
    found = rss.pairs(given, schema, work=work)
    expected = {(pair.a, pair.b): pair.similarity for pair in rs.pairs(signatures, schema)}
    assert {(row.a, row.b): row.similarity for row in found.frame.collect()} == expected
    assert len(expected) > 40 and found.manifest["families"] == ["vector"]
    reduced = rss.dedup(given, schema, work=work, key="key")
    left = [d.position for d in rs.dedup(signatures, schema).duplicates]
    assert kept(reduced) == sorted(set(range(len(rows))) - set(left)) and len(lines(reduced)) == len(left)
    of_floats = given.withColumn("vector", given["vector"].cast("array<float>"))
    linked = rss.clusters(of_floats, schema, work=work).frame.collect()
    assert {(row.cluster, row.ordinal) for row in linked} == {
        (cluster.ids[0], n) for cluster in rs.clusters(signatures, schema) for n in cluster.ids
    }
    with pytest.raises(ValueError, match="exact: found True"):
        rss.pairs(given, schema, work=work, exact=True)
    with pytest.raises(ValueError, match="found null in 1 rows"):
        rss.pairs(given.selectExpr("ordinal", "IF(ordinal = 4, NULL, vector) AS vector"), schema, work=work)
    with pytest.raises(ValueError, match="schema: found vectors"):
        rss.build_shards(given, schema, path=str(tmp_path / "shards"), shards=2, work=work)


def test_a_chain_of_10_000(spark: SparkSession, tmp_path: Path) -> None:
    numbers = list(range(10_000))
    schema = rs.Schema(text=rs.Text.words(1), minhash=rs.MinHash(64, threshold=0.75, recall=0.9999))
    documents = [" ".join(f"w{4 * n + k}" for k in range(40)) for n in numbers]
    result = rss.dedup(frame(spark, documents, 4, 1), schema, work=str(tmp_path / "work"))
    expected = rs.dedup(documents, schema)
    assert kept(result) == expected.positions.tolist()
    # Nearly every other one: a chain is decided one document after the other.
    assert 4_900 < len(expected.positions) < 5_300


def test_stars_give_the_components_of_one_task(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(9)
    edges = [(n, n + 1) for n in range(60)] + [(100, 200), (200, 300), (100, 300)]
    edges += [(500 + chance.randrange(90), 600 + chance.randrange(90)) for _ in range(80)]
    labels = []
    for one_task_pairs in (0, 1_000):
        join = _job.Join(
            frame(spark, [""], 1), SCHEMA, str(tmp_path / "work"), _job.Options(one_task_pairs=one_task_pairs)
        )
        pairs = join.work.keep("class_pairs", spark.createDataFrame(edges, "a long, b long"))
        found = join.components(pairs).collect()
        labels.append(sorted((row["document"], row["first"]) for row in found))
    assert labels[0] == labels[1]
    assert labels[0][:61] == [(n, 0) for n in range(61)]


def test_ordinals_are_the_places_of_rows_or_their_ranks(spark: SparkSession, tmp_path: Path) -> None:
    documents = corpus(100)
    given = frame(spark, documents, 5, 8)
    pages = str(tmp_path / "pages")
    given.repartitionByRange(3, "ordinal").sortWithinPartitions("ordinal").withColumnRenamed(
        "ordinal", "expected"
    ).write.parquet(pages)
    read = rss.read_parquet(spark, pages).collect()
    assert len(read) == 100 and all(row["ordinal"] == row["expected"] for row in read)
    work = str(tmp_path / "work")
    ranked = rss.number(given.withColumnRenamed("ordinal", "expected"), "key", work=work)
    names = sorted(keys(documents))
    assert [row["key"] for row in ranked.orderBy("ordinal").collect()] == names
    assert ranked.agg({"ordinal": "max"}).collect()[0][0] == 99
    with pytest.raises(ValueError, match="differ in all rows"):
        rss.number(given.union(given), "key", work=work)
    with pytest.raises(ValueError, match="found null among .* in 2 rows"):
        rss.number(given.selectExpr("key", "NULLIF(text, '') AS text"), ["key", "text"], work=work)


def test_what_is_wrong_with_the_rows_is_said(spark: SparkSession, tmp_path: Path) -> None:
    work = str(tmp_path / "work")
    rows = [(0, "a", "one two three"), (1, "b", None), (2, "c", "one two three")]
    given = spark.createDataFrame(rows, "ordinal long, key string, text string")
    with pytest.raises(ValueError, match="found null in 1 rows"):
        rss.pairs(given, SCHEMA, work=work)
    result = rss.dedup(given, SCHEMA, work=work, nulls="skip")
    assert kept(result) == [0] and result.manifest["counts"]["null_texts"] == 1
    twice = given.union(given).where("text is not null")
    with pytest.raises(ValueError, match="2 different values in 4 rows"):
        rss.pairs(twice, SCHEMA, work=work)
    with pytest.raises(ValueError, match="columns"):
        rss.pairs(given, SCHEMA, work=work, text="body")
    # Most of these partitions are empty.
    few = ["", *texts(8), *texts(3), "", "."]
    found = rss.pairs(frame(spark, few, 31, 1), SCHEMA, work=work, key="key")
    assert lines(found) == pair_lines(few, SCHEMA) and found.manifest["counts"]["empty"] == 3
    nothing = rss.clusters(given.where("ordinal > 9"), SCHEMA, work=work, key="key")
    assert lines(nothing) == [] and nothing.manifest["counts"]["documents"] == 0


def test_the_union_of_shards_answers_as_one_store(spark: SparkSession, tmp_path: Path) -> None:
    documents = corpus(150)
    shards, work = tmp_path / "shards", str(tmp_path / "work")
    given = frame(spark, documents, 5, 2)
    manifest = rss.build_shards(given, SCHEMA, path=str(shards), shards=3, work=work)
    assert manifest["counts"]["documents"] == 150
    assert json.loads((tmp_path / "shards.manifest.json").read_text())["recipe"] == manifest["recipe"]
    one = tmp_path / "one.rsm"
    rs.bulk_build(one, list(zip(keys(documents), documents)), SCHEMA)
    asked = documents[:40] + texts(10, seed=77)
    found = rss.query(frame(spark, asked, 3), path=str(shards), limit=3).collect()
    answers: dict[int, list[Any]] = {n: [] for n in range(len(asked))}
    for row in sorted(found, key=lambda row: (row["query"], row["rank"])):
        answers[row["query"]].append((row["key"], row["similarity"]))
    with rs.Store.open(one) as store:
        for n, text in enumerate(asked):
            assert answers[n] == [(match.key, match.similarity) for match in store.query(text, limit=3)]
    merged = tmp_path / "merged.rsm"
    assert rs.merge(merged, sorted(shards.glob("*.rsm"))).documents == 150
    # A second run gives the same files their names again.
    rss.build_shards(given, SCHEMA, path=str(shards), shards=3, work=work)


def test_a_real_corpus(spark: SparkSession, tmp_path: Path) -> None:
    data = os.environ.get("RESEMBLANCE_DATA")
    if data is None:
        pytest.skip("RESEMBLANCE_DATA names no corpora: a real corpus is not compared")
    file = tmp_path / "corpus.jsonl"
    with gzip.open(Path(data) / "versions" / "docs.jsonl.gz", "rt", encoding="utf-8") as source:
        file.write_text("".join(line for line, _ in zip(source, range(200))), encoding="utf-8")
    check_files(spark, file, tmp_path, 0.5, 5)


def test_kept_clusters_of_a_real_corpus_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Documents enter a store in random order, and some leave it."""
    data = os.environ.get("RESEMBLANCE_DATA")
    if data is None:
        pytest.skip("RESEMBLANCE_DATA names no corpora: a real corpus is not compared")
    with gzip.open(Path(data) / "versions" / "docs.jsonl.gz", "rt", encoding="utf-8") as source:
        documents = [json.loads(line)["text"] for line, _ in zip(source, range(240))]
    recipe: dict[str, Any] = {"text": rs.Text.words(5), "minhash": rs.MinHash(128, threshold=0.5)}
    order, chance = list(range(len(documents))), random.Random(48)
    chance.shuffle(order)
    left: list[int] = []
    with rs.Store.create(tmp_path / "kept.rsm", rs.Schema(exact=True, clusters=True, **recipe)) as store:
        for number in order:
            store.insert(str(number), documents[number])
            left.append(number)
            if chance.random() < 0.3:
                store.remove(str(left.pop(chance.randrange(len(left)))))
        kept = {frozenset(store.members(id).keys) for id, size in store.largest_clusters(1_000) if size > 1}
        assert kept == {frozenset(cluster.keys) for cluster in store.clusters()} and len(kept) > 9
    left.sort()
    schema = rs.Schema(**recipe)
    batch = rs.clusters([documents[number] for number in left], schema)
    assert kept == {frozenset(str(left[n]) for n in cluster.ids) for cluster in batch}
    rows = spark.createDataFrame(
        [(number, str(number), documents[number]) for number in left], "ordinal long, key string, text string"
    )
    found: dict[str, set[str | None]] = {}
    for line in lines(rss.clusters(rows, schema, work=str(tmp_path / "work"), key="key")):
        cluster, key = line.split("\t")
        found.setdefault(cluster, set()).add(key)
    assert kept == {frozenset(keys) for keys in found.values()}


def check_files(spark: SparkSession, file: Path, folder: Path, threshold: float, words: int) -> None:
    """Compares each file with that of the tool."""
    schema = rs.Schema(text=rs.Text.words(words), minhash=rs.MinHash(128, threshold=threshold))
    made = ["--words", str(words), "--threshold", str(threshold), "-q"]

    def run(*arguments: str) -> bytes:
        return run_tool(*arguments, *made)

    # Several splits: lines stand across their ends.
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(file.stat().st_size // 5))
    documents = rss.read_lines(spark, str(file))
    options: dict[str, Any] = {"work": str(folder / "work"), "key": "key"}
    rss.pairs(documents, schema, **options).save_lines(str(folder / "pairs"))
    assert parts(folder / "pairs") == run("pairs", str(file), "--no-header")
    rss.clusters(documents, schema, **options).save_lines(str(folder / "clusters"))
    assert parts(folder / "clusters") == run("clusters", str(file), "--no-header")
    policies: list[Any] = ["first", "cluster"]
    for policy in policies:
        result = rss.dedup(documents, schema, policy=policy, **options)
        result.save_lines(str(folder / "report"))
        report = folder / "report.tsv"
        expected = run(
            *("dedup", str(file), "-o", "-", "--policy", policy),
            *("--report", str(report), "--no-header", "--force"),
        )
        result.save_rows(str(folder / "lines"))
        assert parts(folder / "lines") == expected
        # The tool's further columns are the evidence of a drop.
        told = [b"\t".join(line.split(b"\t")[:3]) for line in report.read_bytes().splitlines()]
        assert parts(folder / "report").splitlines() == told
    spark.conf.unset("spark.sql.files.maxPartitionBytes")


def parts(folder: Path) -> bytes:
    """The text files of a folder, one after the other."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("part-*")))


def write_lines(file: Path, documents: list[tuple[str, str]]) -> Path:
    """JSON Lines with a number in each."""
    with file.open("w", encoding="utf-8") as out:
        for n, (key, text) in enumerate(documents):
            out.write(json.dumps({"id": key, "text": text, "quality": n * 37 % 11}) + "\n")
    return file


def test_the_rule_that_says_which_stays_as_the_tool_applies_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    documents = corpus(160)
    # Of near-duplicates, the later ones are often longer.
    longer = [text + " too" * (n % 3) for n, text in enumerate(documents)]
    file = write_lines(tmp_path / "corpus.jsonl", list(zip(keys(longer), longer)))
    read = rss.read_lines(spark, str(file)).withColumnRenamed("ordinal", "place")
    rules: list[tuple[str, str, Any]] = [
        ("longest", "-length(text)", "first"),
        ("quality:max", "-get_json_object(line, '$.quality')", "cluster"),
    ]
    for rule, score, policy in rules:
        scored = read.selectExpr("*", f"CAST({score} AS double) AS rank")
        ranked = rss.number(scored, by=["rank", "place"], work=str(tmp_path / "order"))
        options: dict[str, Any] = {"policy": policy, "key": "key", "work": str(tmp_path / "work")}
        result = rss.dedup(ranked, SCHEMA, **options)
        report = tmp_path / "report.tsv"
        bounds = ("--words", "2", "--minhash", "64", "--threshold", "0.6")
        printed = ("-o", "-", "-q", "--force", "--report", report, "--no-header")
        expected = run_tool("dedup", file, "--keep", rule, "--policy", policy, *printed, *bounds)
        stays = result.frame.orderBy("place").collect()
        assert [row["line"] for row in stays] == expected.decode().splitlines()
        told = ["\t".join(line.split("\t")[:3]) for line in report.read_text().splitlines()]
        assert sorted(lines(result)) == sorted(told) and len(told) > 30
        # Another rule keeps others.
        own = rs.dedup([row["text"] for row in read.orderBy("place").collect()], SCHEMA, policy=policy)
        assert [row["place"] for row in stays] != own.positions.tolist()


def test_new_files_against_shards_as_the_tool_does_it(spark: SparkSession, tmp_path: Path) -> None:
    rows = list(zip(keys(corpus(200)), corpus(200)))
    old, new = (
        write_lines(tmp_path / name, part)
        for name, part in (("old.jsonl", rows[:130]), ("new.jsonl", rows[130:]))
    )
    one, report = tmp_path / "one.rsm", tmp_path / "report.tsv"
    made = ["--words", "2", "--threshold", "0.6", "--minhash", "64"]
    run_tool("build", one, old, "-q", *made)
    expected = run_tool("dedup", new, "--against", one, "-o", "-", "--report", report, "--no-header", "-q")
    shards, more = str(tmp_path / "shards"), str(tmp_path / "more")
    work = ["--work", str(tmp_path / "work")]
    # The job ends its session: it is run as from a shell, in a process of its own.
    job = [sys.executable, "-m", "resemblance.spark", "--master", "local[2]"]
    subprocess.run([*job, "build", str(old), *work, "-o", shards, "--shards", "3", *made], check=True)
    result = rss.dedup(
        rss.read_lines(spark, str(new)), against=shards, key="key", work=str(tmp_path / "dedup")
    )
    result.save_rows(str(tmp_path / "lines"))
    assert parts(tmp_path / "lines") == expected
    result.save_lines(str(tmp_path / "report"))
    told = [b"\t".join(line.split(b"\t")[:3]) for line in report.read_bytes().splitlines()]
    assert parts(tmp_path / "report").splitlines() == told and len(told) > 10
    run_tool("add", one, new, "--if-new", "-q")
    subprocess.run([*job, "add", str(new), *work, "--shards", shards, "-o", more, "--if-new"], check=True)
    found: set[Any] = set()
    for path in Path(more).glob("*.rsm"):
        with rs.Store.open(path, read_only=True) as store:
            found |= set(store)
    with rs.Store.open(one) as store:
        assert found == set(store) and 130 < len(found) < 200
