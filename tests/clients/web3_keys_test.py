"""web3.py with an API key in the path, over HTTP and WebSocket."""

import asyncio
import unittest

import requests
from web3 import AsyncWeb3, HTTPProvider, Web3, WebSocketProvider
from web3.exceptions import ContractCustomError, ContractLogicError
from websockets.exceptions import ConnectionClosed, InvalidStatus

from chain import TOKEN, KeyedChain, account

NOWHERE = "0x" + "00" * 20


class OverHttp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.chain = KeyedChain()
        cls.addClassCleanup(cls.chain.stop)
        cls.web3 = Web3(HTTPProvider(cls.chain.http(cls.chain.key)))
        cls.account = account(0)
        factory = cls.web3.eth.contract(abi=TOKEN["abi"], bytecode=TOKEN["bytecode"])
        deployed = cls.send(factory.constructor("Keyed", 1000))["contractAddress"]
        cls.token = cls.web3.eth.contract(address=deployed, abi=TOKEN["abi"])

    @classmethod
    def send(cls, call):
        eth = cls.web3.eth
        sender = cls.account.address
        fields = {"from": sender, "nonce": eth.get_transaction_count(sender), "gasPrice": eth.gas_price}
        signed = cls.account.sign_transaction(call.build_transaction(fields))
        return eth.wait_for_transaction_receipt(eth.send_raw_transaction(signed.raw_transaction), poll_latency=0.02)

    def test_transfer_and_logs(self):
        to = account(4).address
        receipt = self.send(self.token.functions.transfer(to, 11))
        self.assertEqual(receipt["status"], 1)
        self.assertEqual(self.token.functions.balanceOf(to).call(), 11)
        logs = self.token.events.Transfer().get_logs(from_block=0, argument_filters={"to": to})
        self.assertEqual([log["transactionHash"] for log in logs], [receipt["transactionHash"]])

    def test_filters(self):
        blocks = self.web3.eth.filter("latest")
        logs = self.token.events.Transfer.create_filter(from_block="latest")
        logs.get_new_entries()
        receipt = self.send(self.token.functions.transfer(account(5).address, 1))
        self.assertEqual(blocks.get_new_entries(), [receipt["blockHash"]])
        self.assertEqual([log["transactionHash"] for log in logs.get_new_entries()], [receipt["transactionHash"]])
        self.assertEqual(logs.get_new_entries(), [])
        self.assertTrue(self.web3.eth.uninstall_filter(blocks.filter_id))

    def test_reverts(self):
        with self.assertRaises(ContractCustomError):
            self.token.functions.transfer(self.account.address, 500).call({"from": account(6).address})
        with self.assertRaisesRegex(ContractLogicError, "no receiver"):
            self.token.functions.transfer(NOWHERE, 0).call()
        with self.assertRaisesRegex(ContractLogicError, "no receiver"):
            self.token.functions.transfer(NOWHERE, 0).estimate_gas()

    def test_batch(self):
        with self.web3.batch_requests() as batch:
            for _ in range(20):
                batch.add(self.web3.eth.get_balance(self.account.address))
            balances = batch.execute()
        self.assertEqual(len(balances), 20)
        self.assertTrue(all(balance > 0 for balance in balances))

    def refused(self, key):
        with self.assertRaises(requests.HTTPError) as caught:
            Web3(HTTPProvider(self.chain.http(key))).eth.get_block_number()
        self.assertEqual(caught.exception.response.status_code, 401)
        error = {"code": -32016, "message": "Unauthorized: invalid API key"}
        self.assertEqual(caught.exception.response.json()["error"], error)

    def test_wrong_and_revoked_keys(self):
        self.refused(self.chain.wrong)
        late = self.chain.keys("create")
        self.assertEqual(Web3(HTTPProvider(self.chain.http(late))).eth.chain_id, 33)
        self.chain.revoke(late)
        self.refused(late)


class OverWebSocket(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.chain = KeyedChain()
        cls.addClassCleanup(cls.chain.stop)

    async def asyncSetUp(self):
        provider = WebSocketProvider(self.chain.socket(self.chain.key))
        self.web3 = await AsyncWeb3(provider)
        self.addAsyncCleanup(provider.disconnect)
        self.account = account(1)
        factory = self.web3.eth.contract(abi=TOKEN["abi"], bytecode=TOKEN["bytecode"])
        deployed = (await self.send(factory.constructor("Keyed", 1000)))["contractAddress"]
        self.token = self.web3.eth.contract(address=deployed, abi=TOKEN["abi"])

    async def send(self, call):
        eth = self.web3.eth
        sender = self.account.address
        fields = {"from": sender, "nonce": await eth.get_transaction_count(sender), "gasPrice": await eth.gas_price}
        signed = self.account.sign_transaction(await call.build_transaction(fields))
        sent = await eth.send_raw_transaction(signed.raw_transaction)
        return await eth.wait_for_transaction_receipt(sent, poll_latency=0.02)

    async def test_transfer_logs_filters_and_batch(self):
        to = account(4).address
        new = await self.web3.eth.filter("latest")
        receipt = await self.send(self.token.functions.transfer(to, 11))
        self.assertEqual(await self.token.functions.balanceOf(to).call(), 11)
        logs = await self.token.events.Transfer().get_logs(from_block=0, argument_filters={"to": to})
        self.assertEqual([log["transactionHash"] for log in logs], [receipt["transactionHash"]])
        self.assertIn(receipt["blockHash"], await new.get_new_entries())
        async with self.web3.batch_requests() as batch:
            for _ in range(20):
                batch.add(self.web3.eth.get_balance(to))
            self.assertEqual(len(await batch.async_execute()), 20)

    async def test_subscriptions(self):
        heads = await self.web3.eth.subscribe("newHeads")
        logs = await self.web3.eth.subscribe("logs", {"address": self.token.address})
        receipt = await self.send(self.token.functions.transfer(self.account.address, 1))
        told = {}
        async with asyncio.timeout(10):
            async for message in self.web3.socket.process_subscriptions():
                told[message["subscription"]] = message["result"]
                if len(told) == 2:
                    break
        self.assertEqual(told[heads]["hash"], receipt["blockHash"])
        self.assertEqual(told[logs]["transactionHash"], receipt["transactionHash"])
        for subscription in (heads, logs):
            self.assertTrue(await self.web3.eth.unsubscribe(subscription))

    async def test_reverts(self):
        with self.assertRaises(ContractCustomError):
            await self.token.functions.transfer(NOWHERE, 5000).call({"from": self.account.address})
        with self.assertRaisesRegex(ContractLogicError, "no receiver"):
            await self.token.functions.transfer(NOWHERE, 0).call()

    async def test_wrong_and_revoked_keys(self):
        provider = WebSocketProvider(self.chain.socket(self.chain.wrong), max_connection_retries=1)
        with self.assertRaises(Exception) as caught:
            await provider.connect()
        causes = [caught.exception, caught.exception.__cause__, caught.exception.__context__]
        self.assertIn(401, [cause.response.status_code for cause in causes if isinstance(cause, InvalidStatus)])
        late = self.chain.keys("create")
        provider = WebSocketProvider(self.chain.socket(late))
        web3 = await AsyncWeb3(provider)
        self.assertEqual(await web3.eth.chain_id, 33)
        socket = provider._ws
        self.chain.revoke(late)
        async with asyncio.timeout(10):
            await socket.wait_closed()
        self.assertEqual(socket.close_code, 1008)
        with self.assertRaises(ConnectionClosed):
            await socket.send("{}")


if __name__ == "__main__":
    unittest.main()
