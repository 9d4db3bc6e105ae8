// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import {Token} from "../src/Token.sol";

/// What foundry's scripts use of its cheat codes.
interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
}

/// Deploys the token and sends some of it.
contract Deploy {
    Vm private constant VM = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    function run() external {
        VM.startBroadcast();
        Token token = new Token("Foundry", 1000);
        token.transfer(address(0xaa), 7);
        VM.stopBroadcast();
    }
}
