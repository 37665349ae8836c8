"""Tests of the file manager's logic. They need Python alone: `python3 -m unittest discover examples/files/tests`."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

CONTAINER = Path(__file__).parent.parent / "agents/files/capabilities/file-manager/container"
sys.path.insert(0, str(CONTAINER))
sys.dont_write_bytecode = True

import tools  # noqa: E402


class FileManagerTest(unittest.TestCase):
    def setUp(self):
        self.outer = tempfile.TemporaryDirectory()
        self.addCleanup(self.outer.cleanup)
        self.root = os.path.join(self.outer.name, "workspace")
        os.mkdir(self.root)
        self.secret = os.path.join(self.outer.name, "secret.txt")
        Path(self.secret).write_text("outside")
        self.manager = tools.FileManager(self.root)

    def call(self, tool, credentials=None, **arguments):
        return self.manager.call(tool, arguments, credentials or {})

    def refused(self, expected, tool, **arguments):
        with self.assertRaises(tools.ToolError) as caught:
            self.call(tool, **arguments)
        self.assertIn(expected, str(caught.exception))

    def test_a_file_is_written_replaced_listed_read_and_deleted(self):
        self.assertFalse(self.call("write_file", path="a/b.txt", text="one")["replaced"])
        self.assertTrue(self.call("write_file", path="a/b.txt", text="zwö\r\n")["replaced"])
        self.assertEqual(self.call("read_file", path="a/b.txt")["text"], "zwö\r\n")
        self.assertEqual(
            self.call("list_files", path="a"),
            {"entries": [{"name": "b.txt", "kind": "file", "bytes": 6}], "not_shown": 0},
        )
        self.call("delete_file", path="a/b.txt")
        self.refused("there is no file `a/b.txt`", "read_file", path="a/b.txt")

    def test_no_path_leads_out_of_the_folder(self):
        for path in ["../secret.txt", "..", ".", "/etc/passwd", "a/../../secret.txt", "a//b", ".hidden", "a\0b", "a\n"]:
            for tool in ["read_file", "delete_file", "list_files"]:
                self.refused("is no path here", tool, path=path)
            self.refused("is no path here", "write_file", path=path, text="x")
        self.assertEqual(Path(self.secret).read_text(), "outside")

    def test_links_are_not_followed(self):
        os.symlink(self.secret, os.path.join(self.root, "file"))
        os.symlink(self.outer.name, os.path.join(self.root, "folder"))
        self.refused("there is no file", "read_file", path="file")
        self.refused("is a link", "write_file", path="file", text="x")
        self.refused("no folder", "read_file", path="folder/secret.txt")
        self.refused("no folder", "write_file", path="folder/new.txt", text="x")
        self.refused("no folder", "list_files", path="folder")
        self.assertEqual(Path(self.secret).read_text(), "outside")

    def test_a_failed_write_leaves_the_old_text_and_no_draft(self):
        self.call("write_file", path="plan.txt", text="old")
        self.refused("half a surrogate", "write_file", path="plan.txt", text="\ud800")
        self.refused("a file holds", "write_file", path="plan.txt", text="x" * (tools.FILE_BYTES + 1))
        self.assertEqual(self.call("read_file", path="plan.txt")["text"], "old")
        self.assertEqual(os.listdir(self.root), ["plan.txt"])

    def test_what_the_schema_forbids_is_refused_by_name(self):
        self.refused("`path` is missing", "read_file")
        self.refused("unknown `pth`", "list_files", pth="a")
        self.refused("`path` must be a string", "read_file", path=7)
        self.refused("`path` is empty", "read_file", path="")
        self.refused("unknown tool `format_disk`", "format_disk")

    def test_the_token_is_noticed_and_not_shown(self):
        self.assertEqual(self.call("cloud_status")["token_present"], False)
        answer = self.call("cloud_status", credentials={tools.CLOUD_TOKEN: "canary"})
        self.assertEqual(answer["token_present"], True)
        self.assertNotIn("canary", str(answer))

    def test_every_definition_keeps_required_inside_its_schema_and_writing_asks(self):
        policies = {}
        for tool in self.manager.definitions():
            self.assertEqual(set(tool), {"name", "description", "input_schema", "recommended_policy"})
            self.assertLessEqual(set(tool["input_schema"]["required"]), set(tool["input_schema"]["properties"]))
            policies[tool["name"]] = tool["recommended_policy"]
        self.assertEqual({name for name, policy in policies.items() if policy == "ask"}, {"write_file", "delete_file"})


if __name__ == "__main__":
    unittest.main()
