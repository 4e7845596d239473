"""Host librdkafka's mock cluster until killed: `host ADDRESS_FILE`.

The mock is reached through the C library in the confluent-kafka wheel, because its Python interface cannot set the
initial rebalance delay. It makes a topic of four partitions when asked for the metadata of one it does not know.
Legal requests can abort it, so it never shares a process with the kit.
"""

import ctypes
import importlib.util
import signal
import sys
from pathlib import Path

INITIAL_REBALANCE_DELAY_MS = 600


def load_library() -> ctypes.CDLL:
    """librdkafka, as the wheel brings it. Raises ImportError without the wheel."""
    spec = importlib.util.find_spec("confluent_kafka")
    if spec is None or spec.origin is None:
        raise ImportError("confluent-kafka: not installed; pip install confluent-kafka")
    package = Path(spec.origin).parent
    found = [*package.with_name("confluent_kafka.libs").glob("librdkafka*"), *package.glob(".dylibs/librdkafka*")]
    if not found:
        raise ImportError("confluent-kafka: comes without its librdkafka; install the wheel")
    return ctypes.CDLL(str(found[0]))


def create_cluster(lib: ctypes.CDLL, brokers: int = 1) -> str:
    """Create a cluster and return its bootstrap address; it lives as long as the process."""
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(lib, name).restype = ctypes.c_void_p
    lib.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    producer, reason = 0, ctypes.create_string_buffer(512)
    conf = ctypes.c_void_p(lib.rd_kafka_conf_new())
    client = lib.rd_kafka_new(producer, conf, reason, ctypes.c_size_t(len(reason)))
    if not client:
        raise OSError(reason.value.decode())
    cluster = ctypes.c_void_p(lib.rd_kafka_mock_cluster_new(ctypes.c_void_p(client), brokers))
    lib.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, ctypes.c_int32(INITIAL_REBALANCE_DELAY_MS))
    bootstrap: bytes = lib.rd_kafka_mock_cluster_bootstraps(cluster)
    return bootstrap.decode()


if __name__ == "__main__":
    address = Path(sys.argv[1])
    address.with_suffix(".part").write_text(create_cluster(load_library()))
    address.with_suffix(".part").rename(address)
    signal.pause()
