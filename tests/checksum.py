"""CRC-32C bit by bit, without the product's code: the checksum of event files, checkpoints and archives."""


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82f63b78 * (crc & 1)
    return crc ^ 0xffffffff


def masked_crc32c(data):
    """As records and tables hold it: rotated by 15 bits, plus a constant; 4 bytes."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8 & 0xffffffff).to_bytes(4, "little")
