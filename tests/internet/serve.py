#!/usr/bin/env python3
"""An internet of our own for tests of the egress gateway: servers that say which of them was reached, and a name server
that answers what a hostile one would. It runs in a network namespace of its own (tests/engine/egress_lab/lab.rs).

    serve.py CONFIG.json

CONFIG names the addresses: `{"dns": "…", "servers": ["…"], "names": {"name": ["address", …]}, "fallback": "address",
"certificates": "folder with ca.pem, and ADDRESS.pem and ADDRESS.key for each server"}`.

Standard output has a line of JSON for everything that arrives, so that a test can say what did *not* arrive; `ready` is
the first. It ends when standard input does.

A name below `at.` says its own answer: `11-20-30-10.10-123-0-10.at.ZONE` has both addresses,
`11-20-30-10.then.10-123-0-10.at.ZONE` the first one for the first question and the second from then on,
`cname.10-123-0-10.at.ZONE` is an alias, and `six-` with 32 hex digits is an IPv6 address. A label `n-…` only makes a name
new. Everything else that CONFIG does not list is at the fallback's address: an internet where every name exists.
"""

import asyncio
import base64
import hashlib
import ipaddress
import json
import socket
import ssl
import struct
import sys
from urllib.parse import parse_qs, urlsplit

A, CNAME, AAAA = 1, 5, 28
# Types whose data can be anything: NULL, TXT, HTTPS.
FREE = (10, 16, 65)
SUFFIX = ("at", "selu-lab", "net")


def say(kind, **fields):
    print(json.dumps({"kind": kind, **fields}), flush=True)


def text(data):
    return data[:400].decode("latin-1")


# --- names


class Names:
    def __init__(self, names, fallback):
        self.names = names
        self.fallback = fallback
        self.asked = {}

    def addresses(self, name, kind):
        """(alias or None, addresses) of a name."""
        labels = tuple(name.lower().rstrip(".").split("."))
        if labels[-3:] != SUFFIX:
            found = self.names.get(".".join(labels))
            if found is None:
                found = next((at for wild, at in self.names.items() if wild[0] == "*" and name.endswith(wild[1:])), [self.fallback])
            return None, [ipaddress.ip_address(address) for address in found]
        alias = None
        labels = [label for label in labels[:-3] if not label.startswith("n-")]
        if labels and labels[0] == "cname":
            labels = labels[1:]
            alias = ".".join([*labels, *SUFFIX])
        if "then" in labels:
            cut = labels.index("then")
            count = self.asked.get(name, 0)
            if kind == A:
                self.asked[name] = count + 1
            labels = labels[:cut] if count == 0 else labels[cut + 1 :]
        found = []
        for label in labels:
            if label.startswith("six-"):
                found.append(ipaddress.IPv6Address(bytes.fromhex(label[4:])))
            else:
                found.append(ipaddress.IPv4Address(label.replace("-", ".")))
        return alias, found

    def answer(self, packet, where):
        identity, flags, questions = struct.unpack("!HHH", packet[:6])
        if questions != 1:
            return None
        at, labels = 12, []
        while packet[at]:
            labels.append(packet[at + 1 : at + 1 + packet[at]].decode("latin-1"))
            at += 1 + packet[at]
        name = ".".join(labels)
        kind, _ = struct.unpack("!HH", packet[at + 1 : at + 5])
        question = packet[12 : at + 5]
        say("dns", at=where, name=name, type=kind)
        try:
            alias, found = self.addresses(name, kind)
        except ValueError:
            return struct.pack("!HHHHHH", identity, 0x8183, 1, 0, 0, 0) + question
        records = []
        owner = b"\xc0\x0c"
        if alias:
            target = b"".join(bytes([len(label)]) + label.encode() for label in alias.split(".")) + b"\0"
            records.append(owner + struct.pack("!HHIH", CNAME, 1, 0, len(target)) + target)
            owner = target
        for address in found:
            if kind == (A if address.version == 4 else AAAA):
                records.append(owner + struct.pack("!HHIH", kind, 1, 0, len(address.packed)) + address.packed)
        if kind in FREE:
            data = b"reached " + where.encode()
            records.append(owner + struct.pack("!HHIH", kind, 1, 0, len(data) + 1) + bytes([len(data)]) + data)
        header = struct.pack("!HHHHHH", identity, 0x8580 | (flags & 0x0100), 1, len(records), 0, 0)
        return header + question + b"".join(records)


