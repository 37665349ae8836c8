"""An MCP server over standard streams that behaves or misbehaves as its first argument says.

It uses the standard library only and speaks the protocol by hand, so that it can break it.
"""

import json
import os
import sys
import threading
import time

KIND = sys.argv[1]
OUT = threading.Lock()
CANCELLED = {}
TOOLS_ADDED = []


def write(text):
    with OUT:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}))


def say(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def tool(name, description=None, annotations=None, schema=None):
    made = {"name": name, "inputSchema": schema if schema is not None else {"type": "object"}}
    if description is not None:
        made["description"] = description
    if annotations is not None:
        made["annotations"] = annotations
    return made


def text(value):
    return {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}


def plain_tools():
    zone = {"type": "object", "properties": {"zone": {"type": "string", "default": time.tzname[0]}}}
    return [
        tool("look", "Looks", {"readOnlyHint": True}, zone),
        tool("add_item", "Adds"),
        tool("wipe", "Wipes", {"readOnlyHint": False, "destructiveHint": True}),
        tool("quiet"),
        *TOOLS_ADDED,
    ]


def list_tools(params):
    cursor = (params or {}).get("cursor")
    if KIND == "pages":
        page = int(cursor or 0)
        answer = {"tools": [tool(f"page{page}_{n}", "Of a page") for n in range(2)]}
        if page < 3:
            answer["nextCursor"] = str(page + 1)
        return answer
    if KIND == "circle":
        return {"tools": [tool(f"t{time.monotonic_ns()}", "Again")], "nextCursor": "the-same"}
    if KIND == "endless":
        return {"tools": [], "nextCursor": str(int(cursor or 0) + 1)}
    if KIND == "many":
        return {"tools": [tool(f"t{n}", "One of many") for n in range(1001)]}
    if KIND == "lies-schema":
        return {"tools": [tool("honest", "Is"), tool("liar", "Lies", schema="{}")]}
    if KIND == "lies-shape":
        return {"tools": {"a": 1}}
    return {"tools": plain_tools()}


def call(request_id, name, arguments):
    if name == "look":
        return text({"pid": os.getpid(), "arguments": arguments})
    if name == "environment":
        return text({key: os.environ.get(key) for key in arguments["names"]})
    if name == "client":
        return text(CLIENT)
    if name == "failing":
        return {**text(f"login of {os.environ.get('MAIL')} with {os.environ.get('PW')} refused"), "isError": True}
    if name == "image":
        return {"content": [{"type": "text", "text": "a picture"},
                            {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]}
    if name == "structured":
        return {"content": [{"type": "text", "text": "3 found"}], "structuredContent": {"found": 3}}
    if name == "crash":
        say(f"going down with {os.environ.get('PW')}")
        os._exit(3)
    if name == "flood":
        for _ in range(10):
            sys.stderr.write(("x" * 1023 + "\n") * 1024)
        sys.stderr.flush()
        return text("flooded")
    if name == "noise":
        write("Debugger listening on ws://127.0.0.1:9229")
        write("\x00\xff binary \x1b[31m")
        write('{"level": "info", "msg": "structured logging"}')
        write('["not", "a", "message"]')
        write('{"jsonrpc": "2.0", "id": 999999, "result": {}}')
        send({"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}})
        send({"method": "notifications/of/another/world"})
        send({"id": "mine", "method": "sampling/createMessage", "params": {}})
        send({"id": "roots", "method": "roots/list"})
        return text("quiet now")
    if name == "demand":
        for number in range(20_000):
            send({"id": f"r{number}", "method": "roots/list"})
        return text("demanded")
    if name == "huge":
        return text("x" * (17 * 1024 * 1024))
    if name == "large":
        return text("x" * (15 * 1024 * 1024))
    if name == "broken":
        write('{"jsonrpc": "2.0", "id": %d, "result": {"content": [}}' % request_id)
        return None
    if name == "no-result":
        return "just a text"
    if name == "grow":
        TOOLS_ADDED.append(tool("grown", "Came later"))
        send({"method": "notifications/tools/list_changed"})
        return text("grown")
    if name == "wait":
        say(f"waiting {arguments.get('word', '')}")
        CANCELLED[request_id].wait()
        say(f"told to stop waiting {arguments.get('word', '')}")
        return text("waited")
    if name == "move":
        os.makedirs(os.path.dirname(arguments["to"]))
        os.rename(arguments["from"], arguments["to"])
        return text("moved")
    if name == "neighbour":
        try:
            with open(f"/proc/{arguments['pid']}/environ", "rb") as other:
                return text(other.read().decode("utf-8", "replace"))
        except OSError as error:
            return {**text(type(error).__name__), "isError": True}
    if name == "refused":
        raise ValueError(f"refused, password {os.environ.get('PW')}")
    raise KeyError(name)


def answer(message):
    request_id, name = message["id"], message["params"]["name"]
    try:
        result = call(request_id, name, message["params"].get("arguments", {}))
        if result is not None:
            send({"id": request_id, "result": result})
    except KeyError:
        send({"id": request_id, "error": {"code": -32602, "message": f"Unknown tool: {name}"}})
    except ValueError as error:
        send({"id": request_id, "error": {"code": -32000, "message": str(error), "data": {"hint": str(error)}}})


def main():
    global CLIENT
    if KIND == "needs-pw" and not os.environ.get("PW"):
        say("PW is not set, good bye")
        sys.exit(2)
    if KIND == "needs-token" and not os.environ.get("DEMO_API_TOKEN"):
        say("Error: DEMO_API_TOKEN is required, get one at https://api.example.com/tokens")
        sys.exit(1)
    if KIND == "dies":
        say(f"cannot reach the database of {os.environ.get('PW')}")
        sys.exit(7)
    if KIND == "banner":
        write("Welcome to the server!")
        write("")
        write("{ready: true}")
    if KIND == "deaf":
        time.sleep(3600)
    for line in sys.stdin:
        message = json.loads(line)
        method, request_id = message.get("method"), message.get("id")
        if method == "initialize":
            CLIENT = message["params"]
            version = "2099-01-01" if KIND == "future" else "2024-11-05" if KIND == "old" else CLIENT["protocolVersion"]
            send({"id": request_id, "result": {
                "protocolVersion": version, "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "test", "version": "1"}}})
        elif method == "ping":
            send({"id": request_id, "result": {}})
        elif method == "tools/list":
            send({"id": request_id, "result": list_tools(message.get("params"))})
        elif method == "tools/call" and message["params"]["name"] == "hang":
            say("hanging")
            time.sleep(3600)
        elif method == "tools/call" and message["params"]["name"] == "close":
            os.close(1)
            time.sleep(3600)
        elif method == "tools/call":
            CANCELLED[request_id] = threading.Event()
            threading.Thread(target=answer, args=(message,), daemon=True).start()
        elif method == "notifications/cancelled":
            CANCELLED[message["params"]["requestId"]].set()


CLIENT = None
main()
