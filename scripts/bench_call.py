"""Measures calls on a real engine: `scripts/bench call` as root, on the engine's own machine.

Twenty containers of the tests' probe are deployed as one project. A bare gRPC client stands in the container's own network
namespace, so that nothing is between the two but the loopback; against it goes the same call through the gateway's pipe,
within the limits, as `selu invoke` makes it. The kinds go by turns; medians are shown.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

SIZE = (16 << 20) - 1024  # of a large result: with its frame it stays below 16 MiB
MANIFEST = """id: probe
image: {image}
resources: {{max_memory_mb: 128, max_cpu_fraction: 1.0, max_cpu_seconds: 600, pids_limit: 64}}
sharing: {{mode: shared, max_concurrent: 64}}
tools:
"""
TOOL = "  - {{name: {}, description: Does it, recommended_policy: allow, input_schema: {{type: object}}}}\n"


def run(options, program, probe, client):
    if os.geteuid() != 0:
        sys.exit("bench call: needs root, to stand in a container's network namespace")
    with tempfile.TemporaryDirectory(prefix="selu-bench-") as folder:
        lab = Lab(folder, program, probe, client, options.instances)
        try:
            lab.deploy()
            rows = lab.measure(options)
        finally:
            lab.remove()
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for key, value in rows.items():
            print(f"{key:>32}  {value:,.3f}" if isinstance(value, float) else f"{key:>32}  {value}")
    missed = [
        text
        for text, met in [
            ("less than 1 ms added to a call", rows["added_us"] < 1000),
            ("less than 5% added to a tool of 10 ms", rows["10ms_tool_ratio"] < 1.05),
            ("no call lost of those made at once", rows["lost"] == 0),
        ]
        if not met
    ]
    for text in missed:
        print(f"missed: {text}", file=sys.stderr)
    return 1 if missed else 0


class Lab:
    def __init__(self, folder, program, probe, client, instances):
        self.folder, self.program, self.probe, self.client = folder, program, probe, client
        self.project = f"bench-call-{os.getpid()}"
        self.agents = [f"a{number}" for number in range(instances)]

    def selu(self, *arguments):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"bench: selu {' '.join(arguments)}:\n{done.stdout}")

    def write(self, path, text):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def deploy(self):
        image = f"selu-bench/{self.project}:1"
        self.write("selu.toml", f'[project]\nname = "{self.project}"\n\n[build."a0/probe"]\n'
                   f'prepare = ["sh", "-c", "cp \'{self.probe}\' $SELU_BUILD_OUT/probe"]\n')
        tools = "".join(TOOL.format(name) for name in ("echo", "wait", "large"))
        for agent in self.agents:
            self.write(f"agents/{agent}/agent.yaml", f"id: {agent}\nname: {agent}\n")
            self.write(f"agents/{agent}/agent.md", "Answers.\n")
            self.write(f"agents/{agent}/capabilities/probe/manifest.yaml", MANIFEST.format(image=image) + tools)
        self.write("agents/a0/capabilities/probe/container/Dockerfile",
                   'FROM scratch\nCOPY probe /probe\nENTRYPOINT ["/probe", "serve"]\n')
        self.selu("build")
        self.selu("apply", "-y")

    def remove(self):
        self.selu("destroy", "-y", "--volumes")
        subprocess.run(["docker", "rmi", "-f", f"selu-bench/{self.project}:1"], stdout=subprocess.DEVNULL)

    def call(self, kind, tool, arguments, count):
        command = [self.client, kind]
        if kind == "bare":
            name = f"selu_{self.project}_a0_probe_1"
            pid = subprocess.run(["docker", "inspect", "--format", "{{.State.Pid}}", name], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout.strip()
            command = ["nsenter", f"--net=/proc/{pid}/ns/net", *command, "127.0.0.1:50051"]
        else:
            command += [self.folder, "a0/probe"]
        return answer([*command, tool, json.dumps(arguments), str(count)])

    def turns(self, options, tool, arguments, count):
        """The median of each kind over all turns, in microseconds, and the median of the turns' ratios."""
        medians = {"bare": [], "pipe": []}
        for _ in range(options.runs):
            for kind, found in medians.items():
                found.append(statistics.median(self.call(kind, tool, arguments, count)["us"]))
        ratio = statistics.median(pipe / bare for bare, pipe in zip(medians["bare"], medians["pipe"]))
        return statistics.median(medians["bare"]), statistics.median(medians["pipe"]), ratio

    def measure(self, options):
        rows = {"instances": len(self.agents)}
        rows["bare_us"], rows["pipe_us"], _ = self.turns(options, "echo", {}, 1000)
        rows["added_us"] = rows["pipe_us"] - rows["bare_us"]
        rows["10ms_tool_bare_us"], rows["10ms_tool_pipe_us"], rows["10ms_tool_ratio"] = self.turns(
            options, "wait", {"ms": 10}, 50)
        bare, pipe, ratio = self.turns(options, "large", {"bytes": SIZE}, 5)
        rows["16mib_bare_ms"], rows["16mib_pipe_ms"], rows["16mib_ratio"] = bare / 1000, pipe / 1000, ratio
        rows["16mib_pipe_mb_a_second"] = SIZE / pipe
        opened = answer([self.client, "open", self.folder, "a0/probe", "20"])["us"]
        rows["open_ms"] = statistics.median(opened) / 1000
        many = answer([self.client, "many", self.folder, "echo", str(options.calls)])
        rows["at_once"], rows["at_once_seconds"], rows["lost"] = many["calls"], many["seconds"], len(many["lost"])
        for text in many["lost"][:5]:
            print(f"lost: {text}", file=sys.stderr)
        return rows


def answer(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(command)} failed")
    return json.loads(done.stdout)
