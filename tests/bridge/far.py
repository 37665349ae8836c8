"""An MCP server over Streamable HTTP that behaves or misbehaves as a call says. Standard library only.

It prints its port. A second port, "another host", only notes who came. `locked` asks for a key; `at ADDRESS CERTIFICATE
KEY` serves there over TLS, and on loopback without it otherwise.
"""

import hashlib
import json
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOCKED = sys.argv[1:2] == ["locked"]
AT = sys.argv[2:] if sys.argv[1:2] == ["at"] else None
SESSIONS = set()
SEEN = []
WAITING = {}


def text(value):
    return {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}


class Elsewhere(BaseHTTPRequestHandler):
    def do_POST(self):
        SEEN.append(f"elsewhere: {self.headers.get('Authorization')}")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        if body:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def result(self, request_id, result, **headers):
        body = json.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}).encode()
        self.answer(200, body, "application/json; charset=utf-8", **headers)

    def begin_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, message=None, raw=None):
        if raw is None:
            raw = "event: message\ndata: " + json.dumps({"jsonrpc": "2.0", **message}) + "\n\n"
        self.wfile.write(raw.encode())
        self.wfile.flush()

    def session(self):
        return self.headers.get("Mcp-Session-Id")

    def do_DELETE(self):
        SEEN.append(f"deleted {self.session() in SESSIONS}")
        SESSIONS.discard(self.session())
        self.answer(200)

    def do_GET(self):
        last = self.headers.get("Last-Event-ID")
        if last is None:
            return self.answer(405)
        SEEN.append(f"resumed after {last}")
        self.begin_stream()
        self.event({"id": int(last.split("-")[1]), "result": text("resumed")})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = json.loads(body)
        request_id, method = message.get("id"), message.get("method")
        if LOCKED and self.headers.get("Authorization") != "Bearer right-key-1":
            return self.answer(401, b'{"error": {"code": 1, "message": "who is that?"}}')
        if self.path == "/old":
            return self.answer(308, Location="/mcp")
        if method == "initialize":
            session = f"s{time.monotonic_ns()}"
            SESSIONS.add(session)
            return self.result(request_id, {
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "far", "version": "1"}}, Mcp_Session_Id=session)
        if self.session() not in SESSIONS:
            return self.answer(404, b"no such session", "text/plain")
        if self.headers.get("MCP-Protocol-Version") != "2025-06-18":
            return self.answer(400, b"no version", "text/plain")
        if request_id is None:
            if method == "notifications/cancelled":
                SEEN.append("cancelled")
                WAITING[message["params"]["requestId"]].set()
            return self.answer(202)
        if method is None:
            SEEN.append(f"answered {request_id}: {message.get('error', message.get('result'))}")
            return self.answer(202)
        if method == "ping":
            return self.result(request_id, {})
        if method == "tools/list":
            page = int((message.get("params") or {}).get("cursor") or 0)
            listed = {"tools": [{"name": f"t{page}", "inputSchema": {"type": "object"}}]}
            if page < 2:
                listed["nextCursor"] = str(page + 1)
            return self.result(request_id, listed)
        self.call(request_id, message["params"]["name"], message["params"].get("arguments", {}))

    def call(self, request_id, name, arguments):
        if name == "look":
            return self.result(request_id, text({
                "session": self.session(), "arguments": arguments,
                "authorization": self.headers.get("Authorization"), "org": self.headers.get("X-Org")}))
        if name == "t0":
            sent = self.headers.get("Authorization", "")
            return self.result(request_id, text(
                {"hash": hashlib.sha256(sent.encode()).hexdigest(), "from": self.client_address[0]}))
        if name == "seen":
            return self.result(request_id, text(SEEN))
        if name == "stream":
            self.begin_stream()
            self.event(raw=": welcome\n\nid: 1\ndata:\n\n")
            self.event({"method": "notifications/message", "params": {"level": "info", "data": "half way"}})
            self.event({"id": "mine", "method": "roots/list"})
            self.event(raw="event: other\ndata: {}\n\ndata: noise\n\n")
            self.event({"id": 999999, "result": {}})
            self.event({"id": request_id, "result": text("streamed")})
            return time.sleep(60)
        if name == "cut":
            self.begin_stream()
            return self.event({"method": "notifications/message", "params": {"data": "and then"}})
        if name == "resume":
            self.begin_stream()
            return self.event(raw=f"id: again-{request_id}\nretry: 100\ndata:\n\n")
        if name == "huge":
            return self.result(request_id, text("x" * (17 * 1024 * 1024)))
        if name == "huge-event":
            self.begin_stream()
            return self.event({"id": request_id, "result": text("x" * (17 * 1024 * 1024))})
        if name == "large":
            return self.result(request_id, text("x" * (15 * 1024 * 1024)))
        if name == "endless":
            self.begin_stream()
            while True:
                self.event({"method": "notifications/message", "params": {"data": "x" * 1000}})
        if name == "html":
            return self.answer(200, b"<h1>Welcome</h1>", "text/html")
        if name == "nothing":
            return self.answer(202)
        if name == "stranger":
            return self.result(424242, text("for somebody else"))
        if name == "no-json":
            return self.answer(200, b'{"jsonrpc": "2.0", "id": %d, "result": [}' % request_id)
        if name == "broken":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.close_connection = True
            return self.wfile.write(b'{"jsonrpc"')
        if name == "failing":
            words = f"{self.headers.get('Authorization')} is not welcome".encode()
            return self.answer(500, words, "text/plain")
        if name == "forget":
            SESSIONS.clear()
            return self.result(request_id, text("forgotten"))
        if name == "elsewhere":
            return self.answer(307, Location=f"http://127.0.0.1:{ELSEWHERE.server_port}/mcp?key=1")
        if name == "found":
            return self.answer(302, Location="/mcp")
        if name == "circle":
            return self.answer(307, Location=self.path)
        if name == "wait":
            WAITING[request_id] = threading.Event()
            WAITING[request_id].wait(60)
            return self.result(request_id, text("waited"))
        body = {"jsonrpc": "2.0", "id": request_id, "error": {"code": -32602, "message": f"Unknown tool: {name}"}}
        return self.answer(200, json.dumps(body).encode())


ELSEWHERE = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
threading.Thread(target=ELSEWHERE.serve_forever, daemon=True).start()
SERVER = ThreadingHTTPServer((AT[0] if AT else "127.0.0.1", 0), Handler)
SERVER.daemon_threads = True
if AT:
    CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    CONTEXT.load_cert_chain(AT[1], AT[2])
    SERVER.socket = CONTEXT.wrap_socket(SERVER.socket, server_side=True, do_handshake_on_connect=False)
print(SERVER.server_port, flush=True)
SERVER.serve_forever()
