"""Name servers asked of a real DNS server on loopback, over UDP and TCP, and answers that are not to be believed."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.archives.names import (
    BadDnsAnswer,
    NameServer,
    ask_name_servers,
    make_question,
    read_answer,
    system_resolver,
)
from small_dns import Answer, dns_server, name, reply


def ask(answer: Answer, domain: str = "rowers.example", timeout: float = 2.0) -> tuple[str, ...]:
    async def run() -> tuple[str, ...]:
        async with dns_server(answer) as server:
            return await ask_name_servers(server, domain, timeout)

    return asyncio.run(run())


def test_the_name_servers_of_a_domain() -> None:
    assert ask(lambda q, _: reply(q, "NS2.host.example", "ns1.host.example")) == (
        "ns1.host.example",
        "ns2.host.example",
    )


def test_an_answer_that_was_cut_is_asked_for_over_tcp() -> None:
    def answer(question: bytes, tcp: bool) -> bytes:
        return reply(question, "ns1.host.example") if tcp else reply(question, flags=0x8380)

    assert ask(answer) == ("ns1.host.example",)


@pytest.mark.parametrize(
    "answer",
    [
        lambda q, _: reply(q, flags=0x8183),  # NXDOMAIN
        lambda q, _: reply(q, "a.example", flags=0x8182),  # the server failed
        lambda q, _: reply(q, "a.example", flags=0x0100),  # a question
        lambda q, _: b"\xff\xff" + reply(q, "a.example")[2:],  # another number
        lambda q, _: reply(make_question("other.example", struct.unpack(">H", q[:2])[0]), "a.example"),
        lambda q, _: reply(q, "a.example")[:-3],
        lambda q, _: q[:5],
        lambda q, _: b"",
        lambda q, _: reply(q, "a.example", owner=name("else.example")),
        lambda q, _: reply(q, "a.example", owner=b"\xc0\xff"),  # a pointer ahead
    ],
)
def test_what_is_not_an_answer_for_certain_is_unknown(answer: Answer) -> None:
    assert ask(answer) == ()


def test_silence_a_closed_port_and_names_that_are_none_are_unknown() -> None:
    async def silent() -> tuple[str, ...]:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)
        )
        port = transport.get_extra_info("sockname")[1]
        try:
            return await ask_name_servers(NameServer("127.0.0.1", port), "a.example", 0.2)
        finally:
            transport.close()

    assert asyncio.run(silent()) == ()
    assert asyncio.run(ask_name_servers(NameServer("127.0.0.1", 1), "a.example", 1.0)) == ()
    for domain in ("", "a..b", "x" * 70 + ".example", "a" * 300):
        assert ask(lambda q, _: reply(q, "ns.example"), domain) == ()


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_an_error(content: bytes) -> None:
    question = make_question("a.example", 7)
    for answer in (
        content,
        question[:2] + b"\x81\x80" + question[4:] + content,
        reply(question, "b.example") + content,
    ):
        with suppress(BadDnsAnswer):
            assert all(isinstance(one, str) for one in read_answer(answer, "a.example", 7))


def test_the_resolver_of_the_system(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text("# comment\nsearch example\nnameserver 192.0.2.53\nnameserver 192.0.2.54\n")
    assert system_resolver(file) == NameServer("192.0.2.53")
    assert system_resolver(tmp_path / "none") is None
