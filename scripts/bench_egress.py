"""Measures the egress gateway without an engine: `scripts/bench egress` as root, on Linux with `ip`.

Network namespaces stand for the containers, the gateway and the outside; the gateway is the real one, with its privileged
parent, its worker, its packet filter and its jail, in a folder of its own as in its image. What it is compared with runs in
the gateway's namespace, on the same devices: a direct connection (routed there), a bare splice of two sockets through a
pipe of the kernel's default size, and squid where it is installed (CONNECT, nothing logged, nothing cached). Kinds go by
turns; medians are shown. `cpu` is the forwarder's own processor time, which a busy machine disturbs less than the clock.
`at N`: requests of 64 bytes a second over N connections, each waiting for its answer, and the median time of one.

`--only PART` measures one part: `bulk`, `ping`, `load`, `memory` or `restart`. `--soak MINUTES` measures nothing else: under
steady connections, questions and changes of the policy, what parent and worker hold must not grow.
"""
import contextlib
import hashlib
import json
import os
import select
import shutil
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
        squid = None if options.soak else shutil.which("squid")
        lab = Lab(folder, program, options.networks, squid, stack)
        rows = {"networks": options.networks}
        rows["policy_ms"] = statistics.median(lab.first() for _ in range(options.runs)) * 1000
        rows["policy_again_ms"] = statistics.median(lab.deliver() for _ in range(options.runs)) * 1000
        rows["idle_mib"] = lab.memory()
        if options.soak:
            return lab.soak(options.soak)
        lab.settle()
        parts = {
            "bulk": lambda: lab.bulk(options.runs, options.megabytes),
            "ping": lambda: lab.round_trips(options.runs),
            "load": lambda: lab.load(options.runs, options.connections),
            "memory": lambda: lab.many(options.connections),
            "restart": lambda: {"restart_ms": lab.restart() * 1000},
        }
        for part, measure in parts.items():
            if options.only in (None, part):
                rows |= measure()
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for key, value in rows.items():
            print(f"{key:>28}  {value:,.3f}" if isinstance(value, float) else f"{key:>28}  {value}")
    targets = [
        ("bulk at least 0.95 of the bare splice", "bulk_of_splice", lambda value: value >= 0.95),
        ("more in bulk than squid", "bulk_of_squid", lambda value: value > 1),
        ("less than 0.2 ms added to a round trip", "added_us", lambda value: value < 200),
        ("faster round trips than squid", "ping_of_squid", lambda value: value < 1),
        ("less than 32 MiB", "loaded_mib", lambda value: value < 32),
        ("policies loaded in less than 100 ms", "policy_ms", lambda value: value < 100),
    ]
    missed = [text for text, row, met in targets if row in rows and not met(rows[row])]
    for text in missed:
        print(f"missed: {text}", file=sys.stderr)
    return 1 if missed else 0


def sh(*command, **options):
    return subprocess.run(command, check=True, **options)


