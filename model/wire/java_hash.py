"""Java's string hash, by which Kafka places a group in the offsets topic."""


def java_abs_hash(text: str) -> int:
    """`Utils.abs(text.hashCode())` of Kafka: the absolute value of Java's string hash, 0 for -2**31."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFF_FFFF
    signed = value - (1 << 32) if value >> 31 else value
    return 0 if signed == -(1 << 31) else abs(signed)
