"""A bridge in Python, for comparison: grpcio in front of an MCP server over standard streams.

It does the least that answers `tools/call`: no policies, no bounds, no deadlines, no second set of credentials.
"""
import json
import os
import subprocess
import sys
import threading
from concurrent import futures

import grpc

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "examples/files/agents/files/capabilities/file-manager/container"))
import capability_pb2  # noqa: E402


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()
        self.number = 0
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                                "clientInfo": {"name": "bench", "version": "1"}})

    def ask(self, method, params):
        with self.lock:
            self.number += 1
            call = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
            self.process.stdin.write(json.dumps(call) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())["result"]


def main():
    server = Server(sys.argv[1:])

    def invoke(request, _):
        params = {"name": request.tool_name, "arguments": json.loads(request.args_json)}
        text = server.ask("tools/call", params)["content"][0]["text"]
        return capability_pb2.InvokeResponse(result_json=text.encode())

    handler = grpc.unary_unary_rpc_method_handler(
        invoke,
        request_deserializer=capability_pb2.InvokeRequest.FromString,
        response_serializer=capability_pb2.InvokeResponse.SerializeToString,
    )
    service = grpc.method_handlers_generic_handler("selu.capability.v1.Capability", {"Invoke": handler})
    listener = grpc.server(futures.ThreadPoolExecutor(max_workers=8))
    listener.add_generic_rpc_handlers((service,))
    port = listener.add_insecure_port("127.0.0.1:0")
    listener.start()
    print(f"serving on 127.0.0.1:{port}, in Python", file=sys.stderr, flush=True)
    listener.wait_for_termination()


main()
