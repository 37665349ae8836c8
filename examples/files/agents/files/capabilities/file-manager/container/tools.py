"""The file manager's tools: what they are, and what they do below one folder.

A path is checked and never repaired: what could leave the folder is refused. A file is written beside its place and
renamed into it, so a reader sees the old text or the new one, never a part.
"""

import os
import re
import stat
import tempfile

CLOUD_TOKEN = "CLOUD_STORAGE_TOKEN"
FILE_BYTES = 1024 * 1024
LISTED = 500
# The first character keeps out `.`, `..` and hidden files; our own drafts are hidden files.
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,99}")

PATH = {
    "type": "string",
    "minLength": 1,
    "description": "Relative to the workspace, parts separated by `/`, such as `reports/2024.txt`.",
}


def definition(name, description, properties, required, policy):
    """A tool as discovery returns it. `required` belongs inside the schema; beside it, it would be ignored."""
    return {
        "name": name,
        "description": description,
        "input_schema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        "recommended_policy": policy,
    }


DEFINITIONS = [
    definition(
        "list_files",
        "Lists the files and folders in a folder of the workspace. Without a path, in its top folder.",
        {"path": PATH},
        [],
        "allow",
    ),
    definition("read_file", "Reads a text file.", {"path": PATH}, ["path"], "allow"),
    definition(
        "write_file",
        "Writes a text file whole, with the folders that lead to it. A file of that path is replaced.",
        {"path": PATH, "text": {"type": "string", "description": "The whole text."}},
        ["path", "text"],
        "ask",
    ),
    definition("delete_file", "Deletes a file for good.", {"path": PATH}, ["path"], "ask"),
    definition(
        "cloud_status",
        "Says whether a token for cloud storage came with the call. It is never shown, and nothing is contacted.",
        {},
        [],
        "allow",
    ),
]


class ToolError(Exception):
    """A call that failed for a reason that the caller can act on."""


class FileManager:
    """The tools over one folder, which exists."""

    def __init__(self, root):
        self.root = root
        self.tools = {
            "list_files": self.list_files,
            "read_file": self.read_file,
            "write_file": self.write_file,
            "delete_file": self.delete_file,
        }

    def definitions(self):
        return DEFINITIONS

    def call(self, name, arguments, credentials):
        for tool in DEFINITIONS:
            if tool["name"] == name:
                check(name, tool["input_schema"], arguments)
        if name == "cloud_status":
            return {"token_present": bool(credentials.get(CLOUD_TOKEN)), "reachable": False}
        if name not in self.tools:
            raise ToolError(f"unknown tool `{name}`")
        try:
            return self.tools[name](**arguments)
        except OSError as error:
            raise ToolError(f"{name}: {error.strerror}") from None

    def list_files(self, path=None):
        folder = self.root if path is None else self.place(path)
        if kind(folder) != "folder":
            raise ToolError(f"there is no folder `{path}`")
        entries = []
        for name in sorted(os.listdir(folder)):
            if PART.fullmatch(name):
                full = os.path.join(folder, name)
                entry = {"name": name, "kind": kind(full)}
                if entry["kind"] == "file":
                    entry["bytes"] = os.lstat(full).st_size
                entries.append(entry)
        return {"entries": entries[:LISTED], "not_shown": max(0, len(entries) - LISTED)}

    def read_file(self, path):
        place = self.file(path)
        size = os.lstat(place).st_size
        if size > FILE_BYTES:
            raise ToolError(f"`{path}` has {size} bytes; {FILE_BYTES} can be read")
        try:
            with open(place, encoding="utf-8", newline="") as file:
                return {"path": path, "text": file.read()}
        except UnicodeDecodeError:
            raise ToolError(f"`{path}` is not text in UTF-8") from None

    def write_file(self, path, text):
        place = self.place(path)
        data = encoded(text)
        if len(data) > FILE_BYTES:
            raise ToolError(f"the text has {len(data)} bytes; a file holds {FILE_BYTES}")
        found = kind(place)
        if found not in ("file", None):
            raise ToolError(f"`{path}` is a {found}")
        folder = os.path.dirname(place)
        os.makedirs(folder, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(prefix=".draft-", dir=folder)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, place)
        except BaseException:
            os.unlink(draft)
            raise
        return {"path": path, "bytes": len(data), "replaced": found == "file"}

    def delete_file(self, path):
        os.unlink(self.file(path))
        return {"deleted": path}

    def file(self, path):
        """A path below the folder at which a plain file stands."""
        place = self.place(path)
        if kind(place) != "file":
            raise ToolError(f"there is no file `{path}`")
        return place

    def place(self, path):
        """A path below the folder that leads through folders only, never through a link."""
        parts = path.split("/")
        for part in parts:
            if not PART.fullmatch(part) or part != part.strip():
                raise ToolError(
                    f"{path!r} is no path here: letters, digits, `_`, `.`, `-` and spaces, parts separated by `/`, "
                    "each beginning with a letter, a digit or `_`"
                )
        place = self.root
        for part in parts[:-1]:
            place = os.path.join(place, part)
            if kind(place) not in ("folder", None):
                raise ToolError(f"`{path}` leads through something that is no folder")
        return os.path.join(place, parts[-1])


def kind(place):
    """`file`, `folder`, `link`, `special file`, or None where there is nothing. A link is not followed."""
    try:
        mode = os.lstat(place).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "special file"


def encoded(text):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError("the text has half a surrogate pair, which UTF-8 cannot hold") from None


def check(tool, schema, arguments):
    """What the schemas above use of JSON Schema: required and unknown names, and strings with a least length."""
    for name in schema["required"]:
        if name not in arguments:
            raise ToolError(f"arguments of {tool}: `{name}` is missing")
    for name, value in arguments.items():
        if name not in schema["properties"]:
            known = ", ".join(schema["properties"]) or "none"
            raise ToolError(f"arguments of {tool}: unknown `{name}`; known are {known}")
        if not isinstance(value, str):
            raise ToolError(f"arguments of {tool}: `{name}` must be a string")
        if len(value) < schema["properties"][name].get("minLength", 0):
            raise ToolError(f"arguments of {tool}: `{name}` is empty")
