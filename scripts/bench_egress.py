"""Measures the egress gateway without an engine: `scripts/bench egress` as root, on Linux with `ip`.

Network namespaces stand for the containers, the gateway and the outside; the gateway is the real one, with its privileged
parent, its worker, its packet filter and its jail, in a folder of its own as in its image. What it is compared with runs in
the gateway's namespace, on the same devices: a direct connection (routed there), and a bare splice of two sockets through a
pipe of the kernel's default size. Kinds go by turns; medians are shown. `cpu` is the forwarder's own processor time, which a
busy machine disturbs less than the clock.
"""
import contextlib
import hashlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

OUTSIDE = "93.184.216.34"
RESOLVER = "93.184.216.53"
NAME = "api.example.com"
TICK = os.sysconf("SC_CLK_TCK")


def run(options, program):
    if os.geteuid() != 0:
        sys.exit("bench egress: needs root, for network namespaces")
    with tempfile.TemporaryDirectory(prefix="selu-bench-") as folder, contextlib.ExitStack() as stack:
        lab = Lab(folder, program, options.networks, stack)
        rows = {"networks": options.networks}
        rows["policy_ms"] = lab.deliver() * 1000
        rows["idle_mib"] = lab.memory()
        rows |= lab.bulk(options.runs, options.megabytes)
        rows |= lab.round_trips(options.runs)
        rows |= lab.many(options.connections)
        rows["restart_ms"] = lab.restart() * 1000
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for key, value in rows.items():
            print(f"{key:>28}  {value:,.3f}" if isinstance(value, float) else f"{key:>28}  {value}")
    missed = [
        text
        for text, met in [
            ("bulk at least 0.95 of the bare splice", rows["bulk_of_splice"] >= 0.95),
            ("less than 0.2 ms added to a round trip", rows["added_us"] < 200),
            ("less than 32 MiB", rows["loaded_mib"] < 32),
            ("policies loaded in less than 100 ms", rows["policy_ms"] < 100),
        ]
        if not met
    ]
    for text in missed:
        print(f"missed: {text}", file=sys.stderr)
    return 1 if missed else 0


def sh(*command, **options):
    return subprocess.run(command, check=True, **options)


