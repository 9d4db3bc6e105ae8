// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.20;

/// What the client tests need of a contract: state, events, errors of every kind, a constructor with parameters.
contract Token {
    event Transfer(address indexed from, address indexed to, uint256 value);

    error NotEnough(address account, uint256 balance, uint256 wanted);

    string public name;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;

    constructor(string memory name_, uint256 supply) {
        name = name_;
        totalSupply = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        uint256 balance = balanceOf[msg.sender];
        if (balance < value) revert NotEnough(msg.sender, balance, value);
        require(to != address(0), "no receiver");
        balanceOf[msg.sender] = balance - value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }

    function divide(uint256 a, uint256 b) external pure returns (uint256) {
        return a / b;
    }

    function burnGas() external pure {
        while (true) {}
    }
}
