"""A capability in the older dialect (W4): service CapabilityService, with `parameters`, `context`, `result`, `success`."""

import hashlib
import json
import signal
import threading
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "selu.capability.v1.CapabilityService"
ADDRESS = "0.0.0.0:50051"

STRING = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
BOOL = descriptor_pb2.FieldDescriptorProto.TYPE_BOOL
MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE


def messages():
    """The dialect's messages as classes. On the wire only the fields' numbers count."""
    file = descriptor_pb2.FileDescriptorProto(name="older.proto", package="older", syntax="proto3")

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, 1):
            made.field.add(name=field, number=number, type=kind, label=1)
        return made

    request = message("InvokeRequest", ("tool_name", STRING), ("parameters", STRING))
    entry = request.nested_type.add(name="ContextEntry", options=descriptor_pb2.MessageOptions(map_entry=True))
    for number, field in enumerate(("key", "value"), 1):
        entry.field.add(name=field, number=number, type=STRING, label=1)
    request.field.add(name="context", number=3, type=MESSAGE, label=3, type_name=".older.InvokeRequest.ContextEntry")
    message("InvokeResponse", ("result", STRING), ("success", BOOL), ("error", STRING))
    message("HealthCheckRequest")
    message("HealthCheckResponse", ("healthy", BOOL))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)

    def made(name):
        descriptor = pool.FindMessageTypeByName(f"older.{name}")
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(descriptor)
        return message_factory.MessageFactory(pool).GetPrototype(descriptor)

    return {each.name: made(each.name) for each in file.message_type}


TYPES = messages()


def invoke(request, _context):
    arguments, context = json.loads(request.parameters), dict(request.context)
    answer = TYPES["InvokeResponse"]
    if request.tool_name == "list_tools":
        schema = {"type": "object", "properties": {"words": {"type": "array", "items": {"type": "string"}}}}
        tools = [
            {"name": "join", "description": "Joins words.", "input_schema": schema, "recommended_policy": "allow"},
            {"name": "context", "description": "Tells its context.", "input_schema": {"type": "object"},
             "recommended_policy": "allow"},
        ]
        return answer(result=json.dumps(tools), success=True)
    if request.tool_name == "join":
        # A plain text: the dialect says `string`, and does not promise JSON.
        return answer(result=" ".join(arguments["words"]), success=True) if arguments.get("words") else answer(
            success=False, error="there are no words")
    if request.tool_name == "context":
        if "KEY" in context:
            context["KEY"] = hashlib.sha256(context["KEY"].encode()).hexdigest()
        return answer(result=json.dumps(context), success=True)
    return answer(success=False, error=f"unknown tool: {request.tool_name}")


def health_check(_request, _context):
    return TYPES["HealthCheckResponse"](healthy=True)


def main():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(handler, TYPES[request].FromString, lambda one: one.SerializeToString())
        for name, handler, request in [
            ("Invoke", invoke, "InvokeRequest"), ("HealthCheck", health_check, "HealthCheckRequest")
        ]
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_insecure_port(ADDRESS)
    asked_to_end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked_to_end.set())
    server.start()
    asked_to_end.wait()
    server.stop(grace=5).wait()


if __name__ == "__main__":
    main()
