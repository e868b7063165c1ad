"""Reads a store without resemblance: a program in Python's standard library, written from format-spec.md alone.

    python3 read_store.py seen.rsm

prints each document with its signature, and each kept cluster. The numbers in brackets are sections of the
specification. Every value is compared with its checksum (1.3); the checksums of redb's pages are XXH3, which the
standard library does not have, and are not compared. Searching needs no more than this: documents that share a
band or a table are candidates, and their signatures decide.
"""

import json
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

PAGE = 4096
VERSION = 1
KNOWN_BITS = 1 << 8 | 1 << 9 | 1 << 10  # weights, sets, clusters [10]


class CannotRead(Exception):
    """The file is no store, is damaged, or needs a newer reader."""


class Bytes:
    """Reads numbers from the front of some bytes. [1.2]"""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise CannotRead("a value is shorter than its fields")
        self.at += count
        return self.data[self.at - count : self.at]

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)

    def u(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def f64(self) -> float:
        return float(struct.unpack("<d", self.take(8))[0])

    def fields(self, count: int, width: int) -> list[int]:
        """Packed fields of some bits each, the lowest bits first."""
        packed = self.u((count * width + 7) // 8)
        return [packed >> (i * width) & (1 << width) - 1 for i in range(count)]

    def ascending(self, bits: int) -> list[int]:
        """Hashes of so many bits in the code of Elias and Fano. [2.3]"""
        count = self.u(4)
        if count == 0:
            return []
        low_bits = bits - (count.bit_length() - 1)
        low = self.fields(count, low_bits)
        upper = self.u((count + (1 << bits - low_bits) + 7) // 8)
        ones = [at for at in range(upper.bit_length()) if upper >> at & 1]
        return [(at - i) << low_bits | low[i] for i, at in enumerate(ones)]


@dataclass
class Table:
    """A tree of redb's pages: its root, and the widths of keys and values that all have one."""

    root: int | None = None
    key_width: int | None = None
    value_width: int | None = None


class Database:
    """The tables of a redb file. [1.1, and docs/design.md of redb]"""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self.file = file.read()
        head = self.file[:PAGE]
        if head[:9] != b"redb\x1a\x0a\xa9\x0d\x0a" or head[320:328] != b"RESEMBL\x1a":
            raise CannotRead("the file is not a store")
        (journal,) = struct.unpack_from("<Q", head, 336)
        if journal or head[9] & 2:
            raise CannotRead("the store was not closed: open it once with resemblance")
        slot = head[64 + 128 * (head[9] & 1) :][:128]
        if slot[0] != 3:
            raise CannotRead("the file needs a newer reader of redb")
        self.header_pages, self.region_pages = struct.unpack_from("<II", head, 16)
        root = struct.unpack_from("<Q", slot, 8)[0] if slot[1] else None
        self.tables = {name.decode(): self.table(row) for name, row in self.rows_of(Table(root))}

    @staticmethod
    def table(row: bytes) -> Table:
        (root,) = struct.unpack_from("<Q", row, 10)
        key, value = (struct.unpack_from("<?I", row, at) for at in (42, 47))
        return Table(root if row[9] else None, *(width if fixed else None for fixed, width in (key, value)))

    def page(self, number: int) -> bytes:
        order = number >> 59
        index, region = number & 0xFFFFF >> order, number >> 20 & 0xFFFFF
        page = region * (self.header_pages + self.region_pages) + self.header_pages + (index << order)
        return self.file[(page + 1) * PAGE :][: PAGE << order]

    def rows_of(self, table: Table) -> Iterator[tuple[bytes, bytes]]:
        """The rows of a tree, in the order of their keys."""
        if table.root is None:
            return
        page = self.page(table.root)
        kind, count = struct.unpack_from("<BxH", page)
        if kind == 2:
            for child in struct.unpack_from(f"<{count + 1}Q", page, 8 + 16 * (count + 1)):
                yield from self.rows_of(Table(child, table.key_width, table.value_width))
            return
        if kind != 1:
            raise CannotRead("a page is no page of a tree")
        # Ends of keys and of values, unless all have one width; then the keys, and the values.
        ends, at = [], 4
        for width in (table.key_width, table.value_width):
            ends.append(struct.unpack_from(f"<{count}I", page, at) if width is None else None)
            at += 4 * count if width is None else 0
        bounds = []
        for width, stated in zip((table.key_width, table.value_width), ends, strict=True):
            bounds.append([at, *(stated or [at + (width or 0) * (i + 1) for i in range(count)])])
            at = bounds[-1][-1]
        keys, values = bounds
        for i in range(count):
            yield page[keys[i] : keys[i + 1]], page[values[i] : values[i + 1]]

    def rows(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        """The rows of a table, with the key as checksums take it, and the checked body. [1.3]"""
        table = self.tables.get(name, Table())
        for key, value in self.rows_of(table):
            # redb has numbers with the lowest byte first.
            key = key[::-1] if table.key_width in (2, 4, 8) else key
            yield key, value if name == "sets" else checked(name, key, value)


def checked(name: str, key: bytes, value: bytes) -> bytes:
    body, checksum = value[:-4], value[-4:]
    if zlib.crc32(name.encode() + b"\0" + key + body) != int.from_bytes(checksum, "little"):
        raise CannotRead(f"table {name}, key {key.hex()}: the checksum is wrong")
    return body


@dataclass
class Schema:
    """What decides how the row of a document is read. [4]"""

    seed: int = 0
    kind: int | None = None
    values: int = 0
    value_bits: int = 0
    threshold: float = 0
    dimensions: int = 0
    set_bits: int = 0
    has_containment: bool = False
    has_positions: bool = False
    fingerprint_bits: int = 0
    linkage: str | None = None


def minhash_kind(b: Bytes) -> tuple[int, int]:
    """A kind of MinHash, and of vectors their dimensions."""
    kind = b.u(4)
    if kind == 0:
        b.u(4)
    dimensions = b.u(2) if kind == 6 else 0
    if kind == 6 and b.u(4) == 1:
        b.f64()
    return kind, dimensions


def read_schema(b: Bytes) -> Schema:
    schema = Schema()
    if b.u(1):  # texts: the shingles matter to whoever makes signatures
        b.take({3: 1 + 2 + 3 + 10 + 10}.get(b.u(4), 2))
    schema.seed = b.u(8)
    empty = b.u(4)
    schema.set_bits = b.u(1) if empty & 4 else 44 * (empty >> 1 & 1)
    if b.u(1):  # the recipe's part of MinHash, which is repeated below
        minhash_kind(b)
        b.u(2)
    if b.u(1):
        b.u(2)
    if b.u(1):
        schema.has_containment = True
        b.u(2)
        rule = b.u(4)
        schema.has_positions = rule > 1
        b.take(2 if rule % 2 == 0 else 4)
    b.take(3)  # the version of Unicode
    if b.u(1):
        schema.kind, schema.dimensions = minhash_kind(b)
        schema.values, schema.value_bits, schema.threshold = b.u(2), b.u(1), b.f64()
        b.take(2 + 2 + 1)
    if b.u(1):
        schema.fingerprint_bits = b.u(1) or 256
        b.u(1)
        b.take(2 * b.u(8))
    schema.linkage = [None, "single", "star", "complete"][b.u(4) >> 1]
    return schema


@dataclass
class Document:
    """A document. Parts that the schema has not are None. [2.3]"""

    id: int
    key: bytes | None = None
    stamp: int = 0
    payload: bytes = b""
    is_empty: bool = False
    minhash: list[int] | None = None
    fingerprint: int | None = None
    kept_hashes: list[int] | None = None
    set_hashes: list[int] | None = None
    weights: list[int] = field(default_factory=list)
    vector: list[float] | None = None


def read_document(schema: Schema, number: int, b: Bytes) -> Document:
    flags = b.u(1)
    if flags & 15 != 1:
        raise CannotRead(f"document {number} is of an unknown kind")
    document = Document(number, is_empty=bool(flags & 16))
    if flags & 64:
        document.stamp = b.u(8)
    if flags & 32:
        document.key = b.take(b.u(2))
    if schema.kind == 2:
        document.minhash = [b.u(8) for _ in range(b.u(2))]
    elif schema.kind is not None:
        document.minhash = b.fields(schema.values, schema.value_bits)
    if schema.fingerprint_bits:
        document.fingerprint = b.u(schema.fingerprint_bits // 8)
    if schema.has_containment:
        document.kept_hashes = b.ascending(44)
    if schema.has_positions and document.kept_hashes:
        places, width = b.u(4), b.u(1)
        b.fields(places, width + 1)
    if b.rest():
        raise CannotRead(f"the row of document {number} is longer than its fields")
    return document


def read_vector(schema: Schema, b: Bytes) -> list[float]:
    """A vector, in one of three widths. [2.10]"""
    count = schema.dimensions
    if schema.set_bits == 8:
        exponent = struct.unpack("<h", b.take(2))[0]
        return [m * 2.0**exponent for m in struct.unpack(f"<{count}b", b.take(count))]
    code, width = ("e", 2) if schema.set_bits == 16 else ("f", 4)
    return list(struct.unpack(f"<{count}{code}", b.take(width * count)))


class Store:
    """The documents and the kept clusters of a store."""

    def __init__(self, path: str) -> None:
        self.database = Database(path)
        meta = {key: Bytes(body) for key, body in self.database.rows("meta")}
        header = meta[b"header"]
        if header.take(8) != b"RESEMBL\x1a":
            raise CannotRead("the file is not a store")
        _version, oldest_reader = header.u(2), header.u(2)
        _ignorable, _read_only, refuse = header.u(8), header.u(8), header.u(8)
        if oldest_reader > VERSION or refuse & ~KNOWN_BITS:
            raise CannotRead(f"the store needs a reader of format {oldest_reader}, or of unknown features")
        schema = meta[b"schema"]
        schema.u(1)
        self.schema = read_schema(schema)
        self.deleted = {number for key, body in self.database.rows("dead") for number in deleted(key, body)}
        self.positions = {key[9:]: b.rest() for key, b in meta.items() if key.startswith(b"position:")}

    def documents(self) -> Iterator[Document]:
        """The documents that exist, by their ids. [7.1]"""
        payloads = {key: body for key, body in self.database.rows("payloads")}
        sets = dict(self.sets())
        for key, body in self.database.rows("documents"):
            number = int.from_bytes(key, "big")
            if number in self.deleted:
                continue
            document = read_document(self.schema, number, Bytes(body))
            document.payload = payloads.get(key, b"")
            if self.schema.set_bits and self.schema.dimensions:
                document.vector = read_vector(self.schema, sets[number])
            elif self.schema.set_bits:
                b = sets[number]
                document.set_hashes = b.ascending(self.schema.set_bits)
                if self.schema.kind in (3, 5) and document.set_hashes:
                    shift, width = b.u(1), b.u(1)
                    document.weights = [w << shift for w in b.fields(len(document.set_hashes), width)]
            yield document

    def sets(self) -> Iterator[tuple[int, Bytes]]:
        for key, value in self.database.rows("sets"):
            number, b = int.from_bytes(key, "big"), Bytes(value)
            while b.at < len(value):
                number += b.u(4)
                yield number, Bytes(checked("sets", number.to_bytes(8, "big"), b.take(b.u(4))))

    def clusters(self) -> dict[int, list[int]]:
        """The members of each kept cluster. [2.11]"""
        united = {}
        for key, body in self.database.rows("clusters"):
            if body[0] & 3 == 3:
                united[int.from_bytes(key, "big")] = int.from_bytes(body[1:], "little")
        clusters: dict[int, list[int]] = {}
        for key, body in self.database.rows("members"):
            cluster = int.from_bytes(body, "little")
            while cluster in united:
                cluster = united[cluster]
            clusters.setdefault(cluster, []).append(int.from_bytes(key, "big"))
        return clusters


def deleted(key: bytes, body: bytes) -> Iterator[int]:
    """The documents with tombstones in a chunk of 16,000. [2.7]"""
    first = int.from_bytes(key, "big") * 16_000
    for start in range(1, len(body), 2_000):
        bits = int.from_bytes(body[start : start + 2_000], "little")
        yield from (first + at for at in range(bits.bit_length()) if bits >> at & 1)


def lines(store: Store) -> Iterator[str]:
    """A store as text, in the words of tests/golden."""
    for document in store.documents():
        key = "none" if document.key is None else json.dumps(document.key.decode(errors="replace"), ensure_ascii=False)
        yield f"document {document.id} key {key} stamp {document.stamp} payload [{document.payload.hex()}]"
        if document.is_empty:
            yield "  empty"
        name = "bottom-k" if store.schema.kind == 2 else "minhash"
        for part, numbers in [(name, document.minhash), ("kept", document.kept_hashes), ("set", document.set_hashes)]:
            if part == "kept" and document.fingerprint is not None:
                yield f"  simhash {document.fingerprint:x}"
            if numbers is not None:
                yield f"  {part} {' '.join(f'{number:x}' for number in numbers)}"
        if document.set_hashes is not None:
            yield f"  weights {' '.join(map(str, document.weights))}"
        if document.vector is not None:
            bits = (struct.unpack("<I", struct.pack("<f", component))[0] for component in document.vector)
            yield f"  vector {' '.join(f'{b:x}' for b in bits)}"
    for cluster, members in sorted(store.clusters().items()):
        yield f"kept {cluster}: {' '.join(map(str, members))}"


if __name__ == "__main__":
    try:
        for line in lines(Store(sys.argv[1])):
            print(line)
    except CannotRead as error:
        sys.exit(f"{sys.argv[1]}: {error}")
