"""web3.py against the development chain: deploy, call, reverts, logs, past state, sending with and without keys."""

import json
import unittest

from eth_account.messages import encode_defunct, encode_typed_data
from web3 import Web3
from web3.exceptions import (
    BlockNotFound,
    ContractCustomError,
    ContractLogicError,
    ContractPanicError,
    MethodUnavailable,
    RequestTimedOut,
    TransactionNotFound,
    Web3RPCError,
)

from chain import SERVICE, TOKEN, Chain, account


class DevChain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.chain = Chain()
        cls.addClassCleanup(cls.chain.stop)
        cls.web3 = Web3(Web3.HTTPProvider(cls.chain.url))
        cls.account = account(2)
        factory = cls.web3.eth.contract(abi=TOKEN["abi"], bytecode=TOKEN["bytecode"])
        receipt = cls.send(factory.constructor("Test", 1000))
        cls.token = cls.web3.eth.contract(address=receipt["contractAddress"], abi=TOKEN["abi"])

    @classmethod
    def send(cls, call):
        eth = cls.web3.eth
        fields = {
            "from": cls.account.address,
            "nonce": eth.get_transaction_count(cls.account.address),
            "gasPrice": eth.gas_price,
        }
        signed = cls.account.sign_transaction(call.build_transaction(fields))
        return eth.wait_for_transaction_receipt(eth.send_raw_transaction(signed.raw_transaction), poll_latency=0.02)

    def test_chain(self):
        self.assertTrue(self.web3.is_connected())
        self.assertEqual(self.web3.eth.chain_id, 33)
        own = Web3(Web3.HTTPProvider(self.chain.control))
        self.assertIn(self.account.address, own.eth.accounts)
        self.assertEqual(self.web3.eth.get_block("latest")["number"], self.web3.eth.block_number)

    def test_transfer_and_logs(self):
        to = account(4).address
        receipt = self.send(self.token.functions.transfer(to, 11))
        self.assertEqual(receipt["status"], 1)
        events = self.token.events.Transfer().process_receipt(receipt)
        self.assertEqual([(e["args"]["to"], e["args"]["value"]) for e in events], [(to, 11)])
        logs = self.token.events.Transfer().get_logs(from_block=0, argument_filters={"to": to})
        self.assertIn(receipt["transactionHash"], [log["transactionHash"] for log in logs])

    def test_methods_that_do_not_exist_say_what_to_do(self):
        with self.assertRaisesRegex(MethodUnavailable, "gasPrice"):
            self.web3.eth.fee_history(1, "latest", [])

    def test_reverts(self):
        poor = account(5).address
        with self.assertRaises(ContractCustomError):
            self.token.functions.transfer(self.account.address, 500).call({"from": poor})
        # A plain error for web3.py, since the code is Rootstock's -32015; the reason is in it all the same.
        with self.assertRaisesRegex(Web3RPCError, "no receiver"):
            self.token.functions.transfer("0x" + "00" * 20, 0).call()
        with self.assertRaises(ContractPanicError):
            self.token.functions.divide(1, 0).call()

    def test_reverts_with_the_code_of_geth(self):
        chain = Chain("--revert-code", "3")
        self.addCleanup(chain.stop)
        web3 = Web3(Web3.HTTPProvider(chain.url))
        # Code that reverts with Error("no").
        code = "0x6308c379a060e01b60005260206004526002602452616e6f60f01b60445260646000fd"
        to = account(1).address
        with self.assertRaisesRegex(ContractLogicError, "no"):
            web3.eth.call({"to": to}, "latest", {to: {"code": code}})

    @unittest.skipIf(SERVICE, "the front ends of a service have other limits")
    def test_calls_that_take_too_long(self):
        chain = Chain("--call-gas-cap", "1000000000000")
        self.addCleanup(chain.stop)
        to = account(1).address
        with self.assertRaises(RequestTimedOut):
            # An endless loop.
            Web3(Web3.HTTPProvider(chain.url)).eth.call({"to": to, "gas": 10**12}, "latest", {to: {"code": "0x5b600056"}})

    def test_what_does_not_exist(self):
        for ask in (self.web3.eth.get_block, self.web3.eth.get_block_receipts):
            with self.assertRaises(BlockNotFound):
                ask(99_999)
        for ask in (self.web3.eth.get_transaction, self.web3.eth.get_transaction_receipt):
            with self.assertRaises(TransactionNotFound):
                ask("0x" + "11" * 32)

    def test_past_state(self):
        to = account(6).address
        height = self.web3.eth.block_number
        self.send(self.token.functions.transfer(to, 2))
        self.assertEqual(self.token.functions.balanceOf(to).call(block_identifier=height), 0)
        self.assertEqual(self.token.functions.balanceOf(to).call(), 2)

    def test_refused_transactions_show_their_reason(self):
        fields = {"to": account(4).address, "value": 1, "gas": 21_000, "gasPrice": self.web3.eth.gas_price, "chainId": 33}
        nonce = self.web3.eth.get_transaction_count(self.account.address)
        for changed, reason in [
            ({"nonce": 0}, "nonce too low"),
            ({"nonce": nonce + 50_000}, "nonce too high"),
            ({"nonce": nonce, "value": 10**30}, "insufficient funds"),
            ({"nonce": nonce, "gas": 20_000}, "basic cost is above the gas limit"),
        ]:
            signed = self.account.sign_transaction({**fields, **changed})
            with self.assertRaisesRegex(Web3RPCError, reason):
                self.web3.eth.send_raw_transaction(signed.raw_transaction)

    def test_accounts_of_the_chain(self):
        sender, to = account(0).address, account(1).address
        before = self.web3.eth.get_balance(to)
        own = Web3(Web3.HTTPProvider(self.chain.control))
        sent = own.eth.send_transaction({"from": sender, "to": to, "value": 3, "gasPrice": own.eth.gas_price})
        self.assertEqual(self.web3.eth.wait_for_transaction_receipt(sent, poll_latency=0.02)["status"], 1)
        self.assertEqual(self.web3.eth.get_balance(to), before + 3)

    def test_accounts_of_the_chain_sign(self):
        own = Web3(Web3.HTTPProvider(self.chain.control))
        text = encode_defunct(text="hello")
        signed = own.eth.sign(self.account.address, text="hello")
        self.assertEqual(signed, self.account.sign_message(text).signature)
        data = {
            "types": {
                "EIP712Domain": [{"name": "name", "type": "string"}, {"name": "chainId", "type": "uint256"}],
                "Note": [{"name": "lines", "type": "string[]"}, {"name": "mark", "type": "bytes3"}],
            },
            "primaryType": "Note",
            "domain": {"name": "Notes", "chainId": 33},
            "message": {"lines": ["a", "b"], "mark": "0x010203"},
        }
        expected = self.account.sign_message(encode_typed_data(full_message=data)).signature
        self.assertEqual(own.eth.sign_typed_data(self.account.address, json.dumps(data)), expected)

    def test_filters_by_polling(self):
        blocks = self.web3.eth.filter("latest")
        logs = self.token.events.Transfer.create_filter(from_block="latest")
        receipt = self.send(self.token.functions.transfer(self.account.address, 1))
        self.assertIn(receipt["blockHash"], blocks.get_new_entries())
        self.assertIn(receipt["transactionHash"], [log["transactionHash"] for log in logs.get_new_entries()])


if __name__ == "__main__":
    unittest.main()