class Lab:
    def __init__(self, folder, program, networks, squid, stack):
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
        self.squid = self.start_squid(squid) if squid else None
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

    def start_squid(self, program):
        """Debian's, as far from slow as its settings go; it becomes another user by itself."""
        config = os.path.join(self.root, "etc", "squid.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write("http_port 7002\nhttp_access allow all\ncache deny all\naccess_log none\ncache_log /dev/null\n"
                       "cache_store_log none\npid_filename none\nmax_filedescriptors 8192\nclient_db off\n"
                       "shutdown_lifetime 0 seconds\npinger_enable off\nhalf_closed_clients off\n")
        child = subprocess.Popen(["ip", "netns", "exec", self.gateway, program, "-N", "-f", config],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.stack.callback(child.wait)
        self.stack.callback(child.kill)
        wait_until(lambda: self.inside(self.gateway, "ss", "-Hltn", "sport = :7002", stdout=subprocess.PIPE).stdout,
                   "squid begins")
        return child.pid

    def chroot(self, user, *arguments):
        return ["ip", "netns", "exec", self.gateway, "chroot", f"--userspec={user}:{user}", self.root, "/selu",
                *arguments]

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
        """In a container its processes end with the first one; here they are waited for."""
        processes = self.processes()
        self.parent.send_signal(signal.SIGTERM)
        self.parent.wait()
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in processes), "the gateway ends")

    def deliver(self):
        """Delivers a policy for every network; how long until the worker goes by it, without the time that the same
        program takes there to start and end. Each policy differs from the one before."""
        began = time.monotonic()
        subprocess.run(self.chroot(65532, "--version"), stdout=subprocess.PIPE, check=True)
        start = time.monotonic() - began
        self.generation += 1
        ports = (80, 9000, 9001, 9002) if self.generation % 2 == 0 else (80, 9000, 9001)
        rules = {
            f"selu_bench_a_c{index}_1": {
                "instance": f"a/c{index}",
                "subnet": f"{self.base(index)}.0/24",
                "capability": f"{self.base(index)}.2",
                "rules": {"mode": "allowlist", "hosts": [f"{NAME}:{port}" for port in ports]},
                "private": [],
            }
            for index in range(self.networks)
        }
        policy = {"project": "bench", "generation": self.generation, "networks": dict(sorted(rules.items())),
                  "refused": [], "ranges": ["10.231.0.0/16"]}
        digest = hashlib.sha256(compact(policy)).hexdigest()
        sealed = compact({"protocol": 2, "hash": f"sha256:{digest}", "policy": policy})
        began = time.monotonic()
        subprocess.run(self.chroot(65532, "gateway", "policy"), input=sealed, stdout=subprocess.PIPE, check=True)
        return time.monotonic() - began - start

    def first(self):
        """Delivers a policy to a gateway that had none before."""
        self.end()
        for kept in ("policy", "egress"):
            for entry in os.scandir(os.path.join(self.root, kept)):
                os.unlink(entry.path)
        self.begin()
        return self.deliver()

    def settle(self):
        """Lets in what the gateway is compared with: all of it goes through its namespace."""
        self.inside(self.gateway, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for rule in ("input tcp dport 7000-7002 accept", "forward accept", "output meta skuid 13 accept"):
            self.inside(self.gateway, "nft", "insert", "rule", "ip", "selu", *rule.split())

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

    def kinds(self, port):
        """Where a client connects for each kind, and whose processor time it takes. Squid is asked for the rest."""
        here = f"{self.base(0)}.3"
        kinds = {"direct": (OUTSIDE, port, None), "splice": (here, 7000 if port == 9000 else 7001, self.splicer),
                 "gateway": (NAME, port, self.processes()[-1])}
        if self.squid:
            kinds["squid"] = (f"{here}:7002", port, self.squid)
        return kinds

    def bulk(self, runs, megabytes):
        kinds = self.kinds(9000)
        speed, cpu = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
        for _ in range(runs):
            for kind, (host, port, pid) in kinds.items():
                before = spent(pid)
                seconds = self.client(0, "bulk", host, port, megabytes)
                speed[kind].append(megabytes / seconds)
                cpu[kind].append((spent(pid) - before) / megabytes * 1024)
        rows = {f"bulk_{kind}_mib_s": statistics.median(speed[kind]) for kind in kinds}
        rows |= {f"bulk_{kind}_cpu_s_gib": statistics.median(cpu[kind]) for kind in kinds if kind != "direct"}
        for other in set(kinds) - {"gateway"}:
            ratios = [ours / theirs for ours, theirs in zip(speed["gateway"], speed[other])]
            rows[f"bulk_of_{other}"] = statistics.median(ratios)
        return rows

    def round_trips(self, runs):
        rows = {}
        for what, port in [("ping", 9001), ("http", 80)]:
            kinds = self.kinds(port)
            if port == 80:
                del kinds["splice"]
            found = {kind: [] for kind in kinds}
            for _ in range(runs):
                for kind, (host, port, _) in kinds.items():
                    found[kind].append(self.client(0, what, host, port, 2000))
            rows |= {f"{what}_{kind}_us": statistics.median(found[kind]) * 1e6 for kind in kinds}
        rows["added_us"] = rows["ping_gateway_us"] - rows["ping_direct_us"]
        if self.squid:
            rows["ping_of_squid"] = rows["ping_gateway_us"] / rows["ping_squid_us"]
        return rows

    def load(self, runs, most):
        """From one connection to many that are busy at once, over as few networks as may have them."""
        rows = {}
        for connections in (level for level in (1, 10, 100, 1000) if level <= most):
            networks = min(self.networks, -(-connections // 250))
            kinds = self.kinds(9001)
            found = {kind: [] for kind in kinds}
            for _ in range(min(runs, 3)):
                for kind, (host, port, _) in kinds.items():
                    found[kind].append(self.burst(networks, connections // networks, host, port))
            for kind in kinds:
                rows[f"rate_{kind}_at_{connections}"] = statistics.median(rate for rate, _ in found[kind])
                rows[f"wait_{kind}_at_{connections}_us"] = statistics.median(wait for _, wait in found[kind]) * 1e6
        return rows

    def burst(self, networks, each, host, port):
        children = []
        for index in range(networks):
            there = host.replace(f"{self.base(0)}.3", f"{self.base(index)}.3")
            command = ["ip", "netns", "exec", f"{self.prefix}c{index}", sys.executable, __file__, "client",
                       f"{self.base(index)}.3", "load", there, str(port), str(each)]
            children.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        for child in children:
            child.stdout.readline()
        for child in children:
            child.stdin.write(b"\n")
            child.stdin.flush()
        answers = [json.loads(child.communicate()[0]) for child in children]
        return sum(rate for rate, _ in answers), statistics.median(wait for _, wait in answers)

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

    def soak(self, minutes):
        """Steady use; what is held at its end is compared with what was after the first tenth."""
        children = []
        for index in range(self.networks):
            command = ["ip", "netns", "exec", f"{self.prefix}c{index}", sys.executable, __file__, "client",
                       f"{self.base(index)}.3", "soak", NAME, "9001", str(minutes * 60)]
            children.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
        began, looks, next_look = time.monotonic(), [], minutes * 6
        while (passed := time.monotonic() - began) < minutes * 60:
            if passed >= next_look:
                next_look += minutes * 6
                looks.append([(status(pid, "VmRSS"), len(os.listdir(f"/proc/{pid}/fd"))) for pid in self.processes()])
                parent, worker = looks[-1]
                print(f"{passed:>8.0f} s  parent {parent[0]:>6} KiB {parent[1]:>3} fds   "
                      f"worker {worker[0]:>6} KiB {worker[1]:>4} fds   generation {self.generation}", flush=True)
            self.deliver()
            time.sleep(1)
        done = [json.loads(child.communicate()[0]) for child in children]
        print(f"{sum(trips for trips, _ in done)} round trips on {sum(made for _, made in done)} connections")
        if len(looks) < 2 or not all(made for _, made in done):
            sys.exit("bench egress: that was no soak")
        grown = [
            who
            for who, first, last in zip(("parent", "worker"), looks[0], looks[-1])
            if last[0] > first[0] * 1.1 + 1024 or last[1] > first[1] + 64
        ]
        for who in grown:
            print(f"missed: the {who} grew", file=sys.stderr)
        return 1 if grown else 0


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

    def echo():
        listener, poll, peers = socket.create_server((OUTSIDE, 9001), backlog=1024), select.epoll(), {}
        poll.register(listener, select.EPOLLIN)
        while True:
            for number, _ in poll.poll():
                if number == listener.fileno():
                    peer, _ = listener.accept()
                    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    peers[peer.fileno()] = peer
                    poll.register(peer, select.EPOLLIN)
                    continue
                data = b""
                with contextlib.suppress(OSError):
                    data = peers[number].recv(65536)
                    peers[number].sendall(data)
                if not data:
                    peers.pop(number).close()

    def resolve():
        asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        asked.bind((RESOLVER, 53))
        while True:
            data, peer = asked.recvfrom(2048)
            end = data.index(b"\0", 12) + 5
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(OUTSIDE)
            asked.sendto(data[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + data[12:end] + answer, peer)

    threading.Thread(target=accept, args=((OUTSIDE, 9000), bulk), daemon=True).start()
    threading.Thread(target=echo, daemon=True).start()
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
    if what == "soak":
        return print(json.dumps(soak(resolver, host, port, count)))
    proxy, colon, proxy_port = host.partition(":")
    address = lookup(resolver, proxy)
    if what == "resolve":
        return print(json.dumps(address))

    def connected():
        if not colon:
            return connect(address, port)
        if what == "http":
            return connect(address, int(proxy_port))
        return tunnel(connect(address, int(proxy_port)), port)

    if what == "hold":
        held = [connected() for _ in range(count)]
        for peer in held:
            trip(peer, b"\0hello")
        print(len(held), flush=True)
        return sys.stdin.read(1)
    if what == "load":
        return load([connected() for _ in range(count)])
    peer = connected()
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
        asked = OUTSIDE if colon else host
        message = b"GET %s/ HTTP/1.1\r\nHost: %s\r\n\r\n" % (f"http://{asked}".encode() if colon else b"", asked.encode())
    times = []
    for _ in range(count):
        began = time.monotonic()
        trip(peer, message, b"ok" if what == "http" else None)
        times.append(time.monotonic() - began)
    return print(statistics.median(times))


def load(peers, seconds=1.5):
    """Every connection asks, waits for its answer and asks again; requests a second, and the median wait."""
    message, poll, sent, waits = b"\0" + bytes(63), select.epoll(), {}, []
    for peer in peers:
        trip(peer, message)
        poll.register(peer, select.EPOLLIN)
    by_number = {peer.fileno(): peer for peer in peers}
    print("ready", flush=True)
    sys.stdin.readline()
    began = now = time.monotonic()
    for number, peer in by_number.items():
        sent[number] = time.monotonic()
        peer.sendall(message)
    while now < began + seconds:
        for number, _ in poll.poll():
            if len(by_number[number].recv(65536)) != len(message):
                sys.exit("bench egress: the connection ended early")
            now = time.monotonic()
            waits.append(now - sent[number])
            sent[number] = now
            by_number[number].sendall(message)
    print(json.dumps([len(waits) / (now - began), statistics.median(waits)]))


def soak(resolver, host, port, seconds):
    """Three connections that stay, and one after the other that do not; round trips and connections in the end."""
    until, trips, message = time.monotonic() + seconds, 0, b"\0" + bytes(63)
    kept = [connect(lookup(resolver, host), port) for _ in range(3)]
    made = len(kept)
    while time.monotonic() < until:
        with connect(lookup(resolver, host), port) as short:
            made += 1
            for peer in [short, *kept]:
                trip(peer, message)
                trips += 1
        time.sleep(0.25)
    return trips, made


def tunnel(peer, port):
    peer.sendall(b"CONNECT %s:%d HTTP/1.1\r\n\r\n" % (OUTSIDE.encode(), port))
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        received = peer.recv(1)
        if not received:
            break
        answer += received
    if b" 200 " not in answer:
        sys.exit(f"bench egress: the proxy says {answer}")
    return peer


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
