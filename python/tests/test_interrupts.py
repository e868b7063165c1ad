"""Ctrl-C ends any call within half a second, and the store opens with what was committed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time
from pathlib import Path

import pytest

import resemblance as rs
from conftest import texts

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="signals are sent and processes forked as on Unix"
)

# Each prints "ready", then begins a call that would take far longer than this test.
CALLS = {
    "insert_many": "store.insert_many(endless())",
    "insert_many_if_new": "store.insert_many(endless(), if_new=True, commit_every=4096)",
    "one by one": "[store.insert(None, text) for text in endless()]",
    "sketch_many": "schema.sketch_many(endless())",
    "a huge text": "huge(lambda text: schema.sketch(text))",
    "query_many": "store.query_many(endless())",
    "query_many under load": "burn(); store.query_many(endless())",
    "overlaps_many under load": "burn(); whole().overlaps_many(endless())",
    "a transaction that waits": "wait_for(store.transaction)",
    "an insert that waits": "wait_for(lambda: store.insert('x', 'some text'))",
    "pairs": "alike(); list(store.pairs())",
    "clusters": "alike(); store.clusters(accept_lower_recall=True, threshold=0.3)",
    "dedup": "rs.dedup(endless(), schema)",
    "bulk_build": "rs.bulk_build(folder / 'new.rsm', endless(), schema)",
    "iteration": "[list(store) for _ in range(10**9)]",
    "evict": "store.evict(matching=lambda document: time.sleep(0.01), dry_run=True)",
    "shared_spans": "compare(exact.shared_spans)",
    "explain": "compare(rs.explain)",
    # No Python code runs between two values.
    "exact.jaccard": "exact.jaccard(map(hex, map(sum, itertools.repeat([1] * 3_000))), [])",
    "whole_texts": "exact.WholeTexts(itertools.repeat('some short text ' * 50))",
    "ticket": "wait_for(lambda: store.queue_insert_if_new('x', 'some text').wait())",
}

PROGRAM = """
import itertools, subprocess, sys, threading, time
from pathlib import Path
sys.path.insert(0, {tests!r})
import resemblance as rs
from conftest import texts
from resemblance import exact

folder = Path({folder!r})
schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(128, threshold=0.7))
store = rs.Store.open(folder / "store.rsm")
some = texts(500, seed=2)

def endless():
    for number in itertools.count():
        yield some[number % 500] + f" w{{number}} v{{number}}" * 20

def alike():
    # Thousands of documents in one bucket, and none equal to another.
    base = " ".join(f"w{{n}}" for n in range(200))
    store.insert_many([base + f" x{{n}}" for n in range(20_000)])
    print("ready", flush=True)

def huge(call):
    # Python makes no stop while it copies the text.
    text = "one two three four five six seven eight " * 20_000_000
    print("ready", flush=True)
    call(text)

def compare(call):
    a, b = (" ".join(f"w{{n * 7919 % size}}" for n in range(1_500_000)) for size in (100_003, 100_019))
    print("ready", flush=True)
    call(a, b)

def burn():
    # Ends with its parent, or after a while.
    spin = "import os, time; end = time.time() + 20\\nwhile time.time() < end and os.getppid() != 1: pass"
    for _ in range(6):
        subprocess.Popen([sys.executable, "-c", spin])

def whole():
    made = rs.Schema(text=rs.Text.words(2), containment=rs.Containment(2))
    store = rs.Store.in_memory(made)
    store.insert_many(texts(2_000, seed=3))
    return store.snapshot()

def wait_for(call):
    def hold():
        transaction = store.transaction()
        held.set()
        time.sleep(60)
        transaction.rollback()
    held = threading.Event()
    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    call()