class Lab:
    def __init__(self, folder, program, networks, stack):
        self.root, self.networks, self.stack = folder, networks, stack
        self.prefix = f"sb{os.getpid()}"
        self.gateway, self.outside = f"{self.prefix}g", f"{self.prefix}o"
        self.generation, self.parent = 0, None
        for name in (self.gateway, self.outside):
            self.namespace(name)
        self.link(f"{self.prefix}u", self.gateway, "93.184.216.10/24", self.outside, f"{OUTSIDE}/24", "out0")
        sh("ip", "-n", self.outside, "address", "add", f"{RESOLVER}/24", "dev", "out0")
        sh("ip", "-n", self.gateway, "route", "add", "default", "via", OUTSIDE)
        sh("ip", "-n", self.outside, "route", "add", "10.231.0.0/16", "via", "93.184.216.10")
        self.inside(self.gateway, "sysctl", "-qw", "net.ipv4.ip_unprivileged_port_start=0")
        for index in range(networks):
            name = f"{self.prefix}c{index}"
            self.namespace(name)
            base = self.base(index)
            self.link(f"{self.prefix}n{index}", self.gateway, f"{base}.3/24", name, f"{base}.2/24", "eth0")
            sh("ip", "-n", name, "route", "add", "default", "via", f"{base}.3")
        for path, owner in [("policy", 65532), ("egress", 65534), ("run", 0), ("etc", 0), ("proc", 0), ("dev", 0)]:
            os.mkdir(os.path.join(folder, path))
            os.chown(os.path.join(folder, path), owner, owner)
        os.chmod(folder, 0o755)
        with open(os.path.join(folder, "etc", "resolv.conf"), "w", encoding="ascii") as file:
            file.write(f"nameserver {RESOLVER}\n")
        sh("cp", program, os.path.join(folder, "selu"))
        self.helper(self.outside, "servers")
        self.splicer = self.helper(self.gateway, "splice")
        self.begin()
        stack.callback(self.end)

    def namespace(self, name):
        sh("ip", "netns", "add", name)
        self.stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)
        sh("ip", "-n", name, "link", "set", "lo", "up")

    def link(self, device, left, left_address, right, right_address, name):
        sh("ip", "link", "add", device, "netns", left, "type", "veth", "peer", "name", name, "netns", right)
        for space, what, address in [(left, device, left_address), (right, name, right_address)]:
            sh("ip", "-n", space, "address", "add", address, "dev", what)
            sh("ip", "-n", space, "link", "set", what, "up")

    def base(self, index):
        return f"10.231.{index}"

    def inside(self, space, *command, **options):
        return sh("ip", "netns", "exec", space, *command, **options)

    def helper(self, space, what):
        """One of this file's own servers; it says when it is ready."""
        child = subprocess.Popen(["ip", "netns", "exec", space, sys.executable, __file__, what], stdout=subprocess.PIPE)
        self.stack.callback(child.wait)
        self.stack.callback(child.kill)
        child.stdout.readline()
        return child.pid

    def chroot(self, user, *arguments):
        return ["ip", "netns", "exec", self.gateway, "chroot", f"--userspec={user}:{user}", self.root, "/selu",
                "gateway", *arguments]

    def begin(self):
        socket_path = os.path.join(self.root, "run", "control")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket_path)
        # A mount namespace of its own, so that its mounts go with it.
        command = (f"mount -t proc proc {self.root}/proc && mount --rbind /dev {self.root}/dev && "
                   f"exec chroot {self.root} /selu gateway run")
        self.parent = subprocess.Popen(["ip", "netns", "exec", self.gateway, "sh", "-c", command],
                                       stdin=subprocess.DEVNULL)
        wait_until(lambda: os.path.exists(socket_path), "the gateway begins")

    def end(self):
        self.parent.send_signal(signal.SIGTERM)
        self.parent.wait()

    def deliver(self):
        """Delivers a policy for every network; how long until the worker goes by it."""
        self.generation += 1
        rules = {
            f"selu_bench_a_c{index}_1": {
                "instance": f"a/c{index}",
                "subnet": f"{self.base(index)}.0/24",
                "capability": f"{self.base(index)}.2",
                "rules": {"mode": "allowlist", "hosts": [f"{NAME}:{port}" for port in (80, 9000, 9001)]},
                "private": [],
            }
            for index in range(self.networks)
        }
        policy = {"project": "bench", "generation": self.generation, "networks": dict(sorted(rules.items())),
                  "refused": [], "ranges": ["10.231.0.0/16"]}
        digest = hashlib.sha256(compact(policy)).hexdigest()
        sealed = compact({"protocol": 2, "hash": f"sha256:{digest}", "policy": policy})
        began = time.monotonic()
        subprocess.run(self.chroot(65532, "policy"), input=sealed, stdout=subprocess.PIPE, check=True)
        taken = time.monotonic() - began
        # For what the gateway is compared with: both go through its namespace.
        self.inside(self.gateway, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for rule in ("input tcp dport 7000-7001 accept", "forward accept"):
            self.inside(self.gateway, "nft", "insert", "rule", "ip", "selu", *rule.split())
        return taken

    def restart(self):
        """How long a new gateway takes from its start to its first answer in the last network."""
        self.end()
        began = time.monotonic()
        self.begin()
        last = self.networks - 1
        self.client(last, "resolve")
        return time.monotonic() - began

    def processes(self):
        children = f"/proc/{self.parent.pid}/task/{self.parent.pid}/children"
        with open(children, encoding="ascii") as file:
            return [self.parent.pid, *map(int, file.read().split())]

    def memory(self):
        """What parent and worker hold themselves, in MiB."""
        return sum(status(pid, "RssAnon") + status(pid, "VmPTE") for pid in self.processes()) / 1024

    def client(self, index, *arguments):
        space = f"{self.prefix}c{index}"
        done = self.inside(space, sys.executable, __file__, "client", f"{self.base(index)}.3", *map(str, arguments),
                           stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout)

    def bulk(self, runs, megabytes):
        kinds = {"direct": (OUTSIDE, 9000, None), "splice": (f"{self.base(0)}.3", 7000, self.splicer),
                 "gateway": (NAME, 9000, self.processes()[-1])}
        speed, cpu = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
        for _ in range(runs):
            for kind, (host, port, pid) in kinds.items():
                before = spent(pid)
                seconds = self.client(0, "bulk", host, port, megabytes)
                speed[kind].append(megabytes / seconds)
                cpu[kind].append((spent(pid) - before) / megabytes * 1024)
        rows = {f"bulk_{kind}_mib_s": statistics.median(speed[kind]) for kind in kinds}
        rows |= {f"bulk_{kind}_cpu_s_gib": statistics.median(cpu[kind]) for kind in ("splice", "gateway")}
        rows["bulk_of_splice"] = rows["bulk_gateway_mib_s"] / rows["bulk_splice_mib_s"]
        return rows

    def round_trips(self, runs):
        kinds = {"direct": (OUTSIDE, 9001), "splice": (f"{self.base(0)}.3", 7001), "gateway": (NAME, 9001)}
        found = {kind: [] for kind in kinds}
        for _ in range(runs):
            for kind, (host, port) in kinds.items():
                found[kind].append(self.client(0, "ping", host, port, 2000))
        rows = {f"ping_{kind}_us": statistics.median(found[kind]) * 1e6 for kind in kinds}
        for kind, host, port in [("direct", OUTSIDE, 80), ("gateway", NAME, 80)]:
            rows[f"http_{kind}_us"] = statistics.median(
                self.client(0, "http", host, port, 1000) for _ in range(runs)) * 1e6
        rows["added_us"] = rows["ping_gateway_us"] - rows["ping_direct_us"]
        return rows

    def many(self, connections):
        """Connections over all networks, held open at once, each used once a while."""
        each, children = max(1, connections // self.networks), []
        for index in range(self.networks):
            command = ["ip", "netns", "exec", f"{self.prefix}c{index}", sys.executable, __file__, "client",
                       f"{self.base(index)}.3", "hold", NAME, "9001", str(each)]
            children.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        opened = sum(json.loads(child.stdout.readline()) for child in children)
        memory = self.memory()
        for child in children:
            child.communicate(b"\n")
        return {"connections": opened, "loaded_mib": memory}


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


def wait_until(ready, what):
    end = time.monotonic() + 30
    while not ready():
        if time.monotonic() > end:
            sys.exit(f"bench egress: {what} not")
        time.sleep(0.005)


def status(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith(f"{key}:")), 0)


def spent(pid):
    if pid is None:
        return 0.0
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


# What runs in the namespaces: servers outside, the bare splice, and clients.

def servers():
    import threading
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
            self.wfile.flush()

        def log_message(self, *_):
            pass

    def bulk(peer):
        block, left = bytes(1 << 20), int(peer.recv(32))
        while left:
            peer.sendall(block)
            left -= 1

    def echo(peer):
        while data := peer.recv(65536):
            peer.sendall(data)

    def resolve():
        asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        asked.bind((RESOLVER, 53))
        while True:
            data, peer = asked.recvfrom(2048)
            end = data.index(b"\0", 12) + 5
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(OUTSIDE)
            asked.sendto(data[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + data[12:end] + answer, peer)

    for port, serve in [(9000, bulk), (9001, echo)]:
        threading.Thread(target=accept, args=((OUTSIDE, port), serve), daemon=True).start()
    threading.Thread(target=resolve, daemon=True).start()
    server = ThreadingHTTPServer((OUTSIDE, 80), Handler)
    print("ready", flush=True)
    server.serve_forever()


def accept(address, serve):
    import threading

    def served(peer):
        with contextlib.suppress(OSError), peer:
            serve(peer)

    listener = socket.create_server(address, backlog=1024)
    while True:
        peer, _ = listener.accept()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=served, args=(peer,), daemon=True).start()


def splice():
    import threading

    def pump(source, sink):
        read, write = os.pipe()
        with contextlib.suppress(OSError):
            while filled := os.splice(source.fileno(), write, 65536):
                while filled:
                    filled -= os.splice(read, sink.fileno(), filled)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
        os.close(read)
        os.close(write)

    def forward(port):
        def serve(peer):
            with socket.create_connection((OUTSIDE, port)) as upstream:
                upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                other = threading.Thread(target=pump, args=(peer, upstream), daemon=True)
                other.start()
                pump(upstream, peer)
                other.join()
        return serve

    threading.Thread(target=accept, args=(("0.0.0.0", 7001), forward(9001)), daemon=True).start()
    print("ready", flush=True)
    accept(("0.0.0.0", 7000), forward(9000))


def client(resolver, what, host=NAME, port=0, count=0):
    port, count = int(port), int(count)
    address = lookup(resolver, host)
    if what == "resolve":
        return print(json.dumps(address))
    if what == "hold":
        held = [connect(address, port) for _ in range(count)]
        for peer in held:
            trip(peer, b"\0hello")
        print(len(held), flush=True)
        return sys.stdin.read(1)
    peer = connect(address, port)
    if what == "bulk":
        # The byte in front keeps it from being taken for the begin of something longer.
        began, left, buffer = time.monotonic(), count << 20, bytearray(1 << 20)
        peer.sendall(b"%d\n" % count)
        while left:
            received = peer.recv_into(buffer)
            if not received:
                sys.exit("bench egress: the connection ended early")
            left -= received
        return print(time.monotonic() - began)
    message = b"\0" + bytes(63)
    if what == "http":
        message = b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host.encode()
    times = []
    for _ in range(count):
        began = time.monotonic()
        trip(peer, message, b"ok" if what == "http" else None)
        times.append(time.monotonic() - began)
    return print(statistics.median(times))


def trip(peer, message, ends_with=None):
    peer.sendall(message)
    answer = b""
    while not (answer.endswith(ends_with) if ends_with else len(answer) >= len(message)):
        received = peer.recv(65536)
        if not received:
            sys.exit("bench egress: the connection ended early")
        answer += received


def connect(address, port):
    peer = socket.create_connection((address, port))
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peer


def lookup(resolver, host):
    """The address of a name, asked of the gateway; tried again while it does not serve yet."""
    with contextlib.suppress(OSError):
        return socket.inet_ntoa(socket.inet_aton(host))
    name = b"".join(bytes([len(label)]) + label.encode() for label in host.split("."))
    asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    asked.settimeout(0.05)
    asked.connect((resolver, 53))
    for _ in range(600):
        with contextlib.suppress(OSError):
            asked.send(b"\x12\x34\1\0\0\1\0\0\0\0\0\0" + name + b"\0\0\1\0\1")
            answer = asked.recv(2048)
            if answer[3] & 15 == 0 and answer[7] == 1:
                return socket.inet_ntoa(answer[-4:])
            sys.exit(f"bench egress: {host} has no address")
        time.sleep(0.005)
    sys.exit("bench egress: the gateway does not answer")


if __name__ == "__main__":
    {"servers": servers, "splice": splice, "client": client}[sys.argv[1]](*sys.argv[2:])
