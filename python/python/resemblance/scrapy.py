"""A dupe filter and an item pipeline for Scrapy. After a kill, a crawl continues where it was.

    DUPEFILTER_CLASS = "resemblance.scrapy.DupeFilter"
    RESEMBLANCE_REQUESTS = "requests.rsm"
    ITEM_PIPELINES = {"resemblance.scrapy.NearDuplicates": 100, "project.Deliver": 200}
    RESEMBLANCE_PAGES = "pages.rsm"

The recipe `docs/python/crawler.md` describes all settings, and what a kill costs.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.dupefilters import RFPDupeFilter
from scrapy.exceptions import DontCloseSpider, DropItem
from scrapy.utils.request import request_from_dict

from ._native import Filter, Record, Schema, Signature, Store
from .schema import Containment, MinHash, Text

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from typing_extensions import Self

__all__ = ["DupeFilter", "NearDuplicate", "NearDuplicates"]

_logger = logging.getLogger(__name__)

# The stamp of requests that are not finished. No eviction by time removes them.
_PENDING = 2**63 - 1
# The number of unfinished requests of earlier runs that are scheduled at a time.
_RESUMED_TOGETHER = 1_000
# Requests are found by their keys. All have an empty signature, for which a store keeps no byte.
_REQUESTS = Schema(text=Text.words(1), containment=Containment(1))
_NOTHING = _REQUESTS.sketch("")


class _Committing:
    """Commits what has changed after an interval. Scrapy has one thread, which waits for each commit."""

    _path_setting: str

    def __init__(self, crawler: Crawler) -> None:
        path = crawler.settings.get(self._path_setting)
        if not path:
            raise ValueError(f"{self._path_setting} is not set: it must be the path of a file")
        self._path = str(path)
        self._crawler = crawler
        self._interval = crawler.settings.getfloat("RESEMBLANCE_COMMIT_INTERVAL", 1.0)
        self._last_commit = time.monotonic()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def _connect(self, **handlers: Callable[..., object]) -> None:
        for signal, handler in handlers.items():
            self._crawler.signals.connect(handler, signal=getattr(signals, signal))

    def _commit_if_due(self) -> None:
        if time.monotonic() >= self._last_commit + self._interval:
            self._commit()
            self._last_commit = time.monotonic()

    def _commit(self) -> None:
        raise NotImplementedError


class DupeFilter(_Committing, RFPDupeFilter):
    """Filters requests that were made in this run or an earlier one. It keeps their fingerprints in a
    store, and with them the requests that are not finished. The next run makes these when it is idle.

    A request is finished when its callback has ended and all of its items have left the pipelines. It
    stays unfinished if the callback or a pipeline raised an error.
    """

    _path_setting = "RESEMBLANCE_REQUESTS"

    def __init__(self, crawler: Crawler) -> None:
        _Committing.__init__(self, crawler)
        if crawler.settings.get("JOBDIR"):
            raise ValueError("JOBDIR is set: unset it, because DupeFilter keeps unfinished requests itself")
        debug = crawler.settings.getbool("DUPEFILTER_DEBUG")
        RFPDupeFilter.__init__(self, None, debug, fingerprinter=crawler.request_fingerprinter)
        # Requests to insert, requests to mark as finished, and requests that failed in this run.
        self._new: dict[bytes, bytes] = {}
        self._left: set[bytes] = set()
        self._failed: set[bytes] = set()
        # Requests that cannot be pickled. Only their end is kept.
        self._unkept: set[bytes] = set()
        self._resumed: set[bytes] = set()
        self._connect(
            request_scheduled=self._request_scheduled,
            request_left_downloader=self._request_left,
            response_received=self._request_left,
            spider_error=self._failed_response,
            item_error=self._failed_response,
            spider_idle=self._spider_idle,
        )

    def open(self) -> None:
        self._store = Store.open_or_create(self._path, _REQUESTS)
        self._unfinished: Iterator[Record] = self._store.records(filter=Filter(newer_than=_PENDING))

    def request_seen(self, request: Request) -> bool:
        key = self._key(request)
        if key in self._resumed:
            self._resumed.discard(key)
            return False
        if key in self._new or key in self._unkept or key in self._store:
            return True
        try:
            kept = request.to_dict(spider=self._crawler.spider)
            self._new[key] = pickle.dumps(kept, protocol=4)
        except (ValueError, AttributeError, TypeError, pickle.PicklingError) as error:
            self._unkept.add(key)
            _logger.warning("%s is not kept until it is finished: a kill may lose it (%s)", request, error)
        self._commit_if_due()
        return False

    def close(self, reason: str) -> None:
        self._commit()
        self._store.close()

    def _key(self, request: Request) -> bytes:
        return bytes(self.fingerprinter.fingerprint(request))

    def _request_scheduled(self, request: Request) -> None:
        # A retry has the fingerprint of the request that it repeats.
        if request.dont_filter:
            self._left.discard(self._key(request))

    def _request_left(self, request: Request) -> None:
        self._left.add(self._key(request))
        self._commit_if_due()

    def _failed_response(self, response: Any) -> None:
        request = getattr(response, "request", None)
        if request is not None:
            self._failed.add(self._key(request))

    def _spider_idle(self, spider: Spider) -> None:
        records = list(islice(self._unfinished, _RESUMED_TOGETHER))
        for record in records:
            try:
                request = request_from_dict(pickle.loads(record.payload), spider=spider)
            except Exception:
                _logger.exception("an unfinished request of an earlier run cannot be read, and is not made")
                continue
            self._resumed.add(self._key(request))
            assert self._crawler.engine is not None
            self._crawler.engine.crawl(request)
        self._commit()
        if records:
            raise DontCloseSpider

    def _commit(self) -> None:
        # Scrapy has no signal for the end of a request. Its engine knows which ones have not ended.
        slot = getattr(self._crawler.engine, "_slot", None) or getattr(self._crawler.engine, "slot", None)
        active = {self._key(request) for request in slot.inprogress} if slot is not None else set()
        finished = self._left - active
        if not finished and not self._new:
            return
        now = int(time.time())
        with self._store.transaction() as transaction:
            for key, request in self._new.items():
                transaction.insert(key, _NOTHING, payload=request, stamp=_PENDING)
            for key in finished - self._failed:
                if key in self._unkept or key in transaction:
                    transaction.upsert(key, _NOTHING, stamp=now)
        self._new.clear()
        self._left -= finished


class NearDuplicate(DropItem):
    """Drops an item because its text is a near-duplicate. `key` is the key of the item found."""

    def __init__(self, key: str | None, similarity: float | None) -> None:
        super().__init__(f"near-duplicate of {key} (similarity {similarity})")
        self.key = key


class NearDuplicates(_Committing):
    """Drops items whose text is a near-duplicate of one that has passed all pipelines, in this run or an
    earlier one, or of one that is in the pipelines. Put it before the pipeline that delivers items.
    """

    _path_setting = "RESEMBLANCE_PAGES"

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        schema = crawler.settings.get("RESEMBLANCE_SCHEMA")
        default = Schema(text=Text.words(3), minhash=MinHash())
        self._schema: Schema = default if schema is None else schema
        self._text_field = crawler.settings.get("RESEMBLANCE_TEXT_FIELD", "text")
        self._key_field = crawler.settings.get("RESEMBLANCE_KEY_FIELD", "url")
        # Items that are in the pipelines, items that have passed them, and items that were found.
        self._open: dict[str, Signature] = {}
        self._delivered: dict[str, Signature] = {}
        self._found: set[str | bytes] = set()
        self._connect(
            item_scraped=self._item_scraped,
            item_dropped=self._item_dropped,
            item_error=self._item_failed,
            spider_idle=self._commit,
        )

    # Earlier releases of Scrapy pass the spider to these three.
    def open_spider(self, spider: Spider | None = None) -> None:
        self._store = Store.open_or_create(self._path, self._schema)
        # Holds the items that are not in the file yet.
        self._recent = Store.in_memory(self._schema)

    def process_item(self, item: Any, spider: Spider | None = None) -> Any:
        fields = ItemAdapter(item)
        text = fields.get(self._text_field)
        if not text:
            self._count("without_text")
            return item
        key, signature = fields[self._key_field], self._schema.sketch(text)
        for store in (self._store, self._recent):
            for found in store.query(signature, limit=1):
                self._count("near_duplicates")
                if store is self._store and found.key_bytes is not None:
                    self._found.add(found.key_bytes)
                    self._commit_if_due()
                raise NearDuplicate(found.key, found.similarity)
        self._recent.upsert(key, signature)
        self._open[key] = signature
        return item

    def close_spider(self, spider: Spider | None = None) -> None:
        self._commit()
        self._store.close()

    def _count(self, name: str) -> None:
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value(f"resemblance/{name}")

    def _leave(self, item: Any) -> tuple[str, Signature | None]:
        key: str = ItemAdapter(item).get(self._key_field, "")
        return key, self._open.pop(key, None)

    def _item_scraped(self, item: Any) -> None:
        key, signature = self._leave(item)
        if signature is not None:
            self._delivered[key] = signature
            self._commit_if_due()

    def _item_dropped(self, item: Any, exception: Exception) -> None:
        if not isinstance(exception, NearDuplicate):
            self._item_failed(item)

    def _item_failed(self, item: Any) -> None:
        key, signature = self._leave(item)
        if signature is not None:
            self._recent.discard(key)

    def _commit(self) -> None:
        if not self._delivered and not self._found:
            return
        now = int(time.time())
        with self._store.transaction() as transaction:
            for key, signature in self._delivered.items():
                transaction.upsert(key, signature, stamp=now)
            for found in self._found:
                if found in transaction:
                    transaction.touch(found, now)
        for key in self._delivered.keys() - self._open.keys():
            self._recent.discard(key)
        self._delivered.clear()
        self._found.clear()
