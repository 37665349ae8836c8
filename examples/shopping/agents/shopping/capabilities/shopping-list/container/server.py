"""A shopping list as an MCP server over standard streams, with Python's standard library alone.

It stands for a server of somebody else's that logs in with a mail address and a password: it does not start without
them, and keeps each account's lists apart, in the account's own process.
"""

import json
import os
import sys

LISTS = {"Home": ["milk"], "Office": []}
DEFAULT = "Home"


class Refused(Exception):
    """What a person may read."""


def item_schema(*required):
    fields = {
        "list": {"type": "string", "description": "Name of a list; the default one if absent"},
        "item": {"type": "string", "minLength": 1, "description": "What is to be bought"},
    }
    wanted = fields if "item" in required else {"list": fields["list"]}
    return {"type": "object", "properties": wanted, "required": list(required), "additionalProperties": False}


TOOLS = [
    {
        "name": "get_lists",
        "description": "Names all lists, and the default one.",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "get_items",
        "description": "Tells what is on a list.",
        "inputSchema": item_schema(),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "add_item",
        "description": "Puts something on a list.",
        "inputSchema": item_schema("item"),
        "annotations": {"readOnlyHint": False, "destructiveHint": False},
    },
    {
        "name": "remove_item",
        "description": "Takes something off a list.",
        "inputSchema": item_schema("item"),
        "annotations": {"readOnlyHint": False, "destructiveHint": True},
    },
    {
        "name": "clear_list",
        "description": "Takes everything off a list.",
        "inputSchema": item_schema(),
        "annotations": {"readOnlyHint": False, "destructiveHint": True},
    },
]


def chosen(arguments):
    name = arguments.get("list", DEFAULT)
    if name not in LISTS:
        raise Refused(f"there is no list {name!r}; there are {', '.join(LISTS)}")
    return name, LISTS[name]


def call(tool, arguments):
    if tool == "get_lists":
        return {"account": os.environ["MAIL"], "default": DEFAULT, "lists": list(LISTS)}
    name, items = chosen(arguments)
    if tool == "add_item":
        if arguments["item"] in items:
            raise Refused(f"{arguments['item']!r} is on the list {name} already")
        items.append(arguments["item"])
    elif tool == "remove_item":
        if arguments["item"] not in items:
            raise Refused(f"{arguments['item']!r} is not on the list {name}")
        items.remove(arguments["item"])
    elif tool == "clear_list":
        items.clear()
    elif tool != "get_items":
        raise LookupError(tool)
    return {"account": os.environ["MAIL"], "list": name, "items": items}


def tool_result(tool, arguments):
    try:
        result = call(tool, arguments)
        return {"content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result}
    except Refused as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "shopping-list", "version": "1.0.0"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return tool_result(params["name"], params.get("arguments", {}))
    if method == "ping":
        return {}
    raise LookupError(method)


def main():
    missing = [name for name in ("MAIL", "PW") if not os.environ.get(name)]
    if missing:
        sys.exit(f"not logged in: {' and '.join(missing)} not set")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = answer(message["method"], message.get("params") or {})
        except LookupError as error:
            reply["error"] = {"code": -32601, "message": f"unknown: {error.args[0]}"}
        print(json.dumps(reply), flush=True)


main()