class Datagrams(asyncio.DatagramProtocol):
    """Answers each datagram by `respond`."""

    def __init__(self, respond):
        self.respond = respond

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        try:
            answer = self.respond(data)
        except (IndexError, struct.error):
            answer = None
        if answer is not None:
            self.transport.sendto(answer, peer)


# --- servers: each says `reached ADDRESS` in its own protocol


async def echo(reader, writer, _here):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def silent(reader, _writer, _here):
    while await reader.read(65536):
        pass


def banner(line):
    async def serve(reader, writer, here):
        writer.write(line.format(here=here).encode())
        await writer.drain()
        await reader.read(65536)

    return serve


async def smtp(reader, writer, here):
    writer.write(f"220 reached {here} ESMTP\r\n".encode())
    while line := await reader.readline():
        verb = line[:4].upper()
        writer.write(b"221 bye\r\n" if verb == b"QUIT" else f"250 reached {here}\r\n".encode())
        if verb == b"QUIT":
            return


async def imap(reader, writer, here):
    writer.write(f"* OK IMAP4rev1 reached {here}\r\n".encode())
    while line := await reader.readline():
        tag, _, rest = line.partition(b" ")
        verb = rest.split()[0].upper() if rest.split() else b""
        if verb == b"CAPABILITY":
            writer.write(b"* CAPABILITY IMAP4rev1\r\n")
        if verb == b"LOGOUT":
            writer.write(b"* BYE\r\n" + tag + b" OK done\r\n")
            return
        writer.write(tag + b" OK done\r\n")


async def redis(reader, writer, here):
    while line := await reader.readline():
        if line[:1] in b"*$":
            continue
        verb = line.strip().upper()
        writer.write(b"+PONG\r\n" if verb == b"PING" else f"+reached {here}\r\n".encode())


async def postgres(reader, writer, here):
    """A start without a password, and one row for every query."""

    def message(kind, body):
        writer.write(kind + struct.pack("!I", len(body) + 4) + body)

    def start():
        message(b"R", struct.pack("!I", 0))
        message(b"S", b"server_version\x0015.0\0")
        message(b"Z", b"I")

    while True:
        (length,) = struct.unpack("!I", await reader.readexactly(4))
        (code,) = struct.unpack("!I", (await reader.readexactly(length - 4))[:4])
        if code == 3 << 16:
            break
        writer.write(b"N")  # No encryption.
    start()
    while True:
        kind = await reader.readexactly(1)
        (length,) = struct.unpack("!I", await reader.readexactly(4))
        await reader.readexactly(length - 4)
        if kind == b"Q":
            data = f"reached {here}".encode()
            message(b"T", struct.pack("!H", 1) + b"place\0" + struct.pack("!IHIhIH", 0, 0, 25, -1, 0xFFFFFFFF, 0))
            message(b"D", struct.pack("!HI", 1, len(data)) + data)
            message(b"C", b"SELECT 1\0")
            message(b"Z", b"I")


async def http(reader, writer, here):
    """HTTP/1.1 with keep-alive, redirects, large bodies, websockets; HTTP/2 where the client begins with its preface."""
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"PRI * HTTP/2.0"):
            await reader.readexactly(6)
            return await http2(reader, writer, here)
        request, *lines = head.decode("latin-1").split("\r\n")
        headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines if line)]
        fields = dict(headers)
        say("http", at=here, request=request[:200], host=fields.get("host"))
        target = urlsplit(request.split(" ")[1])
        query = parse_qs(target.query)
        if fields.get("upgrade", "").lower() == "websocket":
            return await websocket(reader, writer, fields, here)
        if "chunked" in fields.get("transfer-encoding", ""):
            while size := int((await reader.readline()).split(b";")[0], 16):
                await reader.readexactly(size + 2)
            await reader.readline()
        elif length := int(fields.get("content-length", 0)):
            await reader.readexactly(length)
        status, extra, body = "200 OK", "", f"reached {here}\n{text(head)}".encode()
        if target.path == "/redirect":
            status, extra = "302 Found", f"Location: {query['to'][0]}\r\n"
        if target.path == "/bytes":
            body = b"x" * int(query["n"][0])
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nX-Reached: {here}\r\n{extra}\r\n".encode() + body)
        await writer.drain()
        if fields.get("connection", "").lower() == "close":
            return


