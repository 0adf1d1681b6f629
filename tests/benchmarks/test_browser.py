"""What leaves a server is read as whole messages, however the connection cuts them."""

import pytest

from benchmarks.browser import Messages

GREETING = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
SHORT = b"\x82\x05" + b"31.3%"  # 5 bytes: the length is in the second byte
LONG = b"\x82\x7e\x01\x2c" + b"x" * 300  # 0x012c = 300: in the two bytes after it
HUGE = b"\x82\x7f" + (70_000).to_bytes(8) + b"y" * 70_000  # in the eight bytes after it


@pytest.mark.parametrize("at_once", [1, 3, 7, 1000, 100_000])
def test_messages_are_whole_however_they_come(at_once):
    sent: list[bytes] = []
    messages = Messages(sent.append)
    written = GREETING + SHORT + LONG + HUGE + SHORT

    for start in range(0, len(written), at_once):
        messages.take(written[start : start + at_once])

    assert sent == [b"31.3%", b"x" * 300, b"y" * 70_000, b"31.3%"]


def test_a_message_is_told_of_with_its_last_byte():
    sent: list[bytes] = []
    messages = Messages(sent.append)

    messages.take(GREETING + SHORT[:-1])
    assert sent == []
    messages.take(SHORT[-1:])

    assert sent == [b"31.3%"]


def test_files_are_no_messages():
    sent: list[bytes] = []
    messages = Messages(sent.append)

    messages.take(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n" + SHORT)
    messages.take(SHORT)

    assert sent == []
