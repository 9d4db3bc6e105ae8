"""Development chains for the tests; or, if ROOTLIGHT_SERVICE is set (service.mjs), the running service of several front ends."""

import json
import os
import re
import subprocess
import tempfile
import time

import requests
from eth_account import Account

MNEMONIC = "test test test test test test test test test test test junk"
PROGRAM = os.environ["ROOTLIGHT"]
SERVICE = json.loads(os.environ.get("ROOTLIGHT_SERVICE", "null"))

with open(os.environ["ROOTLIGHT_TOKEN"], encoding="utf-8") as compiled:
    TOKEN = json.load(compiled)


def account(index):
    """An account that the chain funds."""
    Account.enable_unaudited_hdwallet_features()
    return Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{index}")


class Chain:
    """A chain: `url` is what clients are given, `control` the chain itself, for the accounts whose keys it holds.

    They are the same for one process."""

    def __init__(self, *flags):
        self.process = None
        if SERVICE and "--revert-code" in flags:
            # The front ends with keys have geth's code.
            key = keys_of_service("create", "--state-override", "on")
            self.url, self.control = f"{SERVICE['keyed']['url']}/{key}", SERVICE["control"]
            return
        if SERVICE:
            self.url, self.control = SERVICE["open"]["url"], SERVICE["control"]
            return
        command = [PROGRAM, "dev", "--http-port", "0", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = next(found for line in self.process.stdout if (found := re.match(r"listening (\S+)", line))).group(1)
        self.control = self.url

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(10)
            self.process.stdout.close()


def run_keys(*arguments):
    """Runs `rootlight keys`."""
    command = [PROGRAM, "keys", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def keys_of_service(*arguments):
    return run_keys(*arguments, *SERVICE["shared"])


class KeyedChain:
    """A chain that needs a key, and reports reverts with geth's code."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "keys.redb")
        self.key = self.keys("create", "--name", "tests")
        self.chain = None if SERVICE else Chain("--revert-code", "3", "--api-keys", self.file)
        self.url = SERVICE["keyed"]["url"] if SERVICE else self.chain.url

    def keys(self, *arguments):
        return keys_of_service(*arguments) if SERVICE else run_keys(*arguments, "--api-keys", self.file)

    def http(self, key):
        return f"{self.url}/{key}"

    def socket(self, key):
        return f"{self.url.replace('http', 'ws')}/websocket/{key}"

    @property
    def wrong(self):
        return self.key[:-1] + ("B" if self.key.endswith("A") else "A")

    def revoke(self, key):
        """Returns when the key is refused: several front ends learn of it within a second."""
        self.keys("revoke", key.split(".")[0])
        end = time.monotonic() + 10
        for front_end in SERVICE["keyed"]["frontEnds"] if SERVICE else []:
            while requests.post(f"{front_end}/{key}", json={}, timeout=10).status_code != 401:
                assert time.monotonic() < end, "the key is not refused"

    def stop(self):
        if self.chain:
            self.chain.stop()
        self.folder.cleanup()
