"""Broker logs, packet captures and corpora that cannot be read."""

import gzip
import json
from collections.abc import Iterator

from tests.support.bad_inputs.bad_input import BadInput
from tests.support.bad_inputs.samples import SAMPLES

LOG = ("import", "log", "x.log", "-o", "new.jsonl")
CAPTURE = ("import", "capture", "x.pcap", "-o", "new.jsonl")


def bad_logs() -> Iterator[tuple[str, bytes]]:
    """Files in which no group coordinator speaks."""
    yield "empty", b""
    yield "null bytes", b"\0" * 1_000
    yield "plain words", b"hello\nworld\n"
    yield "the log of another part", b"[2026-01-01 00:00:00,000] INFO [Partition x-0 broker=0] Log loaded (kafka.log)\n"
    yield "a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
    yield "UTF-16", SAMPLES.log.decode().encode("utf-16")
    yield "a line of a megabyte", b"x" * 1_000_000
    yield "a trace", SAMPLES.trace


def bad_captures() -> Iterator[tuple[str, bytes]]:
    """Files that are no packet capture, or a damaged one."""
    good = SAMPLES.capture
    yield "empty", b""
    yield "plain words", b"hello\n"
    yield "only the magic", good[:4]
    yield "only its header", good[:24]
    yield "cut within a header", good[:10]
    yield "with a packet of 2 GB", good[:24] + good[24:32] + b"\xff\xff\xff\x7f" * 2 + good[40:]
    yield "of another link", good[:20] + b"\xff\xff\0\0" + good[24:]
    yield "of a link that is no network", good[:20] + b"\xc3\0\0\0" + good[24:]
    yield "a log", SAMPLES.log
    yield "compressed and cut off", gzip.compress(good)[:-40]
    yield "null bytes", b"\0" * 100


def bad_corpora() -> Iterator[BadInput]:
    """Folders that are no corpus."""
    judge = ("pipeline", "judge", "c")
    ingest = ("pipeline", "ingest", "t.jsonl", "--to", "c")
    trace = {"t.jsonl": SAMPLES.trace}
    yield BadInput("corpus: not there", judge, "c")
    yield BadInput("corpus: an empty folder", judge, "c", {"c/notes.txt": b""})
    yield BadInput("corpus: a file", judge, "c", {"c": b"x"})
    yield BadInput("corpus: damaged", judge, "c", {"c/corpus.json": b"{"})
    yield BadInput("corpus: a list", judge, "c", {"c/corpus.json": b"[]"})
    yield BadInput("corpus: a newer one", judge, "c", {"c/corpus.json": json.dumps({"format": 99}).encode()})
    yield BadInput("corpus: a report that cannot be written", (*judge, "--json", "none/r.json"), "none/r.json")
    yield BadInput("corpus: ingest into a folder of others", ingest, "c", {**trace, "c/precious.txt": b"x"})
    yield BadInput("corpus: ingest into a file", ingest, "c", {**trace, "c": b"x"})
    yield BadInput("corpus: ingest of nothing", ("pipeline", "ingest", "none", "--to", "c"), "none")
    yield BadInput("corpus: watch of no folder", ("pipeline", "watch", "none", "--to", "c"), "none")
    yield BadInput("corpus: watch of a file", ("pipeline", "watch", "t.jsonl", "--to", "c"), "t.jsonl", trace)
    campaign = ("pipeline", "campaign", "nowhere", "--to", "c", "--seeds", "1")
    yield BadInput("corpus: campaign on no target", campaign, "nowhere")
    full = {"c/precious.txt": b"x"}
    words = ("pipeline", "campaign", "bundled", "--to", "c", "--seeds", "1")
    yield BadInput("corpus: campaign into a folder of others", words, "c", full)


def bad_recordings() -> Iterator[BadInput]:
    """Bad logs, captures and corpora."""
    for name, content in bad_logs():
        yield BadInput(f"log: {name}", LOG, "x.log", {"x.log": content})
    yield BadInput("log: not there", LOG, "x.log")
    yield BadInput("log: one of two", (*LOG[:3], "y.log", *LOG[3:]), "y.log", {"x.log": SAMPLES.log})
    for name, content in bad_captures():
        yield BadInput(f"capture: {name}", CAPTURE, "x.pcap", {"x.pcap": content})
    yield BadInput("capture: not there", CAPTURE, "x.pcap")
    files = {"x.pcap": SAMPLES.capture}
    yield BadInput("capture: of another port", (*CAPTURE, "--port", "9"), "port 9", files)
    yield BadInput("capture: over itself", (*CAPTURE[:-1], "x.pcap"), "x.pcap", files)
    yield from bad_corpora()
