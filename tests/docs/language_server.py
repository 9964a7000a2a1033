"""A session with a language server, as an editor has one."""

import json
import os
import subprocess
import sys


class LanguageServer:
    """Pyright's, asked by JSON over pipes."""

    def __init__(self, folder, package):
        self._folder, self._package, self._asked = folder, str(package), 0

    def __enter__(self):
        command = [sys.executable, "-m", "pyright.langserver", "--stdio"]
        environment = os.environ | {"PYTHONPATH": self._package}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self._folder,
            env=environment,
        )
        uri = self._folder.as_uri()
        self._ask(
            "initialize",
            processId=os.getpid(), rootUri=uri, capabilities={},
            workspaceFolders=[{"uri": uri, "name": "programs"}],
        )  # fmt: skip
        self._tell("initialized")
        return self

    def __exit__(self, *error):
        self._ask("shutdown")
        self._tell("exit")
        self._process.communicate(timeout=20)

    def open(self, name, text):
        """Show the server a file."""
        self._document = {"uri": (self._folder / name).as_uri()}
        document = self._document | {"languageId": "python", "version": 1, "text": text}
        self._tell("textDocument/didOpen", textDocument=document)

    def completions(self, line, character):
        """What the server lists behind a dot, by name."""
        position = {"line": line, "character": character}
        found = self._ask("textDocument/completion", textDocument=self._document, position=position)
        return {item["label"]: item for item in found["items"]}

    def documentation(self, item):
        """What the server shows beside an item of a list."""
        found = self._ask("completionItem/resolve", **item)["documentation"]
        return found if isinstance(found, str) else found["value"]

    def _ask(self, method, **parameters):
        self._asked += 1
        self._write({"id": self._asked, "method": method, "params": parameters})
        while True:
            message = self._read()
            if message.get("id") == self._asked and "method" not in message:
                assert "error" not in message, message["error"]
                return message["result"]
            if "id" in message and "method" in message:  # the server asks: it gets its defaults
                items = message.get("params", {}).get("items", [])
                self._write({"id": message["id"], "result": [None] * len(items)})

    def _tell(self, method, **parameters):
        self._write({"method": method, "params": parameters})

    def _write(self, message):
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        self._process.stdin.flush()

    def _read(self):
        length = 0
        while (line := self._process.stdout.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "the language server has ended"
        return json.loads(self._process.stdout.read(length))