try:
    print("ready", flush=True)
    {call}
    print("done", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    import os
    os._exit(0)
"""


@pytest.fixture(autouse=True)
def interruptible() -> None:
    """A process that a shell begins in the background ignores the signal, and so do those that it begins."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_ctrl_c(call: str, path: Path, schema: rs.Schema) -> None:
    with rs.Store.create(path, schema) as store:
        store.insert_many(texts(1_000), [f"k{i}" for i in range(1_000)])
    # Tests run beside others, which may delay one attempt.
    took = [seconds_until_interrupted(call, path)]
    while min(took) >= 0.5 and len(took) < 3:
        took.append(seconds_until_interrupted(call, path))
    assert min(took) < 0.5, took
    with rs.Store.open(path) as store:
        assert len(store) >= 1_000 and store.check()
        assert all(f"k{i}" in store for i in range(1_000))


def seconds_until_interrupted(call: str, path: Path) -> float:
    program = PROGRAM.format(
        tests=str(Path(__file__).parent), folder=str(path.parent), call=call
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for _ in range(2 if call.startswith(("alike", "huge", "compare")) else 1):
        assert child.stdout.readline() == "ready\n"
    time.sleep(1.0)
    assert child.poll() is None
    begun = time.monotonic()
    child.send_signal(signal.SIGINT)
    line = child.stdout.readline()
    took = time.monotonic() - begun
    child.wait()
    assert line == "interrupted\n"
    return took


def test_ctrl_c_in_the_first_call_that_returns_an_array() -> None:
    program = """
import os, signal, threading
import resemblance as rs
signal.signal(signal.SIGINT, signal.default_int_handler)
schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(64))
text = "one two three four five six seven eight " * 1_000_000
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    schema.features(text)
except KeyboardInterrupt:
    print("interrupted")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ran.stdout == "interrupted\n", ran.stderr


def test_a_file_can_be_opened_after_a_call_that_was_interrupted(
    path: Path, schema: rs.Schema
) -> None:
    with rs.Store.create(path, schema) as store:
        store.insert_many(texts(20_000, words=20))

    def interrupt() -> None:
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    for call in (rs.check, rs.compact):
        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            for _ in range(1_000):
                call(path)
            pytest.fail(f"{call.__name__} was not interrupted")
        except KeyboardInterrupt:
            pass
        thread.join()
        with rs.Store.open(path) as store:
            assert len(store) == 20_000


def test_other_threads_run_during_calls(store: rs.Store) -> None:
    """No long call holds the interpreter: a counter goes on beside each."""
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    documents = texts(20_000, seed=4)
    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for call in (
            lambda: store.insert_many(documents, if_new=False),
            lambda: store.schema.sketch_many(documents, threads=1),
            lambda: store.query_many(documents[:5_000]),
            lambda: store.check(),
        ):
            before, begun = ticks, time.monotonic()
            call()
            took = time.monotonic() - begun
            # The switch interval is 5 ms; a call that held the interpreter would leave none.
            assert ticks - before >= took * 20, call
    finally:
        stop.set()
        thread.join()


def test_a_daemon_thread_may_be_in_a_call_at_exit() -> None:
    """A wheel without gcc's unwinder crashes here."""
    program = """
import threading, time
import resemblance as rs

schema = rs.Schema(text=rs.Text.words(2), minhash=rs.MinHash(128))
threading.Thread(target=schema.sketch_many, args=(["a b c"] * 1_000_000,), daemon=True).start()
time.sleep(0.5)
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter always has its lock"
)
def test_a_free_threaded_interpreter_stays_without_its_lock() -> None:
    program = "import sys, resemblance; sys.exit(sys._is_gil_enabled())"
    assert subprocess.run([sys.executable, "-W", "error", "-c", program]).returncode == 0


FORK = textwrap.dedent(
    """
    import os, sys
    import resemblance as rs
    store = rs.Store.open(sys.argv[1])
    snapshot, records = store.snapshot(), store.records()
    transaction = store.transaction()
    transaction.insert("parent", "a b c d e f g")
    ticket = None
    child = os.fork()
    if child == 0:
        calls = [
            lambda: store.insert("x", "some text"), lambda: store.get("a"), store.snapshot,
            lambda: snapshot.query("some text"), lambda: transaction.insert("y", "text"),
            transaction.commit, lambda: next(records), lambda: list(snapshot.pairs()),
            lambda: snapshot.clusters(), lambda: snapshot.stats(),
        ]
        for number, call in enumerate(calls):
            try:
                call()
            except rs.ForkedError:
                continue
            except BaseException as error:
                print(number, repr(error), flush=True)
            else:
                print(number, "no error", flush=True)
            os._exit(1)
        # What needs no store works in any process.
        assert len(store.schema.sketch_many(["a b c", "d e f"])) == 2
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    transaction.commit()
    store.insert("later", "some other text")
    store.close()
    """
)


TURN = """
import os, sys
import resemblance as rs
store = rs.Store.open(sys.argv[1], shared_writers=True)
transaction = store.transaction()
if os.fork() == 0:
    try:
        rs.Store.open(sys.argv[1], wait=0.2).insert("a", "some text")
    except rs.LockedError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""


def test_a_fork_does_not_hold_the_files_of_its_parent(path: Path, schema: rs.Schema) -> None:
    rs.Store.create(path, schema).close()
    ran = subprocess.run(
        [sys.executable, "-c", TURN, str(path)], capture_output=True, text=True, timeout=60
    )
    assert "is in use by" in ran.stdout and "this process" not in ran.stdout, ran.stdout + ran.stderr


def test_a_fork_is_told_and_loses_nothing(path: Path, schema: rs.Schema) -> None:
    with rs.Store.create(path, schema) as store:
        store.insert("a", "some text")
    ran = subprocess.run(
        [sys.executable, "-c", FORK, str(path)], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    with rs.Store.open(path) as store:
        assert list(store) == ["a", "parent", "later"] and store.check()