async def websocket(reader, writer, fields, here):
    key = fields["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    writer.write(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
    hello = f"reached {here}".encode()
    writer.write(bytes([0x81, len(hello)]) + hello)
    while True:
        first, second = await reader.readexactly(2)
        mask = await reader.readexactly(4)
        data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(await reader.readexactly(second & 0x7F)))
        writer.write(bytes([first, len(data)]) + data)


async def http2(reader, writer, here):
    """Just enough for one request after another: every HEADERS that ends its stream is answered."""

    def frame(kind, flags, stream, payload=b""):
        writer.write(struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload)

    frame(4, 0, 0)
    while True:
        head = await reader.readexactly(9)
        length, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
        payload = await reader.readexactly(length)
        if kind == 4 and not flags & 1:
            frame(4, 1, 0)
        elif kind == 6 and not flags & 1:
            frame(6, 1, 0, payload)
        elif kind == 7:
            return
        elif kind in (0, 1) and flags & 1:
            say("http2", at=here)
            frame(1, 4, stream, b"\x88")
            frame(0, 1, stream, f"reached {here} over HTTP/2\n".encode())


PORTS = {
    7: echo,
    22: banner("SSH-2.0-reached_{here}\r\n"),
    25: smtp,
    80: http,
    143: imap,
    4000: silent,
    5432: postgres,
    5000: banner("reached {here}\n"),
    6379: redis,
    8080: http,
    9999: banner("reached {here}\n"),
}
TLS_PORTS = {443: http, 8443: http, 993: imap}
UDP_PORTS = [7, 443, 5000]


async def serve_tcp(address, port, handler, tls=None):
    here = f"{address}:{port}"

    async def connected(reader, writer):
        say("tcp", at=here, sni=getattr(writer.get_extra_info("ssl_object"), "asked_for", None))
        try:
            await handler(reader, writer, here)
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError, IndexError, KeyError):
            pass  # A probe that breaks off, or that speaks something else.
        finally:
            writer.close()

    await asyncio.start_server(connected, address, port, ssl=tls, backlog=1024, limit=1 << 22)


def certificate(folder, address):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/{address}.pem", f"{folder}/{address}.key")
    context.set_alpn_protocols(["h2", "http/1.1"])

    def asked(connection, name, _context):
        connection.asked_for = name
        say("sni", at=address, name=name)

    context.sni_callback = asked
    return context


def watch_icmp(loop):
    """The kernel answers echo requests; this says that they came."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    raw.setblocking(False)

    def readable():
        packet = raw.recv(2048)
        if packet[20] == 8:
            say("icmp", at=str(ipaddress.ip_address(packet[16:20])))

    loop.add_reader(raw, readable)


async def main(config):
    loop = asyncio.get_running_loop()
    names = Names(config["names"], config["fallback"])
    resolver = config["dns"]
    respond = lambda data: names.answer(data, f"{resolver}:53")
    await loop.create_datagram_endpoint(lambda: Datagrams(respond), (resolver, 53))

    async def dns_over_tcp(reader, writer, _here):
        while True:
            (length,) = struct.unpack("!H", await reader.readexactly(2))
            answer = respond(await reader.readexactly(length)) or b""
            writer.write(struct.pack("!H", len(answer)) + answer)

    await serve_tcp(resolver, 53, dns_over_tcp)
    for address in config["servers"]:
        for port, handler in PORTS.items():
            await serve_tcp(address, port, handler)
        for port, handler in TLS_PORTS.items():
            await serve_tcp(address, port, handler, certificate(config["certificates"], address))
        for port in UDP_PORTS:

            def reply(data, here=f"{address}:{port}"):
                say("udp", at=here, bytes=len(data))
                return f"reached {here}".encode()

            await loop.create_datagram_endpoint(lambda reply=reply: Datagrams(reply), (address, port))
        if address == config["fallback"]:
            # A resolver that is not ours to ask: the target of direct DNS.
            foreign = lambda data, here=f"{address}:53": names.answer(data, here)
            await loop.create_datagram_endpoint(lambda: Datagrams(foreign), (address, 53))
    watch_icmp(loop)
    say("ready")
    ended = loop.create_future()
    loop.add_reader(sys.stdin, lambda: sys.stdin.buffer.raw.read(1024) or ended.done() or ended.set_result(None))
    await ended


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        asyncio.run(main(json.load(file)))
