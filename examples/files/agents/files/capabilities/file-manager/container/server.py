"""The file manager's server: gRPC around the functions in tools.py."""

import json
import signal
import sys
import threading
import traceback
from concurrent import futures

import grpc

import capability_pb2 as pb2
from tools import FileManager, ToolError

SERVICE = "selu.capability.v1.Capability"
ADDRESS = "0.0.0.0:50051"
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
DISCOVERY_TOOL = "list_available_tools"


class Capability:
    """Answers the calls of the service. A file manager takes and makes no artifacts."""

    def __init__(self, manager):
        self.manager = manager

    def invoke(self, request, context):
        try:
            arguments = json_object(request.args_json, "args_json")
            credentials = json_object(request.config_json, "config_json")
            if request.tool_name == DISCOVERY_TOOL:
                result = self.manager.definitions()
            else:
                result = self.manager.call(request.tool_name, arguments, credentials)
            return pb2.InvokeResponse(result_json=json.dumps(result).encode())
        except ToolError as error:
            return pb2.InvokeResponse(error=str(error))
        except Exception as error:  # One call's fault must not look like a lost connection to the caller.
            # The message may quote what the caller sent. The log gets the place only.
            for frame in traceback.extract_tb(error.__traceback__):
                print(f"{type(error).__name__} at {frame.filename}:{frame.lineno}", file=sys.stderr)
            return pb2.InvokeResponse(error=f"the tool crashed ({type(error).__name__}); the server still runs")

    def stream_invoke(self, request, context):
        """The tools here answer at once, so the stream is one piece."""
        answer = self.invoke(request, context)
        yield pb2.InvokeChunk(data=answer.result_json, done=True, error=answer.error)

    def healthcheck(self, request, context):
        return pb2.HealthResponse(ready=True)

    def handlers(self):
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Invoke": grpc.unary_unary_rpc_method_handler(
                    self.invoke, pb2.InvokeRequest.FromString, pb2.InvokeResponse.SerializeToString
                ),
                "StreamInvoke": grpc.unary_stream_rpc_method_handler(
                    self.stream_invoke, pb2.InvokeRequest.FromString, pb2.InvokeChunk.SerializeToString
                ),
                "Healthcheck": grpc.unary_unary_rpc_method_handler(
                    self.healthcheck, pb2.HealthRequest.FromString, pb2.HealthResponse.SerializeToString
                ),
            },
        )


def json_object(data, field):
    """The value is not quoted in the error: config_json holds secrets."""
    try:
        value = json.loads(data)
    except ValueError:
        raise ToolError(f"{field} must be a JSON object") from None
    if not isinstance(value, dict):
        raise ToolError(f"{field} must be a JSON object")
    return value


def main():
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=4),
        options=[
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ],
    )
    server.add_generic_rpc_handlers((Capability(FileManager("/workspace")).handlers(),))
    server.add_insecure_port(ADDRESS)

    # Process 1 of a container gets no default action for a signal: without a handler SIGTERM would do nothing.
    asked_to_end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked_to_end.set())

    server.start()
    print(f"serving on {ADDRESS}", file=sys.stderr, flush=True)
    asked_to_end.wait()
    server.stop(grace=5).wait()


if __name__ == "__main__":
    main()
